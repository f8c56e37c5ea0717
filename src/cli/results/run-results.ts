import { parseJsonTextOrNone } from "../../core/json/json-value.ts";
import {
  FORMAT_NAMES,
  type FormatName,
  type ResultError,
  type ToolResult,
} from "../../core/result/tool-result.ts";
import { safeLine, safeText } from "../../core/text/clean-text.ts";
import { didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import { decodeToolResult, FORMATS, transcode } from "../../formats/index.ts";
import { type ResultReport, reportResult } from "../../formats/report/describe-result.ts";
import { findResults, withoutMark } from "../../formats/report/find-results.ts";
import type { FailureKind } from "../../formats/report/found-result.ts";
import { ResultTextError, toResultTextError } from "../../formats/report/found-result.ts";
import { encodeResult } from "../../formats/transcode.ts";
import { parseGivenJson, readGivenFile, readStdin, textOfBytes } from "../call/given-file.ts";
import { checkChoice, parseWholeNumber } from "../flags.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { spelledCommand } from "../pasted-command.ts";
import { createStyle, paintJson, type Style, toSafeJson } from "../terminal/style.ts";

/** The flags of `waybill transcode`. */
export interface TranscodeFlags {
  readonly to: string;
  readonly from?: string;
  readonly residual?: boolean;
  readonly lenient?: boolean;
}

const FAILURES: Readonly<Record<FailureKind, string>> = {
  "json-rpc-error": "a JSON-RPC error",
  problem: "a problem of an HTTP API",
  "call-error": "the fixture of a call that failed",
};

/** Writes the results in a file or on stdin in another format. */
export async function runTranscode(io: Io, file: string | undefined, flags: TranscodeFlags): Promise<number> {
  const to = parseFormat(flags.to, "--to");
  const from = flags.from === undefined ? undefined : parseFormat(flags.from, "--from");
  const { text, what } = await readGiven(io, file, "transcode --to mcp");
  const { lenient, residual = true } = flags;
  const lost = new Set<string>();
  for (const found of orCommandError(what, () => findResults(text, what))) {
    const place = found.line === undefined ? what : `Line ${found.line}`;
    if ("failure" in found) {
      throw new CommandError(
        `${place} is ${FAILURES[found.failure]}, and no result; there is nothing to write.`,
      );
    }
    orCommandError(place, () => {
      const written = transcode(found.value, to, { from, residual, lenient });
      for (const pointer of lossesOf(found.value, to, { from, lenient })) lost.add(pointer);
      writeJson(io, written);
    });
  }
  if (lost.size > 0 && !io.quiet) io.stderr.write(`waybill: ${lossText(lost, to, residual)}\n`);
  return EXIT.ok;
}

function lossesOf(
  value: unknown,
  to: FormatName,
  { from, lenient }: { readonly from: FormatName | undefined; readonly lenient: boolean | undefined },
): readonly string[] {
  const result: ToolResult | undefined =
    from === undefined
      ? decodeToolResult(value, { lenient }).result
      : FORMATS[from].decode(value, { lenient }).result;
  return result === undefined ? [] : FORMATS[to].losses(result);
}

/** Says what a format has no place for, and what became of it. */
function lossText(lost: Iterable<string>, to: FormatName, residual: boolean): string {
  const pointers = [...lost].sort().map((pointer) => safeLine(pointer, 100));
  const shown =
    pointers.slice(0, 20).join(", ") + (pointers.length > 20 ? ` and ${pointers.length - 20} more` : "");
  const fate = residual ? 'travels in _meta["dev.waybill/result"] and comes back' : "is gone or made up";
  return `${to} has no place for everything; what differs ${fate}: ${shown}.`;
}

/** The flags of `waybill decode`. */
export interface DecodeFlags {
  readonly data?: boolean;
  readonly json?: boolean;
  readonly losses?: boolean;
  readonly strict?: boolean;
  readonly lenient?: boolean;
  readonly recoverJson?: boolean;
}

/** Says what the results in a file or on stdin are. */
export async function runDecode(io: Io, file: string | undefined, flags: DecodeFlags): Promise<number> {
  if (flags.data && flags.json) throw new CommandError("--data and --json exclude each other; choose one.");
  const { text, what } = await readGiven(io, file, "decode");
  const { lenient, recoverJson, losses = flags.json } = flags;
  const found = orCommandError(what, () => findResults(text, what));
  const reports = found.map((one, at) => {
    const place =
      one.line === undefined ? (found.length > 1 ? `Result ${at + 1}` : what) : `Line ${one.line}`;
    return orCommandError(place, () => reportResult(one, place, { lenient, recoverJson, losses }));
  });
  for (const [at, report] of reports.entries()) {
    if (at > 0 && !flags.data && !flags.json) io.stdout.write("\n");
    write(io, report, flags);
  }
  const isOdd = reports.some(
    (report) => report.odd.length > 0 || report.format === "ambiguous" || isFailure(report),
  );
  return flags.strict && isOdd ? EXIT.toolError : EXIT.ok;
}

function write(io: Io, report: ResultReport, flags: DecodeFlags): void {
  if (flags.data) writeData(io, report);
  else if (flags.json) io.stdout.write(`${toSafeJson(report)}\n`);
  else {
    const style = createStyle(io.stdout, io.env);
    const head = report.line === undefined ? "" : `${style.dim(`— line ${report.line}`)}\n`;
    io.stdout.write(`${head}${writeResultReport(report, style)}`);
  }
}

function writeData(io: Io, { data, format, line }: ResultReport): void {
  if (data !== undefined) {
    writeJson(io, data);
    return;
  }
  const where = line === undefined ? "" : ` in line ${line}`;
  const why =
    format === "ambiguous"
      ? "more than one format fits, and each reads other data; look at it without --data"
      : "it is an error that carries none";
  throw new CommandError(`The result${where} has no data: ${why}.`, EXIT.toolError);
}

/** The flags of `waybill encode`. */
export interface EncodeFlags {
  readonly to: string;
  readonly text?: readonly string[];
  readonly tool?: string;
  readonly toolVersion?: string;
  readonly requestId?: string;
  readonly timestamp?: string;
  readonly durationMs?: string;
  readonly tier?: string;
  readonly status?: string;
  readonly summary?: string;
  readonly detail?: readonly string[];
  readonly nextStep?: readonly string[];
  readonly error?: string;
  readonly message?: string;
  readonly category?: string;
  readonly suggestion?: string;
  readonly residual?: boolean;
}

/** Writes data as a tool result. */
export async function runEncode(io: Io, given: string | undefined, flags: EncodeFlags): Promise<number> {
  const to = parseFormat(flags.to, "--to");
  const { residual = true } = flags;
  const described = resultOf(flags);
  const data = await readData(io, given, described.error !== undefined);
  const result: ToolResult = { ...described, ...(data !== undefined && { data: data.value }) };
  orCommandError("The result", () => {
    const written = encodeResult(result, to, { residual });
    const lost = FORMATS[to].losses(result);
    writeJson(io, written);
    if (lost.length > 0 && !io.quiet && !residual)
      io.stderr.write(`waybill: ${lossText(lost, to, residual)}\n`);
  });
  return EXIT.ok;
}

/** An argument that is JSON is the data, any other names a file; an error needs none, and waits for none. */
async function readData(
  io: Io,
  given: string | undefined,
  isError: boolean,
): Promise<{ readonly value: unknown } | undefined> {
  if (given === undefined && isError) return undefined;
  const value = given === undefined ? undefined : parseJsonTextOrNone(given);
  if (value !== undefined) return { value };
  if (given !== undefined && /^\s*[[{"]/.test(given)) return { value: parseGivenJson(given, "The data") };
  const file = given?.startsWith("@") ? given.slice(1) : given;
  const { text, what } = await readGiven(io, file, "encode");
  return { value: parseGivenJson(text, what) };
}

function resultOf(flags: EncodeFlags): ToolResult {
  const error = errorOf(flags);
  const { text, tool, toolVersion, requestId, timestamp, summary, detail, nextStep } = flags;
  const status = flags.status && checkChoice(flags.status, "--status", ["ok", "error", "info", "warn"]);
  const tier = flags.tier && checkChoice(flags.tier, "--tier", ["community", "pro", "enterprise"]);
  const duration = flags.durationMs && parseWholeNumber(flags.durationMs, "--duration-ms", [0, 1e12]);
  if (timestamp !== undefined && Number.isNaN(Date.parse(timestamp))) {
    throw new CommandError("--timestamp takes a time such as 2025-06-17T18:30:00Z.");
  }
  return {
    isError: error !== undefined || status === "error",
    ...(error && { error }),
    ...(text && { content: text.map((words) => ({ type: "text" as const, text: words })) }),
    ...(status && { status }),
    ...(summary !== undefined && { summary }),
    ...(detail && { details: detail }),
    ...(nextStep && { nextSteps: nextStep }),
    ...(tool !== undefined && { tool }),
    ...(toolVersion !== undefined && { toolVersion }),
    ...(requestId !== undefined && { requestId }),
    ...(timestamp !== undefined && { timestamp }),
    ...(duration !== undefined && duration !== "" && { durationMs: duration }),
    ...(tier && { tier }),
  };
}

function errorOf({ error, message, category, suggestion }: EncodeFlags): ResultError | undefined {
  if (error === undefined) {
    const stray =
      message === undefined
        ? category === undefined
          ? suggestion && "--suggestion"
          : "--category"
        : "--message";
    if (stray) throw new CommandError(`${stray} goes with --error <code>, which says that the tool failed.`);
    return undefined;
  }
  return {
    message: message ?? `The tool failed with ${error}.`,
    code: error,
    ...(category !== undefined && { category }),
    ...(suggestion !== undefined && { suggestedAction: suggestion }),
  };
}

/** A text that was given, and what to call it in messages. */
interface GivenText {
  readonly text: string;
  readonly what: string;
}

/** Reads the file that was named, or stdin: `-`, or no file. A terminal is not waited for unless `-` asks for it. */
async function readGiven(io: Io, file: string | undefined, command: string): Promise<GivenText> {
  if (file !== undefined && file !== "-") {
    const what = `The file "${safeLine(file, 200)}"`;
    return { text: withoutMark(textOfBytes(await readGivenFile(file, io.cwd), what)), what };
  }
  if (file === undefined && io.stdin.isTTY) {
    throw new CommandError(
      `There is nothing to read: name a file ("${spelledCommand(io)} ${command} result.json"), pipe something in, or say "-" to type it.`,
    );
  }
  return { text: withoutMark(await readStdin(io)), what: "The input on stdin" };
}

/** Reads the name of a format, or says which there are. */
function parseFormat(text: string, flag: string): FormatName {
  const known = FORMAT_NAMES.find((name) => name === text);
  if (known !== undefined) return known;
  const hint = didYouMean(nearestName(text, FORMAT_NAMES), `; there are ${FORMAT_NAMES.join(", ")}.`);
  throw new CommandError(`There is no format "${safeLine(text, 80)}" for ${flag}${hint}`);
}

/** Runs what reads or writes results; what is wrong with them ends the command with the same words. `what` names the result. */
function orCommandError<T>(what: string, run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    const error = toResultTextError(thrown, what);
    if (error instanceof ResultTextError)
      throw new CommandError(error.message, undefined, { cause: error.cause });
    throw error;
  }
}

/** Writes JSON to stdout: on a terminal with line breaks and colours, in a pipe one line. */
function writeJson(io: Io, value: unknown): void {
  const isTerminal = io.stdout.isTTY === true;
  const json = toSafeJson(value, isTerminal ? 2 : 0);
  io.stdout.write(`${isTerminal ? paintJson(json, createStyle(io.stdout, io.env)) : json}\n`);
}

const FORMAT_TITLES: Readonly<Record<ResultReport["format"], string>> = {
  "tool-envelope": "ToolEnvelope V1",
  "tiered-envelope": "tiered response envelope V1.0",
  "status-envelope": "structured tool response",
  mcp: "MCP's own result",
  "response-envelope": "Waybill's ResponseEnvelope",
  "json-rpc-error": "the call failed: there is no result",
  problem: "an HTTP API answered with an error: there is no result",
  "call-error": "a fixture of a call that failed: there is no result",
  ambiguous: "more than one format fits",
};

const OBTAINED: Readonly<Record<string, string>> = {
  "structured-content": "structured content",
  "envelope-block": "an envelope block",
  "contract-json": "the JSON of an envelope in a text block",
  "text-json": "JSON in a text block",
  content: "the content blocks, because there is no structured content",
  body: "the body of an HTTP response",
  members: "the members of the result",
  "return-value": "what an operation returned",
};

const WRAPPINGS: Readonly<Partial<Record<ResultReport["wrapping"], string>>> = {
  "json-rpc": "a JSON-RPC response",
  "event-stream": "a stream of events",
  fixture: "a fixture that the inspector exported",
  "bare-envelope": "nothing: an envelope without a tool result around it",
  "envelope-line": "nothing: the envelope block alone",
  "content-block": "nothing: one content block",
  "content-list": "nothing: a list of content blocks",
  text: "nothing: the text alone",
};

const MAX_TEXT_LINES = 12;
const LABEL = 10;

/** Writes a report for people, with a line feed at the end. */
function writeResultReport(report: ResultReport, style: Style): string {
  const rows: [string, string][] = [
    ["format", `${style.bold(report.format)} (${FORMAT_TITLES[report.format]})`],
    ["wrapped in", WRAPPINGS[report.wrapping] ?? ""],
    ...(report.notes ?? []).map((note): [string, string] => ["note", safeLine(note)]),
    ["tool", safeLine(report.tool ?? "")],
    ["outcome", outcomeText(report, style)],
    ...report.odd.map(({ code, message }): [string, string] => [
      "odd",
      `${style.yellow(code)}: ${safeText(message)}`,
    ]),
    ["data from", report.obtained === undefined ? "" : (OBTAINED[report.obtained] ?? report.obtained)],
  ];
  const lines = rows.filter(([, text]) => text !== "").map(([label, text]) => row(label, text, style));
  return `${[...lines, ...sections(report, style)].join("\n")}\n`;
}

function row(label: string, text: string, style: Style): string {
  return `${style.dim(label.padEnd(LABEL))}  ${indented(text, LABEL + 2)}`;
}

function indented(text: string, columns: number): string {
  return text.replace(/\n/g, `\n${" ".repeat(columns)}`);
}

const FAILED_FORMATS: ReadonlySet<ResultReport["format"]> = new Set([
  "json-rpc-error",
  "problem",
  "call-error",
]);

/** Tells whether what was given holds an error in place of a result. */
function isFailure({ format }: Pick<ResultReport, "format">): boolean {
  return FAILED_FORMATS.has(format);
}

function outcomeText(report: ResultReport, style: Style): string {
  const { isError, error } = report;
  if (!isError) return style.green("ok");
  const word = isFailure(report) ? "call" : "tool";
  const advice = [
    ...(error?.retryable === undefined
      ? []
      : [error.retryable ? "may work later" : "the same call will not work later"]),
    ...(error?.correctable === true ? ["a better input may work"] : []),
  ];
  const hint = error?.suggestedAction === undefined ? "" : `\nsuggestion: ${safeText(error.suggestedAction)}`;
  const rest = advice.length === 0 ? "" : ` (${advice.join("; ")})`;
  return `${style.red(`${word} error ${errorText(error)}`)}${rest}${hint}`;
}

function errorText(error: ResultReport["error"]): string {
  const code = error?.code ?? error?.category;
  return `${code === undefined ? "" : `${safeLine(code, 100)}: `}${safeLine(error?.message ?? "", 500)}`;
}

function sections(report: ResultReport, style: Style): readonly string[] {
  const lines: string[] = [];
  // Of a failure, the text is why it failed, which is told already.
  if (report.text !== "" && report.obtained !== "content" && !isFailure(report))
    lines.push(style.dim("text"), ...textLines(report.text));
  if (report.data !== undefined) lines.push(style.dim("data"), jsonText(report.data, style));
  else if (report.error?.details !== undefined)
    lines.push(style.dim("details"), jsonText(report.error.details, style));
  for (const { format, data, obtained } of report.candidates ?? []) {
    lines.push(
      `${style.dim("as")} ${style.bold(format)}, from ${OBTAINED[obtained] ?? obtained}`,
      jsonText(data, style),
    );
  }
  for (const [format, pointers] of Object.entries(report.losses ?? {})) {
    const lost =
      pointers.length === 0 ? "nothing" : pointers.map((pointer) => safeLine(pointer, 200)).join(" ");
    lines.push(`${style.dim("lost as")} ${format.padEnd(17)} ${lost}`);
  }
  return lines;
}

function textLines(text: string): readonly string[] {
  const lines = safeText(text).split("\n");
  const shown = lines.slice(0, MAX_TEXT_LINES).map((line) => `  ${line}`);
  const more = lines.length - MAX_TEXT_LINES;
  return more > 0 ? [...shown, `  … ${more} more ${more === 1 ? "line" : "lines"}`] : shown;
}

function jsonText(value: unknown, style: Style): string {
  return `  ${indented(paintJson(toSafeJson(value, 2), style), 2)}`;
}
