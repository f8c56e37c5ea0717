import { createHash } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { SecretMask } from "../../core/secrets/secret-mask.ts";
import type { FileStamps } from "../watch-stamps.ts";
import type { GatewayConfig } from "./gateway-config.ts";

/** A config that was read, checked, and whose references were replaced by what they refer to. */
export interface LoadedConfig {
  readonly config: GatewayConfig;
  /** Absent for a config that came from no file. */
  readonly path?: string;
  /** What relative paths of the config start from. */
  readonly baseDir: string;
  /** Files whose change makes reading again worthwhile, as they were before it: the config, its env files and what it refers to. */
  readonly files: FileStamps;
  /**
   * Sources that cannot be started because a reference in them leads nowhere: `mcpServers.github`, and what is wrong and where. They
   * are mounted as down, so that one broken source never stops the rest.
   */
  readonly faults: Readonly<Record<string, string>>;
  /** What is odd and was left alone, one sentence each, with its place. */
  readonly warnings: readonly string[];
  readonly secrets: SecretMask;
  /** Environment variables that tokens of `serve.auth` are taken from, by who holds them. @default none is known */
  readonly tokenVariables?: ReadonlyMap<string, string>;
  /** The environment that references were resolved in; it also decides where logins are kept. @default that of this process */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Operations of this process that are mounted besides those of the config's modules. */
  readonly localOperations?: readonly AnyOperation[];
  /** What to do where an HTTP API refuses for want of credentials, for a config that nobody wrote. @default names the fields of the config */
  readonly authHint?: string;
  /** What lets an HTTP API be at a private address, for a config that nobody wrote. @default names the field of the config */
  readonly privateHint?: string;
  /** Whether OpenAPI documents are read again when their files change. @default true */
  readonly watchDocuments?: boolean;
}

/** The variable in which the gateways of configs are named that started a process, one within another. */
const MOUNTED_BY = "WAYBILL_MOUNTED_BY";

type MountedConfig = Pick<LoadedConfig, "path" | "env">;

/** The environment in which the servers of a config are started: a gateway among them finds out whether it is this one. */
export function mountEnv(loaded: MountedConfig): Readonly<Record<string, string>> {
  const { path, env = process.env } = loaded;
  if (path === undefined) return {};
  return { [MOUNTED_BY]: [env[MOUNTED_BY] ?? "", configKey(path)].filter(Boolean).join(",") };
}

/** Tells whether a gateway of this config started this process, itself or through another: it would start itself without end. */
export function isMountedByItself({ path, env = process.env }: MountedConfig): boolean {
  return path !== undefined && (env[MOUNTED_BY] ?? "").split(",").includes(configKey(path));
}

/** Stands for the path of a config, which a server has no need to know. */
function configKey(path: string): string {
  const real = existsSync(path) ? realpathSync(path) : path;
  return createHash("sha256").update(real).digest("hex").slice(0, 24);
}

/** A config that cannot be used: one line for each mistake, each with file, line and column. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly issues: readonly string[];
  /** What it is made of besides its own file, as far as that was looked for: a change there may mend it. */
  readonly files: FileStamps;

  constructor(issues: readonly string[], files: FileStamps = new Map()) {
    super(issues.join("\n"));
    this.issues = issues;
    this.files = files;
  }
}

/** The most characters of a namespace. */
const MOST_CHARACTERS = 64;

/**
 * Gives every source of a config the namespace of its operations, by `mcpServers.X` and `openapi.Y`, in the order of the config:
 * letters, digits, `_` and `-` stay, anything else becomes `_`, and a name that is taken gets `_2`, `_3` and so on.
 */
export function sourceNames(
  config: Pick<GatewayConfig, "mcpServers" | "openapi">,
): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const next = new Map<string, number>();
  for (const kind of ["mcpServers", "openapi"] as const) {
    for (const key of Object.keys(config[kind] ?? {})) {
      const name = toFreeName(
        key.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, MOST_CHARACTERS) || "_",
        taken,
        next,
      );
      taken.add(name);
      names.set(`${kind}.${key}`, name);
    }
  }
  return names;
}

/** `next` keeps where the numbers of a name have come to, so that many of the same name take no longer than others. */
function toFreeName(wanted: string, taken: ReadonlySet<string>, next: Map<string, number>): string {
  if (!taken.has(wanted)) return wanted;
  for (let number = next.get(wanted) ?? 2; ; number++) {
    const name = `${wanted.slice(0, MOST_CHARACTERS - `_${number}`.length)}_${number}`;
    if (taken.has(name)) continue;
    next.set(wanted, number + 1);
    return name;
  }
}

/** Whether callers are known by name. */
export function tellsApart({ config: { serve } }: LoadedConfig): boolean {
  return serve?.auth !== undefined;
}
