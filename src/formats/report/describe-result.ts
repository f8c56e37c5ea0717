import { isPlainObject } from "../../core/json/json-value.ts";
import { FORMAT_NAMES, type FormatName } from "../../core/result/tool-result.ts";
import { cleanText, describeFindings, type TextFinding } from "../../core/text/clean-text.ts";
import type { Oddity } from "../codec.ts";
import { type DecodedToolResult, type DecodeOptions, decodeToolResult } from "../decode-tool-result.ts";
import { FORMATS } from "../formats.ts";
import type { FoundResult, Wrapping } from "./find-results.ts";
import { ResultTextError, toResultTextError } from "./result-text-error.ts";

/** All that is known of one result, as `--json` prints it. */
export interface ResultReport extends Omit<DecodedToolResult, "format" | "result"> {
  readonly format: DecodedToolResult["format"] | "json-rpc-error";
  /** How the result was wrapped in what was given. */
  readonly wrapping: Wrapping;
  /** The line it stood in, where there are several. */
  readonly line?: number;
  /** Who answered, as far as the result says. */
  readonly tool?: string;
  /** What each other format has no place for, as pointers into the canonical result. */
  readonly losses?: Readonly<Partial<Record<FormatName, readonly string[]>>>;
}

/** How results are looked at. */
export interface DescribeOptions extends DecodeOptions {
  /** Tells what each other format would lose. @default false */
  readonly losses?: boolean | undefined;
}

/** Finds out what was given; what is no result at all is a `ResultTextError`. */
export function describeResult(found: FoundResult, what: string, options: DescribeOptions): ResultReport {
  const place = found.line === undefined ? {} : { line: found.line };
  if ("rpcError" in found) return { ...describeRpcError(found.rpcError), ...place };
  const { losses, ...reading } = options;
  const { result, ...decoded } = decodeOrRefuse(found.value, what, reading);
  if (found.wrapping === "bare-envelope" && decoded.format === "mcp") throw notAnEnvelope(what);
  return {
    ...decoded,
    odd: [...decoded.odd, ...hiddenIn(decoded)],
    wrapping: found.wrapping,
    ...place,
    ...(result?.tool !== undefined && { tool: result.tool }),
    ...(losses === true && result !== undefined && { losses: lossesOf(result, decoded.format) }),
  };
}

function decodeOrRefuse(value: unknown, what: string, options: DecodeOptions): DecodedToolResult {
  try {
    return decodeToolResult(value, options);
  } catch (thrown) {
    throw toResultTextError(thrown, what);
  }
}

function notAnEnvelope(what: string): ResultTextError {
  return new ResultTextError(
    `${what} looks like an envelope without a result around it, and is of no known format; "waybill encode" makes a result of data.`,
  );
}

function describeRpcError({ code, message }: Readonly<Record<string, unknown>>): ResultReport {
  const said = typeof message === "string" ? message : "The server gave no reason.";
  return {
    format: "json-rpc-error",
    isError: true,
    error: { message: said, ...(code !== undefined && { code: String(code) }) },
    text: said,
    odd: hiddenIn({ text: said }),
    wrapping: "json-rpc",
  };
}

function lossesOf(
  result: NonNullable<DecodedToolResult["result"]>,
  found: DecodedToolResult["format"],
): Partial<Record<FormatName, readonly string[]>> {
  const others = FORMAT_NAMES.filter((format) => format !== found);
  return Object.fromEntries(others.map((format) => [format, FORMATS[format].losses(result)]));
}

/** What hides in the text for people, and in the texts of the data. */
function hiddenIn({
  text,
  data,
  obtained,
}: Pick<DecodedToolResult, "text" | "data" | "obtained">): readonly Oddity[] {
  const odd: Oddity[] = [];
  const inText = cleanText(text).findings;
  if (inText.length > 0) odd.push({ code: "hidden_in_text", message: hiding("The text", inText) });
  // Without structured data, the data is the same text once more.
  const inData = obtained === "content" ? [] : findingsIn(data);
  if (inData.length > 0) odd.push({ code: "hidden_in_data", message: hiding("The data", inData) });
  return odd;
}

function hiding(what: string, findings: readonly TextFinding[]): string {
  return `${what} holds characters that people do not see or terminals act on: ${describeFindings(findings)}.`;
}

function findingsIn(data: unknown): readonly TextFinding[] {
  const counts = new Map<TextFinding["kind"], number>();
  const left: unknown[] = [data];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next === "string") {
      for (const { kind, count } of cleanText(next).findings)
        counts.set(kind, (counts.get(kind) ?? 0) + count);
    } else if (Array.isArray(next)) for (const item of next) left.push(item);
    else if (isPlainObject(next)) for (const [key, member] of Object.entries(next)) left.push(key, member);
  }
  return Array.from(counts, ([kind, count]) => ({ kind, count }));
}
