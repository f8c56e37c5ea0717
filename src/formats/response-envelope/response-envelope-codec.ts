import type { MCPContentBlock } from "../../core/envelope/content-block.ts";
import {
  isContentBlock,
  isResponseEnvelope,
  type MCPEnvelopeMeta,
  mcpEnvelope,
} from "../../core/envelope/envelope.ts";
import type {
  HTTPResponseMeta,
  LocalResponseMeta,
  MCPResponseMeta,
  ResponseEnvelope,
  ResponseSource,
  ResultFacts,
} from "../../core/envelope/response-meta.ts";
import { isPlainJson } from "../../core/json/json-value.ts";
import { fromFacts, type ToolResult, textBlock, toFacts } from "../../core/result/tool-result.ts";
import { isEqual } from "../../core/schema/compare-values.ts";
import { fromWire, toWire } from "../../core/wire/wire.ts";
import { type Carrier, type Contract, isEmpty, isJsonOf, takeResidual, withUnknown } from "../carrier.ts";
import { createCodec, type Decoded } from "../codec.ts";
import { FormatError, writeFormatJson } from "../format-error.ts";
import { derivedContent, isDerivedContent } from "../plain/plain-codec.ts";
import { applyResidual, differences } from "../residual.ts";

const NAME = "response-envelope";

type Read = Decoded & { readonly residual: unknown };

/**
 * `ResponseEnvelope { data, meta }`. What came from an HTTP or local envelope is written as one again where that loses
 * nothing, and is then not marked as made here; everything else is written with MCP meta, which can hold a residual.
 */
export const responseEnvelopeCodec = createCodec<ResponseEnvelope>({
  name: NAME,

  write(result) {
    const known = writeOwnSource(result);
    const own = known && withUnknownFields(known, result);
    if (own !== undefined && differences(result, readEnvelope(own).result).length === 0) return own;
    return withUnknownFields(writeMcp(result), result);
  },

  read(value) {
    if (isResponseEnvelope(value)) return readEnvelope(value);
    throw new FormatError("bad_shape", "This is not a response envelope.", { format: NAME });
  },
});

/** Reads a checked envelope of any source. */
export function readEnvelope(envelope: ResponseEnvelope): Read {
  const read = readKnown(envelope);
  const unknown = unknownFields(envelope);
  if (isEmpty(unknown)) return read;
  const extra = { ...read.result.extra, [NAME]: { ...read.result.extra?.[NAME], ...unknown } };
  return { ...read, result: { ...read.result, extra } };
}

function readKnown(envelope: ResponseEnvelope): Read {
  switch (envelope.meta.source) {
    case "local":
      return readLocal(envelope.data, envelope.meta);
    case "http":
      return readHttp(envelope.data, envelope.meta);
    case "mcp":
      return readMcp(envelope.data, envelope.meta);
  }
}

/** The fields each source defines. */
const META_FIELDS: Readonly<Record<ResponseSource, readonly string[]>> = {
  local: ["source", "operationId", "timestamp", "isError", "waybill"],
  http: ["source", "statusCode", "headers", "contentType", "setCookie", "isError", "waybill"],
  mcp: ["source", "isError", "content", "structuredContent", "_meta", "waybill"],
};

/** What an envelope says beyond its definition. */
function unknownFields(envelope: ResponseEnvelope): { readonly envelope?: object; readonly meta?: object } {
  const known = META_FIELDS[envelope.meta.source];
  const around = Object.entries(envelope).filter(([key]) => key !== "data" && key !== "meta");
  const meta = Object.entries(envelope.meta).filter(([key]) => !known.includes(key));
  return {
    ...(around.length > 0 && { envelope: Object.fromEntries(around) }),
    ...(meta.length > 0 && { meta: Object.fromEntries(meta) }),
  };
}

/** Adds what an envelope once said beyond its definition; it is then no longer one that we made. */
function withUnknownFields(envelope: ResponseEnvelope, { extra }: ToolResult): ResponseEnvelope {
  const { envelope: around, meta } = extra?.[NAME] ?? {};
  if (around === undefined && meta === undefined) return envelope;
  return withUnknown({ data: envelope.data, meta: withUnknown(envelope.meta, meta) }, around);
}

function readLocal(data: unknown, meta: LocalResponseMeta): Read {
  const { operationId, timestamp } = meta;
  const moment = toMoment(timestamp);
  const extra = { source: "local", ...(moment === undefined && { timestamp }) };
  const time = moment === undefined ? {} : { timestamp: moment };
  const result = { tool: operationId, ...time, ...joined(readData(data, extra), readFacts(meta)) };
  return {
    result: { ...result, isError: meta.isError === true },
    obtained: "return-value",
    odd: [],
    residual: undefined,
  };
}

function readHttp(data: unknown, meta: HTTPResponseMeta): Read {
  const { statusCode, headers, contentType, setCookie } = meta;
  const http = { statusCode, headers, contentType, ...(setCookie !== undefined && { setCookie }) };
  const result = { http, ...joined(readData(data, {}), readFacts(meta)) };
  return {
    result: { ...result, isError: meta.isError === true },
    obtained: "body",
    odd: [],
    residual: undefined,
  };
}

function readMcp(data: unknown, meta: MCPResponseMeta): Read {
  const { content, isError, structuredContent } = meta;
  const { meta: _meta, residual } =
    meta._meta === undefined ? { residual: undefined } : takeResidual(meta._meta);
  const hasStructured = structuredContent !== undefined;
  const hasData = hasStructured || !isEqual(data, content);
  const extra = hasStructured
    ? !isEqual(data, structuredContent) && { structured: structuredContent }
    : hasData && { noStructured: true };
  const bare: ToolResult = {
    isError,
    ...joined(hasData ? readData(data, extra === false ? {} : extra) : {}, readFacts(meta)),
    ...(_meta !== undefined && { _meta }),
  };
  // Where the facts tell the content from what the rest implies, the blocks as they came are that and no more.
  const isTold = meta.waybill?.said?.content !== undefined;
  const isDerived = isTold || isDerivedContent(content, bare);
  const result = { ...bare, ...(!isDerived && { content }) };
  return { result, obtained: hasStructured ? "structured-content" : "content", odd: [], residual };
}

/** Data that JSON cannot hold is kept in its wire form. */
function readData(
  data: unknown,
  extra: Readonly<Record<string, unknown>>,
): Pick<ToolResult, "data" | "extra"> {
  if (data === undefined) return withExtra(extra);
  if (isPlainJson(data)) return { data, ...withExtra(extra) };
  return { data: toWire(data, { errors: false }), ...withExtra({ ...extra, wire: true }) };
}

function withExtra(extra: Readonly<Record<string, unknown>>): Pick<ToolResult, "extra"> {
  return isEmpty(extra) ? {} : { extra: { [NAME]: extra } };
}

/** Both may have something to keep under `extra`. */
function joined<A extends Pick<ToolResult, "extra">, B extends Pick<ToolResult, "extra">>(a: A, b: B): A & B {
  if (a.extra === undefined || b.extra === undefined) return { ...a, ...b };
  return { ...a, ...b, extra: { ...b.extra, ...a.extra } };
}

function readFacts(meta: {
  readonly isError?: boolean;
  readonly waybill?: ResultFacts;
}): Partial<ToolResult> {
  return meta.waybill === undefined ? {} : fromFacts(meta.isError === true, meta.waybill);
}

/** Writes the source the result once came from, if it was not MCP. */
function writeOwnSource(result: ToolResult): ResponseEnvelope | undefined {
  const { http, isError } = result;
  const extra = result.extra?.[NAME] ?? {};
  const flags = { ...(isError && { isError }), ...writeFacts(result, true) };
  if (http !== undefined) return { data: writeData(result), meta: { source: "http", ...http, ...flags } };
  if (extra["source"] !== "local") return undefined;
  const { tool = "" } = result;
  const timestamp =
    typeof extra["timestamp"] === "number" ? extra["timestamp"] : Date.parse(result.timestamp ?? "");
  return { data: writeData(result), meta: { source: "local", operationId: tool, timestamp, ...flags } };
}

function writeMcp(result: ToolResult): ResponseEnvelope {
  const extra = result.extra?.[NAME] ?? {};
  const content = (result.content ?? derivedContent(result)).map(toKnownBlock);
  const data = writeData(result);
  const structuredContent = "structured" in extra ? extra["structured"] : data;
  const hasStructured = result.data !== undefined && extra["noStructured"] !== true;
  const facts = writeFacts(result, false);
  const saysMore = facts.waybill !== undefined || "structured" in extra;
  const make = saysMore ? unmarkedEnvelope : mcpEnvelope;
  return make(result.data === undefined ? content : data, {
    isError: result.isError,
    content,
    ...(hasStructured && { structuredContent }),
    ...(result._meta !== undefined && { _meta: result._meta }),
    ...facts,
  });
}

/** Facts come from the side that ran the call: an envelope that says more than an MCP result does not pass for one of ours. */
function unmarkedEnvelope(data: unknown, meta: MCPEnvelopeMeta): ResponseEnvelope {
  const { data: kept, meta: built } = mcpEnvelope(data, meta);
  return { data: kept, meta: built };
}

/** A kind of block that MCP does not define becomes text holding its JSON. */
export function toKnownBlock(block: unknown): MCPContentBlock {
  return isContentBlock(block) ? block : textBlock(writeFormatJson(block));
}

/** The data as it was before it took its wire form. */
export function writeData({ data, extra }: ToolResult): unknown {
  if (extra?.[NAME]?.["wire"] !== true) return data;
  try {
    return fromWire(data) ?? data;
  } catch {
    // Anybody may say that data is in its wire form.
    return data;
  }
}

function writeFacts(result: ToolResult, content: boolean): { readonly waybill?: ResultFacts } {
  const waybill = toFacts(result, { content });
  return waybill === undefined ? {} : { waybill };
}

/** ISO 8601 for a time that reads back the same. */
function toMoment(timestamp: number): string | undefined {
  const date = new Date(timestamp);
  return date.getTime() === timestamp ? date.toISOString() : undefined;
}

/** Reads a tool result that carries a response envelope; what the carrier itself says is kept beside it. */
export function readCarriedEnvelope(
  carrier: Carrier,
  envelope: ResponseEnvelope,
  obtained: Contract["obtained"],
): Decoded {
  const { result: inner, odd: noticed, residual } = readEnvelope(envelope);
  // One of them at most: what one takes away the other must not put in again.
  const isLeft = residual === undefined || carrier.residual !== undefined;
  const { result, odd } = isLeft ? { result: inner, odd: [] } : applyResidual(inner, residual);
  const isJson = obtained === "contract-json" || isJsonOf(carrier.content[0], envelope);
  const content = (isJson ? carrier.content.slice(1) : carrier.content) as readonly MCPContentBlock[];
  const isShown = result.content === undefined && content.length > 0;
  const carried = {
    ...(!isShown && content.length > 0 && { content }),
    ...(!isEmpty(carrier.rest) && { result: carrier.rest }),
  };
  return {
    result: {
      ...result,
      isError: result.isError || carrier.flag === true,
      ...(isShown && { content }),
      ...(carrier.meta && { _meta: { ...result._meta, ...carrier.meta } }),
      ...(!isEmpty(carried) && { extra: { ...result.extra, mcp: { ...result.extra?.mcp, carried } } }),
    },
    obtained,
    odd: [...noticed, ...odd],
  };
}
