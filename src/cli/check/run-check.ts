import { readFile, stat, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { safeLine } from "../../core/text/safe-text.ts";
import { toApiOptions, toDocument } from "../../gateway/sources/openapi-source.ts";
import { parseGivenJson } from "../call/parse-json.ts";
import { configuredConnection } from "../configured-connection.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { assertBaseUrl } from "../target-config.ts";
import { toSafeJson } from "../terminal/json-output.ts";
import { withProgress } from "../terminal/progress.ts";
import type { CheckReport } from "./check-report.ts";
import { type CheckTarget, findTargets, type TargetFlags } from "./check-target.ts";
import { toJunit } from "./write-junit.ts";
import { toReportText } from "./write-report.ts";

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
  await write(io, reports, flags, strict);
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
    const connection = { timeoutMs, ...(await configuredConnection(target.server, baseDir)) };
    return checkMcp({ ...shared, connection, calls: { all: flags.callAll === true, named, inputs } });
  }
  const { checkOpenApi } = await import("./check-openapi.ts");
  const { keepIds: _, ...options } = toApiOptions(target.api);
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
  { junit, json }: CheckFlags,
  strict: boolean,
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
