import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { SecretMask } from "../../core/secrets/secret-mask.ts";
import type { FileStamps } from "../file-stamps.ts";
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
  /** Operations of this process that are mounted besides those of the config's modules. */
  readonly localOperations?: readonly AnyOperation[];
  /** What to do where an HTTP API refuses for want of credentials, for a config that nobody wrote. @default names the fields of the config */
  readonly authHint?: string;
  /** What lets an HTTP API be at a private address, for a config that nobody wrote. @default names the field of the config */
  readonly privateHint?: string;
  /** Whether OpenAPI documents are read again when their files change. @default true */
  readonly watchDocuments?: boolean;
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
