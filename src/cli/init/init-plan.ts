import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseEnvFile } from "../../gateway/config/env-file.ts";
import { CONFIG_FILE } from "../../gateway/config/find-config.ts";
import type { GatewayConfig, McpServerConfig } from "../../gateway/config/gateway-config.ts";
import { CommandError } from "../io.ts";
import { ENV_FILE_NAME, withEntries } from "./env-entries.ts";
import type { InitAnswers } from "./init-answers.ts";
import { type HostServers, type MergedServers, mergeHosts } from "./merge-hosts.ts";
import { freeName, toServerConfig } from "./named-target.ts";
import { renderConfig } from "./render-config.ts";
import { OPERATIONS_GLOB, SAMPLE_MODULE } from "./sample-module.ts";

/** One file as it is to be; those that hold secrets are for their owner alone, and never shown. */
export interface PlannedFile {
  /** Beside the config. */
  readonly path: string;
  readonly text: string;
  /** New, longer than before, or in place of another that is kept under a name of its own. */
  readonly change: "new" | "added" | "replaced";
  /** Names of the secrets that are added. */
  readonly secrets?: readonly string[];
}

/** Everything that is to be written, in this order; the config comes last. */
export interface InitPlan {
  readonly files: readonly PlannedFile[];
  /** Configs that make way, and what they are called then. */
  readonly moved: readonly { readonly from: string; readonly to: string }[];
  readonly notes: readonly string[];
  /** Where the operations come from, for what is said at the end. */
  readonly sources: { readonly servers: number; readonly apis: number; readonly sample: boolean };
}

/** The configs that stand in a folder. */
export async function findConfigs(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((): string[] => []);
  return names.filter((name) => CONFIG_FILE.test(name)).sort();
}

/** Works out what to write; reads, and changes nothing. */
export async function planInit(
  cwd: string,
  answers: InitAnswers,
  hosts: readonly HostServers[],
): Promise<InitPlan> {
  const there = await findConfigs(cwd);
  if (there.length > 0 && !answers.replace) {
    throw new CommandError(`${there.join(" and ")} is there already; give --force to replace it.`);
  }
  const envText = await readIfThere(join(cwd, ENV_FILE_NAME));
  const merged = mergeHosts(hosts, parseEnvFile(envText ?? ""));
  const servers = addNamed(merged, answers);
  const sample = planSample(cwd, answers);
  const hasEnv = merged.secrets.size > 0 || envText !== undefined;
  const config = toConfig(cwd, { answers, servers, hasEnv });
  const configFile = `waybill.config.${answers.format}`;
  const files = [
    ...(await planGitIgnore(cwd, merged)),
    ...planEnv(envText, merged),
    ...sample.files,
    {
      path: configFile,
      text: await renderConfig(config, answers.format),
      change: there.includes(configFile) ? "replaced" : "new",
    } as const,
  ];
  return {
    files,
    moved: there.map((from) => ({
      from,
      to: freeName(`${from}.old`, (to) => existsSync(join(cwd, to)), "-"),
    })),
    notes: [...merged.notes, ...sample.notes],
    sources: { servers: servers.size, apis: answers.openapi.length, sample: answers.sample },
  };
}

function addNamed({ servers }: MergedServers, { mcp }: InitAnswers): Map<string, McpServerConfig> {
  const all = new Map(servers);
  for (const { name, target } of mcp)
    all.set(
      freeName(name, (tried) => all.has(tried), "-"),
      toServerConfig(target),
    );
  return all;
}

interface Parts {
  readonly answers: InitAnswers;
  readonly servers: ReadonlyMap<string, McpServerConfig>;
  readonly hasEnv: boolean;
}

function toConfig(cwd: string, { answers, servers, hasEnv }: Parts): GatewayConfig {
  const schema = "./node_modules/waybill/dist/waybill.schema.json";
  const { openapi, sample, port } = answers;
  return {
    ...(existsSync(join(cwd, schema)) && { $schema: schema }),
    ...(hasEnv && { envFile: ENV_FILE_NAME }),
    ...(servers.size > 0 && { mcpServers: Object.fromEntries(servers) }),
    ...(openapi.length > 0 && {
      openapi: Object.fromEntries(openapi.map(({ name, target }) => [name, { document: target }])),
    }),
    ...(sample && { operations: OPERATIONS_GLOB }),
    ...(port !== undefined && { serve: { port } }),
  };
}

function planSample(cwd: string, { sample, format }: InitAnswers) {
  const path = `operations/hello.${format === "ts" ? "ts" : "mjs"}`;
  if (!sample) return { files: [], notes: [] };
  if (existsSync(join(cwd, path)))
    return { files: [], notes: [`${path} is there already; it stays as it is.`] };
  return { files: [{ path, text: SAMPLE_MODULE, change: "new" } as const], notes: [] };
}

function planEnv(before: string | undefined, { secrets }: MergedServers): PlannedFile[] {
  if (secrets.size === 0) return [];
  const text = withEntries(before ?? "", secrets);
  const change = before === undefined ? "new" : "added";
  return [{ path: ENV_FILE_NAME, text, change, secrets: [...secrets.keys()] }];
}

/** Secrets must not end up in a repository. */
async function planGitIgnore(cwd: string, { secrets }: MergedServers): Promise<PlannedFile[]> {
  if (secrets.size === 0 || !isInRepository(cwd)) return [];
  const before = await readIfThere(join(cwd, ".gitignore"));
  const lines = (before ?? "").split(/\r?\n/).map((line) => line.trim());
  if (lines.includes(ENV_FILE_NAME) || lines.includes(`/${ENV_FILE_NAME}`)) return [];
  const gap = before === undefined || before === "" || before.endsWith("\n") ? "" : "\n";
  const text = `${before ?? ""}${gap}${ENV_FILE_NAME}\n`;
  return [{ path: ".gitignore", text, change: before === undefined ? "new" : "added" }];
}

function isInRepository(folder: string): boolean {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return true;
    if (at === dirname(at)) return false;
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new CommandError(`${path} cannot be read (${code}).`, undefined, { cause });
  }
}
