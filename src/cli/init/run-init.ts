import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { escapeHidden, safeLine, safeText, shellWord } from "../../core/text/clean-text.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { CONFIG_FILE } from "../../gateway/config/config-files.ts";
import { parseEnvFile } from "../../gateway/config/env-files.ts";
import type { GatewayConfig, McpServerConfig } from "../../gateway/config/gateway-config.ts";
import { CommandError, type Io } from "../io.ts";
import { spelledCommand } from "../pasted-command.ts";
import { toSafeJson } from "../terminal/style.ts";
import type { ConfigFormat, InitAnswers, InitFlags } from "./init-answers.ts";
import { findHosts, type HostServers, type MergedServers, mergeHosts, readHost } from "./merge-hosts.ts";
import {
  documentMistake,
  freeName,
  parseNamedTarget,
  serverMistake,
  toServerConfig,
} from "./named-target.ts";

/** One file as it is to be; those that hold secrets are for their owner alone, and never shown. */
interface PlannedFile {
  /** Beside the config. */
  readonly path: string;
  readonly text: string;
  /** New, longer than before, or in place of another that is kept under a name of its own. */
  readonly change: "new" | "added" | "replaced";
  /** Names of the secrets that are added. */
  readonly secrets?: readonly string[];
}

/** Everything that is to be written, in this order; the config comes last. */
interface InitPlan {
  readonly files: readonly PlannedFile[];
  /** Configs that make way, and what they are called then. */
  readonly moved: readonly { readonly from: string; readonly to: string }[];
  readonly notes: readonly string[];
  /** The files of other hosts that were read, and the servers in each. */
  readonly taken: readonly { readonly file: string; readonly servers: readonly string[] }[];
  /** Where the operations come from, for what is said at the end. */
  readonly sources: { readonly servers: number; readonly apis: number; readonly sample: boolean };
}

/** The configs that stand in a folder. */
async function findConfigs(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((): string[] => []);
  return names.filter((name) => CONFIG_FILE.test(name)).sort();
}

/** Works out what to write; reads, and changes nothing. */
async function planInit(io: Io, answers: InitAnswers, hosts: readonly HostServers[]): Promise<InitPlan> {
  const { cwd } = io;
  const command = spelledCommand(io);
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
    notes: [...merged.notes, ...sample.notes, ...openNotes(servers, command)],
    taken: hosts.map((host, at) => ({
      file: answers.hostFiles[at] ?? "",
      servers: Object.keys(host.servers),
    })),
    sources: { servers: servers.size, apis: answers.openapi.length, sample: answers.sample },
  };
}

/** Servers that nothing is shown to, which may want a person to log in: only asking them tells. */
function openNotes(servers: ReadonlyMap<string, McpServerConfig>, command: string): readonly string[] {
  return [...servers].flatMap(([name, { url, headers, bearer, oauth, args = [] }]) => {
    const login = `run: ${command} login ${shellWord(name)}`;
    const remote = bridgedAddress(args);
    if (remote !== undefined) {
      return `${name}: mcp-remote logs a person in with a browser, which fails where the gateway has none. Write "url": ${JSON.stringify(remote)} in place of command and args, and ${login}`;
    }
    if (url === undefined || (headers ?? bearer ?? oauth) !== undefined) return [];
    return `${name}: has no credentials. If it wants a person to log in, ${login}`;
  });
}

/** The address that `mcp-remote` is started for without credentials, short of what may be secret in it. */
function bridgedAddress(args: readonly string[]): string | undefined {
  if (!args.some((arg) => /^mcp-remote(?:@[\w.-]+)?$/.test(arg)) || args.includes("--header"))
    return undefined;
  const address = args.map((arg) => parseUrl(arg)).find((url) => /^https?:$/.test(url?.protocol ?? ""));
  return address && `${address.origin}${address.pathname}`;
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
  const { openapi, sample, port, inspector } = answers;
  const serve = { ...(port !== undefined && { port }), ...(inspector && { inspect: true }) };
  return {
    ...(existsSync(join(cwd, schema)) && { $schema: schema }),
    ...(hasEnv && { envFile: ENV_FILE_NAME }),
    ...(servers.size > 0 && { mcpServers: Object.fromEntries(servers) }),
    ...(openapi.length > 0 && {
      openapi: Object.fromEntries(openapi.map(({ name, target }) => [name, { document: target }])),
    }),
    ...(sample && { operations: OPERATIONS_GLOB }),
    ...(Object.keys(serve).length > 0 && { serve }),
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

/** The file that secrets go to, beside the config. */
const ENV_FILE_NAME = ".env.waybill";

/** Adds variables at the end of an env file's text; what is there stays, letter for letter. */
export function withEntries(text: string, entries: ReadonlyMap<string, string>): string {
  const known = parseEnvFile(text);
  const lines = [...entries].filter(([name]) => !known.has(name)).map(([name, value]) => toLine(name, value));
  if (lines.length === 0) return text;
  const gap = text === "" || text.endsWith("\n") ? "" : "\n";
  return `${text}${gap}${lines.join("")}`;
}

/** Single quotes keep everything as it is, for shells too; what they cannot hold is escaped. */
function toLine(name: string, value: string): string {
  if (!/['\r\n]/.test(value)) return `${name}='${value}'\n`;
  const escaped = value
    .replace(/[\\"$]/g, "\\$&")
    .replaceAll("\n", "\\n")
    .replaceAll("\r", "\\r");
  return `${name}="${escaped}"\n`;
}

/** A module with one operation, that works as it is: in JavaScript and in TypeScript alike. */
const SAMPLE_MODULE = `import { defineOperation, Type } from "waybill";

/** Try it: npx --no waybill call hello.greet name=Ada */
export const greet = defineOperation({
  namespace: "hello",
  name: "greet",
  version: "1.0.0",
  type: "query",
  description: "Greets someone by name.",
  inputSchema: Type.Object({ name: Type.String({ minLength: 1 }) }),
  outputSchema: Type.Object({ text: Type.String() }),
  handler: ({ name }) => ({ text: \`Hello, \${name}.\` }),
});
`;

/** Where operations of one's own are looked for. */
const OPERATIONS_GLOB = "operations/*.{ts,mts,js,mjs}";

/** Writes what was planned: each file whole or not at all, the config last, so that it never refers to what is not there. */
async function writePlan(cwd: string, plan: InitPlan): Promise<void> {
  for (const file of plan.files.slice(0, -1)) await writePlanned(cwd, file);
  for (const { from, to } of plan.moved) await attempt(from, () => rename(join(cwd, from), join(cwd, to)));
  for (const file of plan.files.slice(-1)) await writePlanned(cwd, file);
}

async function writePlanned(cwd: string, { path, text, change, secrets }: PlannedFile): Promise<void> {
  // A link stays a link.
  const target = await realpath(join(cwd, path)).catch(() => join(cwd, path));
  await attempt(path, async () => {
    await mkdir(dirname(target), { recursive: true });
    const mode = secrets === undefined ? 0o666 : 0o600;
    // What came to stand there since the plan was made is not overwritten.
    if (change !== "added") return await writeFile(target, text, { flag: "wx", mode });
    if (secrets === undefined) return await writeFile(target, text);
    const draft = `${target}.${randomUUID()}.tmp`;
    try {
      await writeFile(draft, text, { flag: "wx", mode });
      await chmod(draft, mode);
      await rename(draft, target);
    } finally {
      await rm(draft, { force: true });
    }
  });
}

async function attempt(path: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    throw new CommandError(`${path} cannot be written (${code ?? message}).`, undefined, { cause });
  }
}

/** Writes a config down. */
async function renderConfig(config: GatewayConfig, format: ConfigFormat): Promise<string> {
  switch (format) {
    case "json":
      return `${escapeHidden(JSON.stringify(config, undefined, 2))}\n`;
    case "yaml": {
      const { stringify } = await import("yaml");
      const { $schema } = config;
      const head = $schema === undefined ? "" : `# yaml-language-server: $schema=${$schema}\n`;
      return `${head}${stringify(config, { lineWidth: 0 })}`;
    }
    case "ts": {
      const { $schema: _forEditorsOfJson, ...rest } = config;
      return `import { defineConfig } from "waybill/gateway";\n\nexport default defineConfig(${toLiteral(rest, "")});\n`;
    }
  }
}

/** Writes plain JSON data as an expression, the way people write it. */
function toLiteral(value: unknown, indent: string): string {
  const inner = `${indent}  `;
  if (Array.isArray(value)) return `[${value.map((item) => toLiteral(item, inner)).join(", ")}]`;
  if (typeof value !== "object" || value === null) return escapeHidden(JSON.stringify(value));
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  if (members.length === 0) return "{}";
  const lines = members.map(([key, member]) => `${inner}${toKey(key)}: ${toLiteral(member, inner)},\n`);
  return `{\n${lines.join("")}${indent}}`;
}

function toKey(key: string): string {
  // Written plainly it would be the prototype.
  if (key === "__proto__") return '["__proto__"]';
  return /^[A-Za-z_$][\w$]*$/.test(key) ? key : escapeHidden(JSON.stringify(key));
}

/** Writes a config: from flags, from what this project has, or by asking. */
export async function runInit(io: Io, flags: InitFlags): Promise<void> {
  const answers = await findAnswers(io, flags);
  const hosts = await Promise.all(answers.hostFiles.map((path) => readHost(io, path)));
  const plan = await planInit(io, answers, hosts);
  if (flags.dryRun !== true) await writePlan(io.cwd, plan);
  for (const note of plan.notes) if (io.quiet !== true) io.stderr.write(`${safeText(note)}\n`);
  io.stdout.write(
    flags.json === true ? `${toSafeJson(toReport(io, plan, flags), 2)}\n` : tell(io, plan, flags),
  );
}

async function findAnswers(io: Io, flags: InitFlags): Promise<InitAnswers> {
  const given = fromFlags(io, flags);
  const isTold = given.hostFiles.length + given.openapi.length + given.mcp.length > 0 || given.sample;
  if (isTold) return given;
  if (flags.yes === true) return await takeDefaults(io, given);
  if (!io.stdin.isTTY || !io.stderr.isTTY) {
    throw new CommandError(
      '"init" asks its questions on a terminal; without one, give --yes, --from <file>, --openapi <name=document>, --mcp <name=server> or --sample.',
    );
  }
  const [hosts, configs, { askAnswers }] = await Promise.all([
    findHosts(io),
    findConfigs(io.cwd),
    import("./ask-answers.ts"),
  ]);
  return await askAnswers(io, { flags, hosts, configs });
}

function fromFlags(io: Io, flags: InitFlags): InitAnswers {
  const openapi = (flags.openapi ?? []).map((text) => parseNamedTarget("--openapi", text));
  const mcp = (flags.mcp ?? []).map((text) => parseNamedTarget("--mcp", text));
  for (const { name, target } of openapi) refuse(`--openapi ${name}`, documentMistake(target, io.cwd));
  for (const { name, target } of mcp) refuse(`--mcp ${name}`, serverMistake(target));
  const { format = "json", port, sample = false, force = false, inspector = false } = flags;
  for (const [flag, named] of [["--openapi", openapi] as const, ["--mcp", mcp] as const]) {
    const twice = named.find(({ name }, at) => named.findIndex((other) => other.name === name) !== at);
    if (twice !== undefined) throw new CommandError(`${flag} has the name "${twice.name}" twice.`);
  }
  return { hostFiles: flags.from ?? [], openapi, mcp, sample, format, port, inspector, replace: force };
}

function refuse(flag: string, mistake: string | undefined): void {
  if (mistake !== undefined) throw new CommandError(`${flag}: ${mistake}`);
}

/** What belongs to the person alone is taken over only when they say so. */
async function takeDefaults(io: Io, given: InitAnswers): Promise<InitAnswers> {
  const project = (await findHosts(io)).filter(({ isProject }) => isProject).map(({ path }) => path);
  return { ...given, hostFiles: project, sample: project.length === 0 };
}

/** The commands that make sense next, the likeliest first. */
function nextCommands(io: Io, { sources }: InitPlan): string[] {
  const command = spelledCommand(io);
  return [`${command} ${sources.sample ? "call hello.greet name=Ada" : "list"}`, `${command} serve`];
}

function toReport(io: Io, plan: InitPlan, { dryRun = false }: InitFlags): object {
  return {
    dryRun,
    files: plan.files.map(({ path, change, secrets, text }) => ({
      path,
      change,
      ...(secrets === undefined ? dryRun && { text } : { secrets }),
    })),
    moved: plan.moved,
    taken: plan.taken,
    notes: plan.notes,
    next: nextCommands(io, plan),
  };
}

function tell(io: Io, plan: InitPlan, { dryRun = false }: InitFlags): string {
  if (dryRun) return plan.files.map(show).join("\n");
  const lines = [
    ...plan.moved.map(({ from, to }) => `Kept    ${from} as ${to}`),
    ...plan.taken.map(({ file, servers }) => `Read    ${shownPath(file, io.cwd)} (${namesOf(servers)})`),
    ...plan.files.map((file) => `Wrote   ${file.path}${describeFile(file)}`),
    "",
    `Next: ${nextCommands(io, plan).join(", or ")}`,
  ];
  return `${safeText(lines.join("\n"))}\n`;
}

/** A path from here where it is below, else as it is. */
function shownPath(path: string, cwd: string): string {
  const below = relative(cwd, resolve(cwd, path));
  return below.startsWith("..") ? path : below;
}

/** Servers of one file that are named. */
const MOST_NAMED = 10;

function namesOf(servers: readonly string[]): string {
  const left = servers.length - MOST_NAMED;
  const shown = servers.slice(0, MOST_NAMED).map((name) => safeLine(name, 80));
  return left > 0 ? `${shown.join(", ")} and ${left} more` : shown.join(", ");
}

function describeFile({ secrets, path }: PlannedFile): string {
  if (secrets !== undefined) return ` (secrets, readable by you alone: ${secrets.join(", ")})`;
  return path === ".gitignore" ? " (keeps the secrets out of the repository)" : "";
}

/** A file as it would be; of one with secrets only their names. */
function show({ path, text, secrets }: PlannedFile): string {
  const shown = secrets === undefined ? text : secrets.map((name) => `${name}=***\n`).join("");
  return safeText(`# ${path}\n${shown}`);
}
