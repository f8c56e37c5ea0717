import {
  mcpEnvelope,
  type ResponseEnvelope,
  type ResultFacts,
  type SaidFacts,
} from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { asJson } from "../../core/json/as-json.ts";
import { isValueTooDeep, MAX_JSON_DEPTH } from "../../core/json/json-depth.ts";
import { parsePointer } from "../../core/json/json-pointer.ts";
import { isPlainObject, setOwn } from "../../core/json/json-value.ts";
import { textOf } from "../../core/result/call-tool-result.ts";
import { withoutMissedSchema } from "../../core/result/missed-schema.ts";
import { recoverJson } from "../../core/result/recover-json.ts";
import type { ReadResult, ResultReader } from "../../core/result/result-reader.ts";
import { type AnySchema, toOperationSchema } from "../../core/schema/any-schema.ts";
import { isEqual } from "../../core/schema/compare-values.ts";
import { SourceSecrets } from "../../core/secrets/source-secrets.ts";
import { decodeBase64 } from "../../core/wire/base64.ts";
import { fromWire } from "../../core/wire/wire.ts";
import { bytesIn, bytesPlaceOf, MOST_BYTES_BLOCKS, placeholderOf } from "../bytes-block.ts";
import { mapMCPContentBlocks } from "../map-content-blocks.ts";
import {
  type OutcomeFacts,
  readOutcomeFacts,
  readPage,
  readSaid,
  readViolations,
  readWire,
  readWrapsResult,
} from "./tool-facts.ts";
import { valueInside } from "./unwrap-result.ts";
import { type WholeData, withoutCut, withWholeData } from "./whole-result.ts";

/** How the results of one tool are read. */
export interface ResultReading {
  /** Its exact name, for messages. */
  readonly tool: string;
  /** Finds data in published envelopes. @default none */
  readonly reader?: ResultReader | undefined;
  /** Takes a single text block that is a JSON object or array for the data. @default false */
  readonly recoverJson?: boolean | undefined;
  /** Describes the data, unwrapped. @default nothing is known of it */
  readonly schema?: AnySchema | undefined;
  /** Whether the schema says that structured content is `{ result: data }`. @default false */
  readonly wrapped?: boolean | undefined;
  /** Whether a result may say that itself: Waybill serves the tool, and there is no schema that says otherwise. @default false */
  readonly mayWrap?: boolean | undefined;
  /** Whether Waybill serves the tool: then a result that was cut may say where the whole is. @default false */
  readonly isServed?: boolean | undefined;
  /** The output schema as the tool lists it. @default it lists none */
  readonly announced?: AnySchema | undefined;
  /** Codes the operation declares. @default none */
  readonly declared?: ReadonlySet<string> | undefined;
  /** Whether sentences of the server are shown as if they were ours: its user says that it is Waybill and theirs. @default false */
  readonly isTrusted?: boolean | undefined;
  /** What of the server's words is passed on. @default all of them, and nothing is secret */
  readonly secrets?: SourceSecrets | undefined;
}

type Found = Pick<ReadResult, "data" | "obtained" | "code" | "message" | "details" | "said">;

const NONE: ReadonlySet<string> = new Set();

/**
 * Makes the envelope of what a tool answered: `data` is the structured content where there is some, whatever its value, else
 * what the options find, else the content blocks, and where there are none either, all members of the result. An `isError` that is
 * neither a boolean nor null says that something went wrong. Throws a `CallError` for what is no result (`OUTPUT_INVALID`), and the one that
 * an error result says it stands for. `whole` is the data of an envelope that holds only a part of it.
 */
export function readToolResult(
  result: unknown,
  reading: ResultReading,
  whole?: WholeData | undefined,
): ResponseEnvelope {
  const parts = takeApart(withoutMiss(result, reading), reading.tool, whole);
  const { isError, content, meta } = parts;
  const outcome = isError ? readOutcomeFacts(meta, reading.declared ?? NONE) : undefined;
  if (outcome?.outcome === "call-error") throw toCallErrorOf(outcome, reading);
  const found = findData(parts, reading, whole);
  const refined = refine(found, parts);
  const {
    data,
    obtained,
    said: written,
    ...published
  } = reading.isServed ? withBlockBytes(refined, parts) : refined;
  const said = (reading.isServed ? readSaid(meta, content) : undefined) ?? withKnownBlocks(written);
  const { code, message, details } = outcome ?? (isError ? published : {});
  const page = readPage(meta);
  const violations = isError || !reading.isServed ? undefined : readViolations(meta);
  const waybill: ResultFacts = {
    obtained,
    ...(violations !== undefined && { violations }),
    ...(parts.unknown !== undefined && { unknown: parts.unknown }),
    ...(page !== undefined && { page }),
    ...(code !== undefined && { code }),
    ...(message !== undefined && { message }),
    ...(details !== undefined && { details }),
    ...(said !== undefined && { said }),
  };
  return mcpEnvelope(data, {
    isError,
    content,
    ...(parts.hasStructured && { structuredContent: parts.structured }),
    ...(meta && { _meta: meta }),
    waybill,
  });
}

/** A result of Waybill's that was sent as an error only because it misses the schema its tool lists is the success it was. */
function withoutMiss(result: unknown, { isServed, announced }: ResultReading): unknown {
  if (!isServed || announced === undefined || !isPlainObject(result)) return result;
  const misses = (structured: unknown): boolean => !toOperationSchema(announced, "output").check(structured);
  try {
    return withoutMissedSchema(result, misses) ?? result;
  } catch {
    return result;
  }
}

interface Parts {
  readonly raw: Readonly<Record<string, unknown>>;
  readonly isError: boolean;
  readonly content: ReturnType<typeof mapMCPContentBlocks>;
  readonly hasStructured: boolean;
  readonly structured: unknown;
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  /** All there is, where a result has neither content nor structured content. */
  readonly members: Readonly<Record<string, unknown>> | undefined;
  /** What MCP does not define beside what it does. */
  readonly unknown: Readonly<Record<string, unknown>> | undefined;
}

function takeApart(result: unknown, tool: string, whole: WholeData | undefined): Parts {
  if (!isPlainObject(result)) throw noResult(tool, "it is no object", result);
  const { structuredContent, isError, _meta, resultType: _, ...members } = result;
  const { content, ...others } = members;
  const hasStructured = Object.hasOwn(result, "structuredContent") && structuredContent !== undefined;
  const hasContent = Array.isArray(content);
  const isOddFlag = isError !== undefined && typeof isError !== "boolean";
  const beside = hasContent || content === undefined ? others : members;
  const unknown = { ...(hasContent || hasStructured ? beside : {}), ...(isOddFlag && { isError }) };
  if (isValueTooDeep(result, Number.POSITIVE_INFINITY)) {
    throw noResult(tool, `it is nested more than ${MAX_JSON_DEPTH} levels deep`, result);
  }
  return {
    raw: result,
    // Some leave an optional member out by writing null.
    isError: isError !== undefined && isError !== null && isError !== false,
    content: mapMCPContentBlocks(content),
    hasStructured,
    structured: whole === undefined ? structuredContent : withWholeData(structuredContent, whole),
    meta: isPlainObject(_meta) ? _meta : undefined,
    members: hasContent || hasStructured ? undefined : members,
    unknown: Object.keys(unknown).length === 0 ? undefined : unknown,
  };
}

/** The blocks as they are in the content, where a kind that nobody knows is text. */
function withKnownBlocks(said: SaidFacts | undefined): SaidFacts | undefined {
  return said?.content === undefined ? said : { ...said, content: mapMCPContentBlocks(said.content) };
}

function noResult(tool: string, reason: string, cause: unknown): CallError {
  const message = `What the tool ${JSON.stringify(tool.slice(0, 200))} answered is no tool result: ${reason}.`;
  return new CallError("OUTPUT_INVALID", message, { details: { tool, reason }, cause });
}

function findData(parts: Parts, reading: ResultReading, whole: WholeData | undefined): Found {
  const published = readPublished(parts, reading);
  if (published !== undefined) {
    if (whole === undefined) return published;
    return { ...published, data: whole.data, said: withoutCut(published.said, whole) };
  }
  if (parts.hasStructured) {
    const isWrapped = reading.wrapped || (reading.mayWrap && readWrapsResult(parts.meta));
    const inner = isWrapped ? valueInside(parts.structured, "result") : undefined;
    return { data: inner === undefined ? parts.structured : inner.value, obtained: "structured-content" };
  }
  if (parts.members !== undefined) return { data: parts.members, obtained: "members" };
  const recovered = recover(parts, reading);
  if (recovered !== undefined) return { data: recovered.data, obtained: "text-json" };
  return { data: parts.content, obtained: "content" };
}

function readPublished({ raw }: Parts, { reader, schema }: ResultReading): ReadResult | undefined {
  try {
    return reader?.read(raw, schema);
  } catch {
    // A reader that fails has found nothing.
    return undefined;
  }
}

/** What an error says seldom has the shape of what was promised for success. */
function recover(
  { content, isError }: Parts,
  reading: ResultReading,
): { readonly data: unknown } | undefined {
  const { schema, recoverJson: isWanted } = reading;
  const bySchema = schema === undefined || isError ? undefined : recoverJson(content, { schema });
  return bySchema ?? recoverJson(content, { recoverJson: isWanted });
}

/** Takes the data in its wire form, which may hold more than JSON can, where it says the same as what can be seen. */
function refine(found: Found, parts: Parts): Found {
  const carried = readWire(parts.meta);
  if (carried === undefined) return found;
  try {
    const data = fromWire(carried.wire);
    const isSeen = isEqual(asJson(data), found.data) || isShown(data, found, parts);
    return isSeen ? { ...found, data } : found;
  } catch {
    return found;
  }
}

/** Puts the bytes of blocks where they belong in the data, which says there how many they are; data may be nothing but bytes. */
function withBlockBytes(found: Found, { content, hasStructured }: Parts): Found {
  let { data } = found;
  const blocks = content.filter((block) => bytesPlaceOf(block) !== undefined);
  for (const block of blocks.slice(0, MOST_BYTES_BLOCKS)) {
    const place = bytesPlaceOf(block);
    const bytes = place === undefined ? undefined : decodeBase64(bytesIn(block) ?? "\0");
    if (place === undefined || bytes === undefined) continue;
    const isWhole = place === "" && found.obtained === "content" && !hasStructured;
    data = isWhole ? bytes : putBytes(data, parsePointer(place), bytes);
  }
  return data === found.data ? found : { ...found, data };
}

function putBytes(data: unknown, [key, ...rest]: readonly string[], bytes: Uint8Array): unknown {
  if (key === undefined) return data === placeholderOf(bytes.length) ? bytes : data;
  if (typeof data !== "object" || data === null || !Object.hasOwn(data, key)) return data;
  const member = (data as Record<string, unknown>)[key];
  const put = putBytes(member, rest, bytes);
  if (put === member) return data;
  if (Array.isArray(data)) return data.with(Number(key), put);
  const copy = { ...data };
  setOwn(copy, key, put);
  return copy;
}

/** An error shows its data as text alone, beside why it happened, and nothing at all is written as nothing at all. */
function isShown(data: unknown, { obtained }: Found, parts: Parts): boolean {
  const { hasStructured, isError, content, meta } = parts;
  if (obtained !== "content" || hasStructured) return false;
  if (data === undefined || (data === null && isError)) {
    return content.length === (isError ? 1 : 0) || readSaid(meta, content) !== undefined;
  }
  if (!isError) return false;
  const json = asJson(data);
  const text = typeof json === "string" ? json : JSON.stringify(json);
  return content.some((block) => textOf(block) === text);
}

/** An error of another Waybill keeps its code and its details; its sentence is ours only where the server is trusted. */
function toCallErrorOf(
  { code = "", message, details, retryable, correctable }: OutcomeFacts,
  { secrets = new SourceSecrets(), isTrusted }: ResultReading,
): CallError {
  const told = secrets.passDetails(details, isTrusted ? undefined : message);
  return new CallError(code, isTrusted ? message : undefined, { details: told, retryable, correctable });
}
