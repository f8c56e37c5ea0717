import { readFile, stat, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { safeLine } from "../../core/text/clean-text.ts";
import { counted } from "../../core/text/nearest-name.ts";
import type { McpServerConfig, OpenApiConfig } from "../../gateway/config/gateway-config.ts";
import { sourceNames } from "../../gateway/config/loaded-config.ts";
import { toApiOptions, toDocument } from "../../gateway/sources/api-source.ts";
import { describeAddress, describeServer } from "../../gateway/sources/shown-text.ts";
import {
  type ApiLogin,
  loginOfApi,
  loginOfServer,
  type SourceLogin,
} from "../../gateway/sources/source-login.ts";
import { parseGivenJson } from "../call/given-file.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { spelledCommand } from "../pasted-command.ts";
import { assertDocument, findSource, findTarget, type NamedSource } from "../session/find-target.ts";
import { readTarget } from "../session/session.ts";
import { assertBaseUrl, configuredConnection, gatewayBase } from "../session/target-config.ts";
import { withProgress } from "../terminal/progress.ts";
import { createStyle, type Style, toSafeJson } from "../terminal/style.ts";
import type { Check, CheckReport, CheckStatus } from "./check-report.ts";

/** The flags of `waybill check`. */
export interface CheckFlags extends TargetFlags {
  readonly call?: readonly string[] | undefined;
  readonly callAll?: boolean | undefined;
  readonly input?: readonly string[] | undefined;
  readonly baseUrl?: string | undefined;
  /** Calls an API at a private address that its document names. */
  readonly allowPrivate?: boolean | undefined;
  readonly offline?: boolean | undefined;
  readonly timeout?: number | undefined;
  readonly strict?: boolean | undefined;
  readonly json?: boolean | undefined;
  /** A file, or `true` for stdout. */
  readonly junit?: string | true | undefined;
}

const TIMEOUT_MS = 10_000;
const MOST_INPUT_BYTES = 4_194_304;

/** Checks a server or document, writes the report, and gives the exit code. */
export async function runCheck(io: Io, target: string | undefined, flags: CheckFlags): Promise<number> {
  if (flags.json && flags.junit === true) {
    throw new CommandError("--json and --junit both write to stdout; name a file: --junit report.xml.");
  }
  assertBaseUrl(flags.baseUrl);
  const inputs = await readInputs(io, flags.input ?? []);
  const targets = await findTargets(io, target, flags);
  const reports = await withProgress(io, "checking", async (update) => {
    const made: CheckReport[] = [];
    for (const one of targets) made.push(await checkOne(one, { io, flags, inputs, onProgress: update }));
    return made;
  });
  const strict = flags.strict === true;
  await write(io, reports, { ...flags, strict });
  return exitCodeOf(reports, strict);
}

/** 3 where something cannot be reached, 1 where something is wrong, else 0. */
function exitCodeOf(reports: readonly CheckReport[], strict: boolean): number {
  if (reports.some(({ reachable }) => !reachable)) return EXIT.callError;
  const isBad = reports.some(({ counts }) => counts.fail > 0 || (strict && counts.warn > 0));
  return isBad ? EXIT.toolError : EXIT.ok;
}

interface CheckRun {
  readonly io: Io;
  readonly flags: CheckFlags;
  readonly inputs: ReadonlyMap<string, unknown>;
  onProgress(text: string): void;
}

async function checkOne(target: CheckTarget, run: CheckRun): Promise<CheckReport> {
  const { io, flags, inputs, onProgress } = run;
  const { label, baseDir, mask } = target;
  const timeoutMs = flags.timeout ?? TIMEOUT_MS;
  const named = new Set(flags.call ?? []);
  const shared = { target: label, timeoutMs, mask, signal: io.signal, onProgress };
  if (target.kind === "mcp") {
    const { checkMcp } = await import("./check-mcp.ts");
    const connection = { timeoutMs, ...(await configuredConnection(target.server, baseDir, target.login)) };
    return checkMcp({ ...shared, connection, calls: { all: flags.callAll === true, named, inputs } });
  }
  const { checkOpenApi } = await import("./check-openapi.ts");
  const { keepIds: _, ...options } = toApiOptions(target.api, target.login);
  const api = {
    ...options,
    ...(flags.baseUrl !== undefined && { baseUrl: flags.baseUrl }),
    ...(flags.allowPrivate === true && { allowPrivate: true }),
  };
  const document = toDocument(target.api.document, baseDir);
  return checkOpenApi({
    ...shared,
    document,
    api,
    offline: flags.offline === true,
    calls: { named, inputs },
  });
}

/** Reads `name=@file.json` and `name={"a":1}`. */
async function readInputs(io: Io, given: readonly string[]): Promise<ReadonlyMap<string, unknown>> {
  const inputs = new Map<string, unknown>();
  for (const text of given) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === undefined || value === undefined || value === "") {
      throw new CommandError(
        `--input takes a name and an input, such as track=@input.json; it is "${safeLine(text, 80)}".`,
      );
    }
    const shown = safeLine(name, 80);
    if (!value.startsWith("@")) inputs.set(name, parseGivenJson(value, `The input of ${shown}`));
    else inputs.set(name, parseGivenJson(await readInput(io, value.slice(1)), `The input of ${shown}`));
  }
  return inputs;
}

async function readInput(io: Io, file: string): Promise<string> {
  const path = resolve(io.cwd, file);
  const facts = await stat(path).catch(() => undefined);
  if (facts === undefined || !facts.isFile()) {
    throw new CommandError(`The file "${safeLine(file, 200)}" does not exist.`);
  }
  if (facts.size > MOST_INPUT_BYTES) {
    throw new CommandError(`The file "${safeLine(file, 200)}" is larger than ${MOST_INPUT_BYTES} bytes.`);
  }
  return await readFile(path, "utf8");
}

async function write(
  io: Io,
  reports: readonly CheckReport[],
  { junit, json, strict }: CheckFlags & { readonly strict: boolean },
): Promise<void> {
  if (junit === true) {
    io.stdout.write(toJunit(reports, { strict }));
    return;
  }
  if (junit !== undefined) await writeJunit(io, junit, toJunit(reports, { strict }));
  if (json) {
    const ok = exitCodeOf(reports, strict) === EXIT.ok;
    io.stdout.write(`${toSafeJson({ ok, strict, reports }, 2)}\n`);
    return;
  }
  const style = { stream: io.stdout, env: io.env, verbose: io.verbose === true, strict };
  io.stdout.write(reports.map((report) => toReportText(report, style)).join("\n"));
}

async function writeJunit(io: Io, file: string, xml: string): Promise<void> {
  try {
    await writeFile(resolve(io.cwd, file), xml);
  } catch (cause) {
    const { code = "unknown" } = cause as { code?: string };
    throw new CommandError(`The file "${safeLine(file, 200)}" cannot be written (${code}).`, EXIT.usage, {
      cause,
    });
  }
}

/** One thing to check. */
type CheckTarget = {
  /** What it is called, without secrets. */
  readonly label: string;
  /** What relative paths start from. */
  readonly baseDir: string;
  /** Takes secrets out of a text. */
  mask(text: string): string;
} & (
  | { readonly kind: "mcp"; readonly server: McpServerConfig; readonly login?: SourceLogin | undefined }
  | { readonly kind: "openapi"; readonly api: OpenApiConfig; readonly login?: ApiLogin | undefined }
);

/** What the command line says of the target. */
interface TargetFlags {
  readonly config?: string | undefined;
  /** The target, or `true` where it only says what the target is. */
  readonly mcp?: string | true | undefined;
  readonly openapi?: string | true | undefined;
  readonly url?: string | undefined;
  readonly tokenEnv?: string | undefined;
}

/** Finds out what is meant to be checked; a running gateway is checked as both. */
async function findTargets(
  io: Io,
  target: string | undefined,
  flags: TargetFlags,
): Promise<readonly CheckTarget[]> {
  const { mcp, openapi, url, config } = flags;
  const wanted = [target, mcp, openapi, url].filter((one) => typeof one === "string") as string[];
  if (wanted.length > 1) throw new CommandError("check takes one target.");
  const [one] = wanted;
  if (one === undefined) {
    throw new CommandError(
      `check needs a target: an address, a command line in quotes, a document, or a source of the config; "${spelledCommand(io)} check --help" has examples.`,
    );
  }
  if (mcp !== undefined) return direct(io, { mcp: one }, flags);
  if (openapi !== undefined) return direct(io, { openapi: one }, flags);
  if (url !== undefined) return gateway(io, one, flags);
  if (config !== undefined) return [fromSource(await findSource(io, one, config))];
  return sniffed(io, one, flags);
}

/** Something on the command line itself. */
async function direct(
  io: Io,
  one: { readonly mcp: string } | { readonly openapi: string },
  { tokenEnv }: TargetFlags,
): Promise<readonly CheckTarget[]> {
  const { loaded } = await readTarget(io, { ...one, tokenEnv });
  const { baseDir, secrets } = loaded;
  const mask = (text: string) => secrets.mask(text);
  const [server] = Object.values(loaded.config.mcpServers ?? {});
  const [api] = Object.values(loaded.config.openapi ?? {});
  if (server !== undefined) {
    return [{ kind: "mcp", label: mask(describeServer(server)), server, baseDir, mask }];
  }
  if (api === undefined) throw new CommandError("There is nothing to check.");
  await assertDocument(io, api.document);
  return [{ kind: "openapi", label: mask(describeAddress(api.document)), api, baseDir, mask }];
}

async function gateway(io: Io, url: string, flags: TargetFlags): Promise<readonly CheckTarget[]> {
  const base = gatewayBase(url);
  // What merely looks like a gateway gets no token that nobody meant for it.
  const isMeant = flags.url !== undefined && io.env["WAYBILL_TOKEN"];
  const tokenEnv = flags.tokenEnv ?? (isMeant ? "WAYBILL_TOKEN" : undefined);
  const parts = [{ mcp: `${base}/mcp` }, { openapi: `${base}/openapi.json` }];
  return (await Promise.all(parts.map((part) => direct(io, part, { tokenEnv })))).flat();
}

/** Whatever a word, an address or a command line turns out to name. */
async function sniffed(io: Io, text: string, flags: TargetFlags): Promise<readonly CheckTarget[]> {
  const found = await findTarget(io, text);
  switch (found.kind) {
    case "openapi":
      return direct(io, { openapi: text }, flags);
    case "gateway":
      return gateway(io, text, flags);
    case "mcp":
      return direct(io, { mcp: text }, flags);
    case "source":
      return [fromSource(found)];
  }
}

function fromSource({ name, key, loaded }: NamedSource): CheckTarget {
  const { mcpServers = {}, openapi = {} } = loaded.config;
  const fault = Object.hasOwn(loaded.faults, key) ? loaded.faults[key] : undefined;
  if (fault !== undefined) throw new CommandError(`The source "${name}" cannot be used: ${fault}`);
  const { baseDir, secrets } = loaded;
  const mask = (text: string) => secrets.mask(text);
  const own = key.slice(key.indexOf(".") + 1);
  const server = key.startsWith("mcpServers.") ? mcpServers[own] : undefined;
  const source = sourceNames(loaded.config).get(key) ?? own;
  if (server !== undefined) {
    const login = loginOfServer(source, server, loaded);
    return { kind: "mcp", label: name, server, baseDir, mask, login };
  }
  const api = openapi[own] as OpenApiConfig;
  return { kind: "openapi", label: name, api, baseDir, mask, login: loginOfApi(source, api, loaded) };
}

/** How a report is written for people. */
interface ReportStyle {
  readonly stream: { readonly isTTY?: boolean };
  readonly env: NodeJS.ProcessEnv;
  /** Lists what passed and what was skipped as well. */
  readonly verbose: boolean;
  readonly strict: boolean;
}

const MARKS: Readonly<Record<CheckStatus, string>> = {
  fail: "FAIL",
  warn: "warn",
  skip: "skip",
  pass: "pass",
};
/** Checks of one kind that are shown one by one. */
const SHOWN_EACH = 10;

/** Writes a report for people: failures first, then warnings, each with what to do; the rest is counted. */
export function toReportText(report: CheckReport, { stream, env, verbose, strict }: ReportStyle): string {
  const style = createStyle(stream, env);
  const { name, version, protocol, target, kind, checks } = report;
  const what = [name, version].filter(Boolean).join(" ");
  const facts = [kind === "mcp" ? "MCP server" : "OpenAPI document", what, protocol && `MCP ${protocol}`];
  const lines = [`${style.bold(safeLine(target))}  ${style.dim(facts.filter(Boolean).join(", "))}`, ""];
  const shown: readonly CheckStatus[] = verbose ? ["fail", "warn", "skip", "pass"] : ["fail", "warn"];
  for (const status of shown) {
    const some = checks.filter((check) => check.status === status);
    if (some.length > 0) lines.push(...toGroups(some, style, verbose), "");
  }
  if (!verbose) lines.push(...toSkipped(checks, style));
  lines.push(toSummary(report, style, strict));
  return `${lines.join("\n")}\n`;
}

function toGroups(checks: readonly Check[], style: Style, verbose: boolean): string[] {
  const groups = new Map<string, Check[]>();
  for (const check of checks) groups.set(check.id, [...(groups.get(check.id) ?? []), check]);
  return [...groups.values()].flatMap((group) => toGroup(group, style, verbose));
}

function toGroup(group: readonly Check[], style: Style, verbose: boolean): string[] {
  const [first] = group;
  if (first === undefined) return [];
  const { status, id, title } = first;
  const lines = [`${paint(status, style)(MARKS[status])}  ${title}  ${style.dim(id)}`];
  const shown = verbose ? group : group.slice(0, SHOWN_EACH);
  for (const { subject, message, evidence } of shown) {
    lines.push(`      ${subject === "" ? "" : `${style.bold(subject)}: `}${message}`);
    if (evidence !== undefined) lines.push(`        ${style.dim(`seen: ${safeLine(evidence, 200)}`)}`);
  }
  const rest = group.length - shown.length;
  if (rest > 0) lines.push(`      … and ${rest} more (--verbose shows all)`);
  for (const fix of new Set(group.map((check) => check.fix))) {
    if (fix !== undefined) lines.push(`      ${style.cyan("fix:")} ${fix}`);
  }
  return lines;
}

/** What was not looked at, by reason and by name: nobody should take it for looked at. */
function toSkipped(checks: readonly Check[], style: Style): string[] {
  const reasons = new Map<string, string[]>();
  for (const { status, message, subject } of checks) {
    if (status === "skip") reasons.set(message, [...(reasons.get(message) ?? []), subject]);
  }
  const most = [...reasons].sort((a, b) => b[1].length - a[1].length).slice(0, 5);
  const lines = most.map(([reason, subjects]) => style.dim(`skip  ${namesOf(subjects)}${reason}`));
  const rest = reasons.size - most.length;
  if (rest > 0) lines.push(style.dim(`skip  … and ${counted(rest, "other reason")} (--verbose shows all)`));
  return lines.length === 0 ? [] : [...lines, ""];
}

/** Names of what was skipped that are shown with one reason. */
const SHOWN_NAMES = 3;

function namesOf(subjects: readonly string[]): string {
  const named = subjects.filter((subject) => subject !== "");
  if (named.length === 0) return subjects.length > 1 ? `${subjects.length} × ` : "";
  const left = subjects.length - Math.min(named.length, SHOWN_NAMES);
  return `${named.slice(0, SHOWN_NAMES).join(", ")}${left > 0 ? ` and ${left} more` : ""}: `;
}

function toSummary(report: CheckReport, style: Style, strict: boolean): string {
  const { counts, omitted, reachable, notCalled } = report;
  const { pass, warn, fail, skip } = counts;
  const isBad = fail > 0 || (strict && warn > 0);
  const called = notCalled === undefined ? "passed" : `not called (${notCalled}); the document reads well`;
  const verdict = !reachable ? "cannot be reached" : isBad ? "failed" : called;
  const numbers = `${fail} failed, ${warn} warned, ${pass} passed, ${skip} skipped`;
  const left = omitted > 0 ? `; ${counted(omitted, "check is", "checks are")} not listed` : "";
  const tone = isBad || !reachable ? style.red : notCalled === undefined ? style.green : style.yellow;
  return `${tone(verdict)}: ${numbers}${left}`;
}

function paint(status: CheckStatus, style: Style): (text: string) => string {
  return { fail: style.red, warn: style.yellow, skip: style.dim, pass: style.green }[status];
}

/** What XML 1.0 cannot hold, not even as a reference; the texts of a report are cleaned already, and this does not rely on it. */
const NOT_XML =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
  "\n": "&#10;",
  "\r": "&#13;",
  "\t": "&#9;",
};

/** Writes text so that XML holds it, in an attribute as well as between tags: `]]>` cannot come about either. */
export function escapeXml(text: string): string {
  return text.replace(NOT_XML, "\ufffd").replace(/[&<>"'\n\r\t]/g, (found) => ENTITIES[found] as string);
}

/** Writes reports as JUnit XML: a suite for each report, a case for each check; warnings fail with `strict`. */
export function toJunit(reports: readonly CheckReport[], options: { readonly strict: boolean }): string {
  const suites = reports.map((report) => toSuite(report, options.strict));
  const sum = (field: "tests" | "failures" | "skipped") =>
    suites.reduce((total, suite) => total + suite[field], 0);
  const head = attributes({
    name: "waybill check",
    tests: sum("tests"),
    failures: sum("failures"),
    errors: 0,
    skipped: sum("skipped"),
  });
  const body = suites.map(({ xml }) => xml).join("");
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${head}>\n${body}</testsuites>\n`;
}

interface Suite {
  readonly xml: string;
  readonly tests: number;
  readonly failures: number;
  readonly skipped: number;
}

function toSuite({ target, kind, checks }: CheckReport, strict: boolean): Suite {
  const isFailure = ({ status }: Check) => status === "fail" || (strict && status === "warn");
  const tests = checks.length;
  const failures = checks.filter(isFailure).length;
  const skipped = checks.filter(({ status }) => status === "skip").length;
  const head = attributes({ name: `${kind}: ${target}`, tests, failures, errors: 0, skipped });
  const cases = checks.map((check) => toCase(check, isFailure(check))).join("");
  return { xml: `  <testsuite ${head}>\n${cases}  </testsuite>\n`, tests, failures, skipped };
}

function toCase(check: Check, isFailure: boolean): string {
  const { id, title, subject, status, message } = check;
  const head = attributes({ classname: id, name: subject === "" ? title : `${title}: ${subject}` });
  const inner = isFailure
    ? `<failure ${attributes({ type: status, message })}>${escapeXml(bodyOf(check))}</failure>`
    : status === "skip"
      ? `<skipped ${attributes({ message })}/>`
      : status === "warn"
        ? `<system-out>${escapeXml(`warning: ${bodyOf(check)}`)}</system-out>`
        : "";
  return inner === "" ? `    <testcase ${head}/>\n` : `    <testcase ${head}>${inner}</testcase>\n`;
}

function bodyOf({ message, evidence, fix }: Check): string {
  return [message, evidence && `seen: ${evidence}`, fix && `fix: ${fix}`].filter(Boolean).join("\n");
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escapeXml(String(value))}"`)
    .join(" ");
}
