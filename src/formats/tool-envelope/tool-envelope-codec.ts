import type { MCPContentBlock } from "../../core/envelope/content-block.ts";
import type { AuthoredResult } from "../../core/envelope/envelope.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { describeResult, humanTexts, renderToolError } from "../../core/result/human-text.ts";
import {
  type CallToolResult,
  type ContentBlock,
  type ResultError,
  type ToolResult,
  textBlock,
  textOf,
} from "../../core/result/tool-result.ts";
import { isEqual } from "../../core/schema/compare-values.ts";
import { markResult } from "../authored.ts";
import { type Carrier, isEmpty, readCarrier, unusualParts, withUnknown, writeCarrier } from "../carrier.ts";
import { createCodec, type Decoded, type Oddity, type ReadOptions } from "../codec.ts";
import { FormatError, writeFormatJson } from "../format-error.ts";
import { adviseRetry, toCategory } from "../retry-advice.ts";
import {
  isEnvelopeBlock,
  type ParsedEnvelope,
  parseEnvelopeBlock,
  toEnvelopeBlock,
} from "./envelope-block.ts";
import { isMcpErrorPayload, type McpErrorPayload } from "./payloads.ts";

const NAME = "tool-envelope";
/** Where the block belongs. */
const USUAL_PLACE = [1];

/** ToolEnvelope V1: Markdown for people in the first block, base64 JSON for programs in the second. */
export const toolEnvelopeCodec = createCodec<CallToolResult>({
  name: NAME,

  write(result) {
    const extra = result.extra?.[NAME] ?? {};
    const { tool = "unknown", timestamp = new Date().toISOString() } = result;
    const meta = { ...recordOrNone(extra["meta"]), tool, ts: timestamp };
    const payload = payloadOf(result);
    const text = toEnvelopeBlock(payload, meta, recordOrNone(extra["envelope"]));
    const block = withUnknown<ContentBlock>(textBlock(text), extra["block"]);
    const human = extra["verbatim"] === true ? (result.content ?? []) : humanContent(result);
    return writeCarrier(NAME, result, {
      content: insert(human, block, placesIn(extra["at"])),
      // Next to another value than the payload, nobody could tell which to believe.
      ...("structured" in extra &&
        isEqual(extra["structured"], payload) && { structured: { value: payload } }),
      flag: flagOf(result.isError, payload),
    });
  },

  read(value, options) {
    const carrier = readCarrier(value);
    return { ...readToolEnvelope(carrier, findEnvelope(carrier, options)), residual: carrier.residual };
  },
});

/** An envelope and where it was found. */
export interface FoundEnvelope {
  readonly envelope: ParsedEnvelope;
  /** Indices of the blocks that hold it: one, unless it is repeated. */
  readonly at: readonly number[];
}

/** Finds the distinct envelope blocks of a result, with their places; the first block is never one. */
export function envelopeTexts(content: readonly unknown[]): ReadonlyMap<string, readonly number[]> {
  let found: Map<string, number[]> | undefined;
  for (let i = 1; i < content.length; i++) {
    const text = textOf(content[i]);
    if (text === undefined || !isEnvelopeBlock(text)) continue;
    found ??= new Map();
    const places = found.get(text);
    if (places === undefined) found.set(text, [i]);
    else places.push(i);
  }
  return found ?? NO_ENVELOPES;
}

const NO_ENVELOPES: ReadonlyMap<string, readonly number[]> = new Map();

function findEnvelope({ content }: Carrier, options: ReadOptions): FoundEnvelope {
  const [first, ...others] = envelopeTexts(content);
  if (first === undefined) {
    throw new FormatError("not_an_envelope", "not an envelope block", { format: NAME });
  }
  if (others.length > 0) {
    const message = `The result holds ${others.length + 1} different envelope blocks, so neither can be believed.`;
    throw new FormatError("conflicting_envelopes", message, { format: NAME });
  }
  return { envelope: parseEnvelopeBlock(first[0], options), at: first[1] };
}

/** Reads a result whose envelope block has been found. */
export function readToolEnvelope(carrier: Carrier, { envelope, at }: FoundEnvelope): Decoded {
  const { payload, meta, tolerated = [] } = envelope;
  const { tool, ts, version: _, ...unknownMeta } = meta;
  // A writer that says `isError: false` means it: the payload only looks like an error.
  const isFailure = carrier.flag !== false && isMcpErrorPayload(payload);
  const isError = carrier.flag === true || isFailure;
  const bare: ToolResult = {
    isError,
    ...(isFailure ? { error: toResultError(payload) } : { data: payload }),
    tool,
    timestamp: ts,
    ...(carrier.meta && { _meta: carrier.meta }),
  };
  const content = withoutBlocks(carrier.content, at) as readonly MCPContentBlock[];
  const isDerived = isEqual(content, derivedContent(bare));
  const extra = {
    ...unusualParts(carrier, flagOf(isError, payload)),
    // A text for people that leaves out what the error advises stays as it is.
    ...(!isDerived && !isEqual(content, humanContent({ ...bare, content })) && { verbatim: true }),
    ...(!isEmpty(unknownMeta) && { meta: unknownMeta }),
    ...(envelope.extra && { envelope: envelope.extra }),
    ...(!isEqual(at, USUAL_PLACE) && { at }),
    ...blockExtras(carrier.content[at[0] ?? 0]),
    ...(carrier.hasStructured && { structured: carrier.structured }),
  };
  const result: ToolResult = {
    ...bare,
    ...(!isDerived && { content }),
    ...(!isEmpty(extra) && { extra: { [NAME]: extra } }),
  };
  return {
    result,
    obtained: "envelope-block",
    odd: oddities(tolerated, at, isFailure && carrier.flag !== true),
  };
}

/** What the envelope block says beside its text. */
function blockExtras(block: unknown): { readonly block?: Record<string, unknown> } {
  const { type: _, text: __, ...extras } = block as Record<string, unknown>;
  return isEmpty(extras) ? {} : { block: extras };
}

/** The blocks for people: all but the machine's. */
export function withoutBlocks(content: readonly unknown[], at: readonly number[]): readonly unknown[] {
  const places = new Set(at);
  return content.filter((_, i) => !places.has(i));
}

function oddities(
  tolerated: readonly string[],
  at: readonly number[],
  isUnflagged: boolean,
): readonly Oddity[] {
  const odd: Oddity[] = tolerated.map((what) => ({
    code: what,
    message: `The envelope block departs from the format (${what}) and was read leniently.`,
  }));
  if (at.length > 1)
    odd.push({ code: "repeated_block", message: "The envelope block is there more than once." });
  if (at[0] !== 1)
    odd.push({ code: "misplaced_block", message: "The envelope block is not the second block." });
  if (isUnflagged) {
    odd.push({ code: "unflagged_error", message: "The payload is an error, and isError does not say so." });
  }
  return odd;
}

function toResultError(payload: object): ResultError {
  const { category, code, message, details, recoverable, suggestedAction, nextTool, ...extra } =
    payload as unknown as Record<string, unknown>;
  const known: Record<string, unknown> = { category, code, message, recoverable };
  // A field of the wrong type says nothing that could be relied on, and is kept with the unknown ones.
  for (const [key, value] of Object.entries({ details, suggestedAction, nextTool })) {
    if (value === undefined) continue;
    if (typeof value === "string") known[key] = value;
    else extra[key] = value;
  }
  return { ...known, ...(!isEmpty(extra) && { extra }) } as unknown as ResultError;
}

function payloadOf({ isError, data, error, summary, details: lines }: ToolResult): unknown {
  if (!isError || (error === undefined && data !== undefined)) return data ?? null;
  const { message = summary ?? "The tool failed.", code = "TOOL_ERROR" } = error ?? {};
  const { category = toCategory(error?.code), recoverable = isRecoverable(error) } = error ?? {};
  const { suggestedAction, nextTool, extra } = error ?? {};
  const text = detailsText(error?.details, lines);
  const known = {
    category,
    code,
    message,
    ...(text !== undefined && { details: text }),
    recoverable,
    ...(suggestedAction !== undefined && { suggestedAction }),
    ...(nextTool !== undefined && { nextTool }),
  };
  return withUnknown(known, extra);
}

/** The format has one text for details: the facts of the error, or else the lines written for people. */
function detailsText(details: unknown, lines: readonly string[] | undefined): string | undefined {
  if (details === undefined) return lines === undefined || lines.length === 0 ? undefined : lines.join("\n");
  return typeof details === "string" ? details : writeFormatJson(details);
}

/** What is known about errors of a kind, where this one says nothing. */
function isRecoverable(error: ResultError | undefined): boolean {
  const { retryable, correctable } = error === undefined ? {} : adviseRetry(error);
  return retryable === true || correctable === true;
}

/** The blocks for people: what the result says of itself joins its first text, so that the first block says all of it. */
function humanContent(result: ToolResult): readonly MCPContentBlock[] {
  const { content } = result;
  if (content === undefined) return derivedContent(result);
  const [first, ...rest] = content.filter((item, i) => i === 0 || !isEnvelopeText(item));
  if (first === undefined) return [];
  const { lead, end } = humanTexts(result);
  const text = textOf(first);
  // The first block is for people to read, whatever else there is to see.
  if (text === undefined) return [...derivedContent(result), first, ...rest];
  if (lead.length + end.length === 0) return [first, ...rest];
  return [{ ...first, text: [...lead, text, ...end].join("\n\n") } as MCPContentBlock, ...rest];
}

/** What people read when nobody wrote them a text. */
function derivedContent(result: ToolResult): readonly MCPContentBlock[] {
  const texts = describeResult(result);
  const { tool = "the tool", isError } = result;
  if (texts.length === 0)
    texts.push(isError ? `❌ \`${tool}\` failed.` : `Result of \`${tool}\`, in the block below.`);
  return [textBlock(texts.join("\n\n"))];
}

/** Left out of a success, unless its payload would be taken for an error. */
function flagOf(isError: boolean, payload: unknown): boolean | undefined {
  if (isError) return true;
  return isMcpErrorPayload(payload) ? false : undefined;
}

function isEnvelopeText(block: unknown): boolean {
  const text = textOf(block);
  return text !== undefined && isEnvelopeBlock(text);
}

/** Puts the machine's block where it belongs; the first place is for people, even when there is nothing to say. */
function insert(
  human: readonly MCPContentBlock[],
  block: MCPContentBlock,
  places: readonly unknown[],
): readonly MCPContentBlock[] {
  const given = human.length === 0 ? [textBlock("")] : human;
  const wanted = new Set(places);
  const content: MCPContentBlock[] = [];
  let blocks = places.length;
  for (const item of given) {
    for (; blocks > 0 && content.length > 0 && wanted.has(content.length); blocks--) content.push(block);
    content.push(item);
  }
  for (; blocks > 0; blocks--) content.push(block);
  return content;
}

/** Most copies of an envelope block that are written again. */
const MAX_COPIES = 16;

function placesIn(at: unknown): readonly unknown[] {
  return Array.isArray(at) && at.length > 0 && at.length <= MAX_COPIES ? at : USUAL_PLACE;
}

function recordOrNone(value: unknown): Record<string, unknown> | undefined {
  return isPlainObject(value) ? value : undefined;
}

/** What `toToolResult` is told. */
export interface ToolResultOptions<T = unknown> {
  /** What people read. @default the rendered error, for an error payload */
  readonly summaryMarkdown?: string;
  /** Any JSON value. */
  readonly payload: T;
  readonly meta: {
    readonly tool: string;
    /** ISO 8601, written as given. @default now */
    readonly ts?: string;
    readonly version?: 1;
    readonly [unknown: string]: unknown;
  };
  /** @default whether the payload is an error payload */
  readonly isError?: boolean;
}

/** Writes a result as a tool envelope: Markdown for people, then the block for programs. */
export function toToolResult<T>(options: ToolResultOptions<T>): CallToolResult & AuthoredResult<T> {
  const { payload, meta, isError = isMcpErrorPayload(payload) } = options;
  if (typeof meta?.tool !== "string")
    throw new TypeError("A tool envelope needs meta.tool, the name of the tool.");
  const { summaryMarkdown = defaultSummary(payload, meta.tool) } = options;
  const stamped = meta.ts === undefined ? { ...meta, ts: new Date().toISOString() } : meta;
  const block = toEnvelopeBlock(payload, stamped as { tool: string; ts: string });
  const content = [textBlock(summaryMarkdown), textBlock(block)];
  // A success says so where its payload would be taken for an error.
  const isFlagged = isError || isMcpErrorPayload(payload);
  const result: CallToolResult = isFlagged ? { content, isError } : { content };
  return markResult(result, () => toolEnvelopeCodec.decode(result));
}

function defaultSummary(payload: unknown, tool: string): string {
  if (isMcpErrorPayload(payload)) return renderToolError(payload satisfies McpErrorPayload);
  throw new TypeError(`The result of "${tool}" needs a summaryMarkdown: it is what people see.`);
}
