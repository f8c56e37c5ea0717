import { joinPointer } from "../../core/json/json-pointer.ts";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { FORMAT_NAMES, type FormatName, textOf } from "../../core/result/tool-result.ts";
import { isEqual } from "../../core/schema/compare-values.ts";
import { cleanText, describeFindings, safeLine, type TextFinding } from "../../core/text/clean-text.ts";
import type { Oddity } from "../codec.ts";
import { type DecodedToolResult, type DecodeOptions, decodeToolResult } from "../decode-tool-result.ts";
import { FORMATS } from "../transcode.ts";
import {
  type FailureKind,
  type FoundFailure,
  type FoundPlace,
  type FoundResult,
  foundPlaceOf,
  ResultTextError,
  toResultTextError,
} from "./found-result.ts";

/** All that is known of one result, as `--json` prints it. */
export interface ResultReport extends Omit<DecodedToolResult, "format" | "result">, FoundPlace {
  readonly format: DecodedToolResult["format"] | FailureKind;
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
export function reportResult(found: FoundResult, what: string, options: DescribeOptions): ResultReport {
  if ("failure" in found) return describeFailure(found);
  const { losses, ...reading } = options;
  const { result, ...decoded } = decodeOrRefuse(found.value, what, reading);
  if (found.wrapping === "bare-envelope" && decoded.format === "mcp") throw notAnEnvelope(what);
  return {
    ...decoded,
    odd: [...decoded.odd, ...contradictionsIn(found.value), ...hiddenIn(decoded)],
    ...foundPlaceOf(found),
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

function contradictionsIn(value: unknown): readonly Oddity[] {
  const found = findContradiction(value);
  return found === undefined ? [] : [found];
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

type Told = Pick<ResultReport, "data" | "obtained"> & { readonly error: NonNullable<ResultReport["error"]> };

/** Tells of what stands in place of a result, in the words of its author. */
function describeFailure(found: FoundFailure): ResultReport {
  const told = READERS[found.failure](found.error);
  const { message: text } = told.error;
  const { data } = told;
  return {
    format: found.failure,
    isError: true,
    ...told,
    text,
    odd: hiddenIn({ text, data }),
    ...foundPlaceOf(found),
  };
}

const NO_REASON = "The server gave no reason.";

const READERS: Readonly<Record<FoundFailure["failure"], (error: FoundFailure["error"]) => Told>> = {
  "json-rpc-error": ({ code, message, data }) => ({
    error: {
      message: typeof message === "string" ? message : NO_REASON,
      ...(code !== undefined && { code: String(code) }),
      ...(data !== undefined && { details: data }),
    },
  }),
  problem: (problem) => ({
    error: { message: reasonOf(problem), ...codeOf(problem) },
    data: problem,
    obtained: "body",
  }),
  "call-error": ({ code, message, details, retryable, correctable }) => ({
    error: {
      message: typeof message === "string" ? message : NO_REASON,
      ...(typeof code === "string" && { code }),
      ...(details !== undefined && { details }),
      ...(typeof retryable === "boolean" && { retryable }),
      ...(typeof correctable === "boolean" && { correctable }),
    },
  }),
};

function reasonOf({ title, detail }: FoundFailure["error"]): string {
  const told = [title, detail].filter((text) => typeof text === "string" && text !== "");
  return told.length === 0 ? NO_REASON : [...new Set(told)].join(": ");
}

/** The code that some add, or the status. */
function codeOf({ code, status }: FoundFailure["error"]): { readonly code?: string } {
  if (typeof code === "string") return { code };
  return typeof status === "number" ? { code: String(status) } : {};
}

/** Finds a text block that is JSON and says something else than the structured content: models read one, programs the other. */
export function findContradiction(value: unknown): Oddity | undefined {
  const parts = partsOf(value);
  if (parts === undefined) return undefined;
  const { content, structured } = parts;
  let odd: Oddity | undefined;
  for (const [at, block] of content.entries()) {
    const text = textOf(block);
    const said = text === undefined ? undefined : parseJsonTextOrNone(text);
    if (said === undefined || !isComparable(said, structured)) continue;
    if (!isMirror(said, structured, at)) odd ??= contradiction(at, differenceFrom(structured, said));
    // An envelope says once what it is; texts besides are for people, and may be the envelope it was made of.
    else if (isEnvelope(structured)) return undefined;
  }
  return odd;
}

function isEnvelope(structured: unknown): boolean {
  return isPlainObject(structured) && Object.hasOwn(structured, "data");
}

interface Parts {
  readonly content: readonly unknown[];
  readonly structured: unknown;
}

/** A tool result, or what an envelope of ours says of one. */
function partsOf(value: unknown): Parts | undefined {
  if (!isPlainObject(value)) return undefined;
  const holder = "structuredContent" in value ? value : value["meta"];
  if (!isPlainObject(holder) || !Object.hasOwn(holder, "structuredContent")) return undefined;
  const { content, structuredContent } = holder;
  if (!Array.isArray(content) || structuredContent === undefined) return undefined;
  return { content, structured: structuredContent };
}

/** A number or a word may be a text for people; only beside data of its own kind is it meant as data. */
function isComparable(said: unknown, structured: unknown): boolean {
  return (typeof said === "object" && said !== null) || typeof said === typeof structured;
}

/** The same, with or without what each is wrapped in, or the item of a list that is told one block for each. */
function isMirror(said: unknown, structured: unknown, at: number): boolean {
  const [sayings, wholes] = [unwrapped(said), unwrapped(structured)];
  const isItem = (whole: unknown): boolean => Array.isArray(whole) && isEqual(said, whole[at]);
  return wholes.some((whole) => isItem(whole) || sayings.some((saying) => isEqual(saying, whole)));
}

function unwrapped(value: unknown): readonly unknown[] {
  return [value, ...wrappedIn(value).map((inner) => inner.value)];
}

interface Wrapped {
  readonly key: string;
  readonly value: unknown;
}

/** Servers wrap what is no object as `result`, and envelopes hold their data as `data`: their texts may be that alone. */
function wrappedIn(structured: unknown): readonly Wrapped[] {
  if (!isPlainObject(structured)) return [];
  const isWrapper = Object.hasOwn(structured, "result") && Object.keys(structured).length === 1;
  return [
    ...(isWrapper ? [{ key: "result", value: structured["result"] }] : []),
    ...(isEnvelope(structured) ? [{ key: "data", value: structured["data"] }] : []),
  ];
}

/** The first pointer into the structured content, or into the text, behind which they differ. */
function differenceFrom(structured: unknown, said: unknown): string {
  const inner = Array.isArray(said)
    ? wrappedIn(structured).find(({ value }) => Array.isArray(value))
    : undefined;
  return inner === undefined
    ? (firstDifference(structured, said) ?? "")
    : `/${inner.key}${firstDifference(inner.value, said) ?? ""}`;
}

function firstDifference(a: unknown, b: unknown): string | undefined {
  if (Array.isArray(a) && Array.isArray(b)) return firstDifferentItem(a, b);
  if (isPlainObject(a) && isPlainObject(b)) return firstDifferentMember(a, b);
  return a === b ? undefined : "";
}

function firstDifferentItem(a: readonly unknown[], b: readonly unknown[]): string | undefined {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const inner = at < Math.min(a.length, b.length) ? firstDifference(a[at], b[at]) : "";
    if (inner !== undefined) return joinPointer("", at) + inner;
  }
  return undefined;
}

type Members = Readonly<Record<string, unknown>>;

function firstDifferentMember(a: Members, b: Members): string | undefined {
  for (const key of Object.keys(a)) {
    const inner = Object.hasOwn(b, key) ? firstDifference(a[key], b[key]) : "";
    if (inner !== undefined) return joinPointer("", key) + inner;
  }
  const more = Object.keys(b).find((key) => !Object.hasOwn(a, key));
  return more === undefined ? undefined : joinPointer("", more);
}

function contradiction(at: number, pointer: string): Oddity {
  const place = pointer === "" ? "as a whole" : `first at ${safeLine(pointer, 200)}`;
  return {
    code: "text_contradicts_data",
    message: `Text block ${at + 1} is JSON that differs from the structured content, ${place}.`,
  };
}
