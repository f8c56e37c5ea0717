import type { MCPContentBlock } from "../../core/envelope/content-block.ts";
import {
  isResultFacts,
  isSaidFacts,
  mcpEnvelope,
  type ResponseEnvelope,
  type ResultFacts,
  type SaidFacts,
} from "../../core/envelope/envelope.ts";
import type { PageFacts } from "../../core/envelope/response-meta.ts";
import { isErrorCode } from "../../core/errors/error-codes.ts";
import { toErrorDetails } from "../../core/errors/error-details.ts";
import { CallError } from "../../core/errors/errors.ts";
import { parsePointer } from "../../core/json/json-pointer.ts";
import {
  asJson,
  isPlainObject,
  isValueTooDeep,
  MAX_JSON_DEPTH,
  setOwn,
  toJsonTextOrNone,
} from "../../core/json/json-value.ts";
import type {
  ErrorDeclaration,
  GatedFeature,
  OperationType,
  Tier,
} from "../../core/operation/operation-types.ts";
import { isSemanticVersion } from "../../core/operation/semantic-version.ts";
import { withoutMissedSchema } from "../../core/result/missed-schema.ts";
import { recoverJson } from "../../core/result/recover-json.ts";
import type { ReadResult, ResultReader } from "../../core/result/result-reader.ts";
import { isSaidCode } from "../../core/result/said.ts";
import { RESULT_META_KEY, textOf } from "../../core/result/tool-result.ts";
import { type AnySchema, toOperationSchema } from "../../core/schema/any-schema.ts";
import { isEqual } from "../../core/schema/compare-values.ts";
import { isObject, isSchema, type JsonSchema, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { MAX_ISSUES } from "../../core/schema/limits.ts";
import { changeReferences, mapSubschemas } from "../../core/schema/rewrite-schema.ts";
import type { SchemaIssue } from "../../core/schema/schema-issue.ts";
import { SourceSecrets } from "../../core/secrets/secret-mask.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { truncateText } from "../../core/text/truncate-text.ts";
import { decodeBase64 } from "../../core/wire/base64.ts";
import { fromWire } from "../../core/wire/wire.ts";
import {
  bytesIn,
  bytesPlaceOf,
  MOST_BYTES_BLOCKS,
  mapMCPContentBlocks,
  placeholderOf,
} from "../content-blocks.ts";
import { OPERATION_META_KEY, splitId } from "../names.ts";
import { quoted } from "../protocol/messages.ts";
import { type WholeData, withoutCut, withWholeData } from "./call-tool.ts";

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
    ...(reading.isServed && readFindings(meta)),
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
  const { content, structuredContent, isError, _meta } = result;
  const hasStructured = Object.hasOwn(result, "structuredContent") && structuredContent !== undefined;
  const hasContent = Array.isArray(content);
  const isOddFlag = isError !== undefined && typeof isError !== "boolean";
  if (isValueTooDeep(result, Number.POSITIVE_INFINITY)) {
    throw noResult(tool, `it is nested more than ${MAX_JSON_DEPTH} levels deep`, result);
  }
  const isRead = hasContent || hasStructured;
  const isContentKnown = hasContent || content === undefined;
  return {
    raw: result,
    // Some leave an optional member out by writing null.
    isError: isError !== undefined && isError !== null && isError !== false,
    content: mapMCPContentBlocks(content),
    hasStructured,
    structured: whole === undefined ? structuredContent : withWholeData(structuredContent, whole),
    meta: isPlainObject(_meta) ? _meta : undefined,
    members: isRead ? undefined : (membersOf(result, (name) => !BESIDE_DATA.has(name)) ?? {}),
    unknown: membersOf(result, (name) => {
      if (name === "isError") return isOddFlag;
      if (!isRead || BESIDE_DATA.has(name)) return false;
      return name !== "content" || !isContentKnown;
    }),
  };
}

/** Members of a result that are never data. */
const BESIDE_DATA: ReadonlySet<string> = new Set(["structuredContent", "isError", "_meta", "resultType"]);

/** Picks members by name; nothing where there are none, as of most results. */
function membersOf(
  result: Readonly<Record<string, unknown>>,
  isWanted: (name: string) => boolean,
): Record<string, unknown> | undefined {
  let members: Record<string, unknown> | undefined;
  for (const name of Object.keys(result)) {
    if (!isWanted(name)) continue;
    members ??= {};
    setOwn(members, name, result[name]);
  }
  return members;
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
  { tool, secrets = new SourceSecrets(), isTrusted }: ResultReading,
): CallError {
  const told = secrets.passDetails(details, isTrusted ? undefined : message);
  const ours = isErrorCode(code)
    ? undefined
    : `The tool ${quoted(tool)} failed with ${code}, an error that it declares.`;
  return new CallError(code, isTrusted ? message : ours, { details: told, retryable, correctable });
}

/** What a schema that only wraps another one may say besides; anything more, and it means something of its own. */
const HARMLESS = new Set([
  "$schema",
  "$defs",
  "definitions",
  "title",
  "description",
  "type",
  "properties",
  "required",
  "additionalProperties",
  "x-fastmcp-wrap-result",
]);

const DEFINITIONS = ["$defs", "definitions"] as const;

/**
 * The schema of the one member that an object schema consists of, as a document of its own; nothing where the schema is not
 * exactly that wrapper, or refers to things that would be lost on the way.
 */
export function schemaInside(wrapper: unknown, member: string): JsonSchema | undefined {
  if (!isWrapper(wrapper, member)) return undefined;
  const inner = (wrapper["properties"] as Record<string, unknown>)[member];
  if (inner === true) return true;
  if (!isObject(inner)) return undefined;
  const moving: Moving = { place: `#/properties/${member}`, isLost: false };
  const own = moveReferences(inner, moving);
  const kept = keptDefinitions(wrapper, own, moving);
  return moving.isLost || kept === undefined ? undefined : joined(wrapper, own, kept);
}

/** The value that a wrapper holds; nothing where it is an object with anything else in it. */
export function valueInside(value: unknown, member: string): { readonly value: unknown } | undefined {
  if (!isObject(value)) return undefined;
  const keys = Object.keys(value);
  return keys.length === 1 && keys[0] === member ? { value: value[member] } : undefined;
}

function isWrapper(schema: unknown, member: string): schema is JsonSchemaObject {
  if (!isObject(schema) || schema["type"] !== "object") return false;
  const { properties, required, additionalProperties } = schema;
  return (
    Object.keys(schema).every((keyword) => HARMLESS.has(keyword)) &&
    isObject(properties) &&
    Object.keys(properties).join() === member &&
    isSchema(properties[member]) &&
    Array.isArray(required) &&
    required.length === 1 &&
    required[0] === member &&
    (additionalProperties === undefined || additionalProperties === false)
  );
}

interface Moving {
  /** Where the inner schema stands in the wrapper. */
  readonly place: string;
  /** Set once something refers to what does not come along. */
  isLost: boolean;
}

/** Turns references around: those into the inner schema start at its own root now, those to definitions stay. */
function moveReferences(schema: JsonSchemaObject, moving: Moving): JsonSchemaObject {
  return changeReferences(schema, (keyword, reference) => {
    if (reference === moving.place) return [keyword, "#"];
    if (reference.startsWith(`${moving.place}/`))
      return [keyword, `#${reference.slice(moving.place.length)}`];
    moving.isLost ||= reference === "#" || /^#\/(?!(?:\$defs|definitions)\/)/.test(reference);
    return undefined;
  });
}

/** The definitions of the wrapper; nothing where the inner schema has some of its own as well, which would have to be mixed. */
function keptDefinitions(
  wrapper: JsonSchemaObject,
  inner: JsonSchemaObject,
  moving: Moving,
): Record<string, unknown> | undefined {
  const kept: Record<string, unknown> = {};
  for (const keyword of DEFINITIONS) {
    if (wrapper[keyword] === undefined) continue;
    if (inner[keyword] !== undefined) return undefined;
    kept[keyword] = mapSubschemas({ [keyword]: wrapper[keyword] }, (part) =>
      isObject(part) ? moveReferences(part, moving) : part,
    )[keyword];
  }
  return kept;
}

function joined(
  wrapper: JsonSchemaObject,
  inner: JsonSchemaObject,
  kept: Record<string, unknown>,
): JsonSchemaObject {
  const dialect = wrapper["$schema"] === undefined ? {} : { $schema: wrapper["$schema"] };
  const hasDefinitions = Object.keys(kept).length > 0;
  // Before 2019-09 a reference hides what stands beside it.
  if (hasDefinitions && inner["$ref"] !== undefined) return { ...dialect, allOf: [inner], ...kept };
  return { ...dialect, ...inner, ...kept };
}

/** What a tool says of the operation behind it. */
export interface OperationFacts {
  readonly namespace: string;
  readonly name: string;
  readonly type: OperationType;
  readonly version: string;
  readonly tags?: readonly string[];
  readonly errors?: readonly ErrorDeclaration[];
  readonly tier?: Tier;
  readonly features?: readonly GatedFeature[];
  readonly served: ServedFacts;
}

/** How Waybill serves an operation, where the tool alone would not tell. */
export interface ServedFacts {
  /** The input is the member `input` of the arguments. */
  readonly wrapsInput: boolean;
  /** Structured content is `{ result: data }`, and the output schema says so. */
  readonly wrapsResult: boolean;
  /** No input schema is declared, whatever the tool has for one. */
  readonly takesAnything: boolean;
  /** It is a query or subscription whose own annotations say that it only reads. */
  readonly declaresReadOnly: boolean;
}

interface OutcomeFacts {
  readonly outcome: "tool-error" | "call-error";
  readonly code?: string;
  readonly message?: string;
  readonly details?: unknown;
  readonly retryable?: boolean;
  readonly correctable?: boolean;
}

const TYPES: readonly unknown[] = ["query", "mutation", "subscription"];
const TIERS: readonly unknown[] = ["community", "pro", "enterprise"];
/** What an operation may declare; a tool error may have any other code too. */
const CODE = /^[A-Za-z][A-Za-z0-9_.-]{0,99}$/;
/** Characters of what a server says for people: in an envelope, and as the message of an error that is thrown here. */
const MESSAGE_LENGTH = { "tool-error": 8_192, "call-error": 500 } as const;
/** Characters of each part of a violation. */
const ISSUE_LENGTH = 8_192;
const CURSOR_LENGTH = 8_192;
const PAGE_INPUT_LENGTH = 65_536;
const MOST_DECLARED = 1_000;

/** Reads what a tool says of its operation; nothing where it says nothing that holds together. */
export function readOperationFacts(meta: unknown): OperationFacts | undefined {
  const facts = memberOf(meta, OPERATION_META_KEY);
  const id = splitId(facts?.["id"]);
  if (facts === undefined || id === undefined) return undefined;
  const { type, version, tags, tier, features } = facts;
  if (!TYPES.includes(type) || !isSemanticVersion(version)) return undefined;
  const errors = readErrors(facts["errors"]);
  return {
    ...id,
    type: type as OperationType,
    version,
    ...(isStrings(tags) && { tags }),
    ...(errors.length > 0 && { errors }),
    ...(TIERS.includes(tier) && { tier: tier as Tier }),
    ...(Array.isArray(features) && { features: features as readonly GatedFeature[] }),
    served: {
      wrapsInput: facts["wrapsInput"] === true,
      wrapsResult: facts["wrapsResult"] === true,
      takesAnything: facts["takesAnything"] === true,
      declaresReadOnly: facts["declaresReadOnly"] === true,
    },
  };
}

/** Reads the outcome of a result that says it is an error; a call error whose code nobody knows is no more than that. */
function readOutcomeFacts(meta: unknown, declared: ReadonlySet<string>): OutcomeFacts | undefined {
  const facts = memberOf(meta, RESULT_META_KEY);
  if (facts === undefined) return undefined;
  const { outcome, code, message, details, retryable, correctable } = facts;
  if (outcome !== "tool-error" && outcome !== "call-error") return undefined;
  const isKnown = typeof code === "string" && (isErrorCode(code) || declared.has(code));
  if (outcome === "call-error" && !isKnown) return undefined;
  const bounded = toErrorDetails(details);
  return {
    outcome,
    ...(isSaidCode(code) && { code }),
    ...(typeof message === "string" && {
      message: cleanText(truncateText(message, MESSAGE_LENGTH[outcome])).text,
    }),
    ...(bounded !== undefined && { details: bounded }),
    ...(typeof retryable === "boolean" && { retryable }),
    ...(typeof correctable === "boolean" && { correctable }),
  };
}

/** Reads where the next page is; a cursor of more than 8_192 characters is none. */
function readPage(meta: unknown): PageFacts | undefined {
  const page = memberOf(meta, RESULT_META_KEY)?.["page"];
  if (!isPlainObject(page)) return undefined;
  const next = Object.hasOwn(page, "next") ? page["next"] : undefined;
  if (next === undefined) return {};
  if (typeof next !== "string" || next.length > CURSOR_LENGTH) return undefined;
  const input = Object.hasOwn(page, "input") ? page["input"] : undefined;
  return input === undefined || isTooLong(input) ? { next } : { next, input };
}

/** Reads what the operation said beyond its data; its own blocks are those of the content that the result names. */
function readSaid(meta: unknown, content: readonly MCPContentBlock[]): SaidFacts | undefined {
  const facts = memberOf(meta, RESULT_META_KEY);
  const said = facts?.["said"];
  if (facts === undefined || !isSaidFacts(said)) return undefined;
  const { blocks } = facts;
  const places = new Set<unknown>(Array.isArray(blocks) ? blocks : []);
  const shown = content.filter((_, index) => places.has(index));
  return { ...said, content: shown };
}

/** Reads how a result of Waybill's misses the schema of its operation; more than `MAX_ISSUES` are cut. */
function readViolations(meta: unknown): readonly SchemaIssue[] | undefined {
  const violations = memberOf(meta, RESULT_META_KEY)?.["violations"];
  if (!Array.isArray(violations) || violations.length === 0) return undefined;
  const facts = { violations: violations.slice(0, MAX_ISSUES) };
  if (!isResultFacts(facts)) return undefined;
  return facts.violations?.map(({ pointer, expected, found, message }) => ({
    pointer: cleanText(truncateText(pointer, ISSUE_LENGTH)).text,
    expected: cleanText(truncateText(expected, ISSUE_LENGTH)).text,
    found: cleanText(truncateText(found, ISSUE_LENGTH)).text,
    ...(message !== undefined && { message: cleanText(truncateText(message, ISSUE_LENGTH)).text }),
  }));
}

/** Guards name at most as many. */
const MOST_FINDINGS = 100;

/** Reads what a guard of the server found. */
function readFindings(meta: unknown): Pick<ResultFacts, "findings"> {
  const findings = memberOf(meta, RESULT_META_KEY)?.["findings"];
  if (!Array.isArray(findings) || findings.length === 0) return {};
  const facts = { findings: findings.slice(0, MOST_FINDINGS) };
  if (!isResultFacts(facts)) return {};
  const shown = (text: string): string => cleanText(truncateText(text, ISSUE_LENGTH)).text;
  return {
    findings: (facts.findings ?? []).map(({ kind, rule, pointer, count, masked }) => ({
      kind: shown(kind),
      rule: shown(rule),
      pointer: shown(pointer),
      count,
      ...(masked && { masked }),
    })),
  };
}

function isTooLong(input: unknown): boolean {
  const text = toJsonTextOrNone(input);
  return text === undefined || text.length > PAGE_INPUT_LENGTH;
}

/** Tells whether a result says that its structured content is `{ result: data }`, because its client takes objects alone. */
function readWrapsResult(meta: unknown): boolean {
  return memberOf(meta, RESULT_META_KEY)?.["wrapsResult"] === true;
}

/** The wire form of data that plain JSON cannot hold, where a result carries one. */
function readWire(meta: unknown): { readonly wire: unknown } | undefined {
  const facts = memberOf(meta, RESULT_META_KEY);
  return facts !== undefined && Object.hasOwn(facts, "wire") ? { wire: facts["wire"] } : undefined;
}

function readErrors(value: unknown): readonly ErrorDeclaration[] {
  if (!Array.isArray(value) || value.length > MOST_DECLARED) return [];
  return value.flatMap((entry: unknown) => {
    const { code, description, schema, httpStatus } = isPlainObject(entry) ? entry : {};
    if (typeof code !== "string" || !CODE.test(code)) return [];
    const isStatus =
      Number.isInteger(httpStatus) && (httpStatus as number) >= 400 && (httpStatus as number) < 600;
    const isSchema = typeof schema === "boolean" || isPlainObject(schema);
    return [
      {
        code,
        ...(typeof description === "string" && { description: cleanText(description).text }),
        ...(isSchema && { schema: schema as NonNullable<ErrorDeclaration["schema"]> }),
        ...(isStatus && { httpStatus: httpStatus as number }),
      },
    ];
  });
}

function memberOf(meta: unknown, key: string): Record<string, unknown> | undefined {
  if (!isPlainObject(meta) || !Object.hasOwn(meta, key)) return undefined;
  const member = meta[key];
  return isPlainObject(member) ? member : undefined;
}

function isStrings(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) && value.length <= MOST_DECLARED && value.every((item) => typeof item === "string")
  );
}
