import { safeLine, safeText } from "../../core/text/safe-text.ts";
import type { ResultReport } from "../../formats/report/describe-result.ts";
import { paintJson, toSafeJson } from "../terminal/json-output.ts";
import type { Style } from "../terminal/style.ts";

const FORMAT_TITLES: Readonly<Record<ResultReport["format"], string>> = {
  "tool-envelope": "ToolEnvelope V1",
  "tiered-envelope": "tiered response envelope V1.0",
  "status-envelope": "structured tool response",
  mcp: "MCP's own result",
  "response-envelope": "Waybill's ResponseEnvelope",
  "json-rpc-error": "the call failed: there is no result",
  problem: "an HTTP API said no: there is no result",
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
export function writeResultReport(report: ResultReport, style: Style): string {
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

const FAILURES: ReadonlySet<ResultReport["format"]> = new Set(["json-rpc-error", "problem", "call-error"]);

/** Tells whether what was given holds an error in place of a result. */
export function isFailure({ format }: Pick<ResultReport, "format">): boolean {
  return FAILURES.has(format);
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
