import { isPlainObject, type KeepLiterals, ownMember, toJsonTextOrNone } from "../json/json-value.ts";
import { errorFacts, type ResultSaid, resultFacts, type ToolErrorSaid } from "../result/said.ts";
import type { MCPContentBlock } from "./content-block.ts";
import type {
  HTTPResponseMeta,
  LocalResponseMeta,
  MCPResponseMeta,
  ResponseEnvelope,
  ResponseMeta,
  ResultFacts,
  SaidFacts,
} from "./response-meta.ts";

export {
  type HTTPResponseMeta,
  type LocalResponseMeta,
  type MCPResponseMeta,
  type ObtainedFrom,
  type PageFacts,
  RESPONSE_SOURCES,
  type ResponseEnvelope,
  type ResponseMeta,
  type ResponseSource,
  type ResultFacts,
  type ResultFinding,
  type SaidFacts,
} from "./response-meta.ts";

/** What `httpEnvelope` is told; `contentType` may be what `headers.get` gave. */
export interface HTTPEnvelopeMeta {
  readonly statusCode: number;
  /** As `Headers`, or by name; several values of one name are joined with `, `. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[]>>;
  /** @default "" */
  readonly contentType?: string | null | undefined;
  readonly setCookie?: readonly string[] | undefined;
  readonly isError?: boolean | undefined;
  readonly waybill?: ResultFacts | undefined;
}

/** What `mcpEnvelope` is told. */
export interface MCPEnvelopeMeta {
  readonly isError: boolean;
  readonly content: readonly MCPContentBlock[];
  readonly structuredContent?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
  readonly waybill?: ResultFacts | undefined;
}

declare const AUTHORED: unique symbol;

/**
 * What the helpers of a format make: a handler may return it, and it counts as a result with the data `T`. A type rather than an
 * interface, so that MCP SDKs take it for a record.
 */
export type AuthoredResult<T = unknown> = {
  readonly [AUTHORED]: T;
};

declare const RESULT: unique symbol;

/** What `result` makes: an envelope whose data a handler's declared output holds for, as it does for plain data. */
export interface ResultEnvelope<T = unknown> extends ResponseEnvelope<T> {
  readonly [RESULT]?: T;
}

/** An envelope from elsewhere, whatever its data: that of another call, of a factory, or of an error. */
export type OtherEnvelope = ResponseEnvelope & { readonly [RESULT]?: never };

/** What a call that returned came to. */
export type Outcome = "ok" | "tool_error";

const NOT_REPLACED = Symbol("not replaced");

class ReturnArgument {
  constructor(target: object) {
    // biome-ignore lint/correctness/noConstructorReturn: lets a subclass put its private field on the argument
    return target;
  }
}

/** What marks a value that is no envelope itself and can be read as one. */
class Reading {
  readonly read: () => ResponseEnvelope;

  constructor(read: () => ResponseEnvelope) {
    this.read = read;
  }
}

/** A private field on the value itself: nothing can forge it, nobody sees it, and it costs no lookup table. */
class Mark extends ReturnArgument {
  readonly #raw: unknown;

  private constructor(envelope: object, raw: unknown) {
    super(envelope);
    this.#raw = raw;
  }

  static put<V extends object>(value: V, raw: unknown): V {
    new Mark(value, raw);
    return value;
  }

  static rawOf(value: object): unknown {
    return #raw in value ? value.#raw : NOT_REPLACED;
  }

  /** The envelope that a marked value is, or can be read as. */
  static envelopeOf(value: object): ResponseEnvelope | undefined {
    if (!(#raw in value)) return undefined;
    const raw = value.#raw;
    return raw instanceof Reading ? raw.read() : (value as unknown as ResponseEnvelope);
  }

  static isMissingOn(value: object): boolean {
    return !(#raw in value);
  }

  static isOn(value: object): boolean {
    return #raw in value && !(value.#raw instanceof Reading);
  }
}

/** Makes the same plain object as a literal, but one that engines leave room in for the mark: it saves 20 ns a call. */
const PlainEnvelope = function (
  this: { data: unknown; meta: ResponseMeta },
  data: unknown,
  meta: ResponseMeta,
) {
  this.data = data;
  this.meta = meta;
} as unknown as new <T>(
  data: T,
  meta: ResponseMeta,
) => ResponseEnvelope<T>;
PlainEnvelope.prototype = Object.prototype;

/** Wraps a value made in this process. */
export function localEnvelope<T>(data: T, operationId: string): ResponseEnvelope<T> {
  return Mark.put(
    new PlainEnvelope(data, { source: "local", operationId, timestamp: Date.now() }),
    NOT_REPLACED,
  );
}

/** Wraps the body of an HTTP response; the envelope says `"http"` whatever `meta` claims. */
export function httpEnvelope<T>(data: T, meta: HTTPEnvelopeMeta): ResponseEnvelope<T> {
  const { statusCode, headers, contentType } = meta;
  const built: Writable<HTTPResponseMeta> = {
    source: "http",
    statusCode,
    headers: joinHeaders(headers),
    contentType: contentType ?? "",
  };
  const setCookie = ownMember(meta, "setCookie");
  if (setCookie !== undefined) built.setCookie = setCookie;
  if (isErrorGiven(meta)) built.isError = true;
  const waybill = ownMember(meta, "waybill");
  if (waybill !== undefined) built.waybill = waybill;
  return Mark.put({ data, meta: built }, NOT_REPLACED);
}

/** Wraps the result of an MCP tool; the envelope says `"mcp"` whatever `meta` claims. */
export function mcpEnvelope<T>(data: T, meta: MCPEnvelopeMeta): ResponseEnvelope<T> {
  const built: Writable<MCPResponseMeta> = {
    source: "mcp",
    isError: isErrorGiven(meta),
    content: (meta.content ?? []) as MCPResponseMeta["content"],
  };
  const structuredContent = ownMember(meta, "structuredContent");
  if (structuredContent !== undefined)
    built.structuredContent = structuredContent as NonNullable<MCPResponseMeta["structuredContent"]>;
  const _meta = ownMember(meta, "_meta");
  if (_meta !== undefined) built._meta = _meta;
  const waybill = ownMember(meta, "waybill");
  if (waybill !== undefined) built.waybill = waybill;
  return Mark.put({ data, meta: built }, NOT_REPLACED);
}

/** Gives data with what the operation says about it: status, summary, next steps and the rest, in whatever format it is served. */
export function result<T extends KeepLiterals>(data: T, said: ResultSaid = {}): ResultEnvelope<T> {
  assertData("result", data);
  return authoredEnvelope(data, resultFacts(said));
}

/** Says that an operation ran and the answer is no: what a local handler returns instead of throwing. */
export function toolError<T>(data: T, said: ToolErrorSaid = {}): ResponseEnvelope<T> {
  assertData("toolError", data);
  const { facts, operationId } = errorFacts(said);
  return authoredEnvelope(data, facts, { isError: true, operationId });
}

/** A result in the place of data would lose its outcome: the error of a nested call would become a success. */
function assertData(author: string, data: unknown): void {
  if (typeof data !== "object" || data === null || Mark.isMissingOn(data)) return;
  throw new TypeError(
    `${author}() takes data, and this is a result already: return it as it is, or give ${author}() its data alone.`,
  );
}

interface AuthoredOptions {
  /** @default false */
  readonly isError?: boolean;
  /** @default the operation that returns it */
  readonly operationId?: string;
}

/** Makes a local envelope of data and checked facts; an operation without a name is the one that returns it. */
export function authoredEnvelope<T>(
  data: T,
  facts: ResultFacts,
  { isError = false, operationId = "" }: AuthoredOptions = {},
): ResponseEnvelope<T> {
  const waybill = factsOrNone(facts);
  const meta: LocalResponseMeta = {
    source: "local",
    operationId,
    timestamp: Date.now(),
    ...(isError && { isError }),
    ...(waybill && { waybill }),
  };
  return Mark.put({ data, meta }, NOT_REPLACED);
}

/** Marks a value that a handler may return in place of an envelope; `read` makes the envelope when one does. */
export function markAuthored<V extends object>(value: V, read: () => ResponseEnvelope): V {
  return Mark.put(value, new Reading(read));
}

/** Gives the data and leaves the paper. */
export function unwrap<T>(envelope: ResponseEnvelope<T>): T {
  return envelope.data;
}

/** Tells whether the operation ran and reported an error. */
export function isErrorEnvelope(envelope: ResponseEnvelope): boolean {
  return envelope.meta.isError === true;
}

/** Names the outcome an envelope stands for. */
export function outcomeOf(envelope: ResponseEnvelope): Outcome {
  return isErrorEnvelope(envelope) ? "tool_error" : "ok";
}

/** Tells whether one of the factories made this very object, in this process; looks alone do not count. */
export function isMarkedEnvelope(value: unknown): value is ResponseEnvelope {
  return typeof value === "object" && value !== null && Mark.isOn(value);
}

/** Gives the envelope that a value made here is, or can be read as; nothing for any other value, whatever it looks like. */
export function toMarkedEnvelope(value: unknown): ResponseEnvelope | undefined {
  return typeof value === "object" && value !== null ? Mark.envelopeOf(value) : undefined;
}

/** Adds facts in a marked copy; `data`, unless undefined, takes the place of the old, which `rawData` still gives. */
export function withFacts<T>(
  envelope: ResponseEnvelope<T>,
  facts: ResultFacts,
  data?: T,
): ResponseEnvelope<T> {
  const known = envelope.meta.waybill;
  // `Object.assign`, because adding a key to a spread copy is ten times slower.
  const waybill = factsOrNone(Object.assign({}, known, facts));
  const meta: ResponseMeta = Object.assign({}, envelope.meta, waybill && { waybill });
  const earlier = Mark.rawOf(envelope);
  if (data === undefined) return Mark.put({ data: envelope.data, meta }, earlier);
  return Mark.put({ data, meta }, earlier === NOT_REPLACED ? envelope.data : earlier);
}

/** Names the operation in a marked copy of a local envelope that does not say; gives any other back as it is. */
export function withOperationId<T>(envelope: ResponseEnvelope<T>, operationId: string): ResponseEnvelope<T> {
  const { data, meta } = envelope;
  if (meta.source !== "local" || meta.operationId !== "") return envelope;
  return Mark.put({ data, meta: { ...meta, operationId } }, Mark.rawOf(envelope));
}

/**
 * Gives other data in a marked copy, for a handler that changed what a nested call gave it. The rest stays as it is but for what describes
 * the old data: how it was obtained and normalised, what it violated, and its content, which for MCP becomes the new data as text.
 */
export function withData<T>(envelope: ResponseEnvelope, data: T): ResponseEnvelope<T> {
  if (!isMarkedEnvelope(envelope) && !isResponseEnvelope(envelope)) {
    throw new TypeError("withData takes an envelope and the data to put in it.");
  }
  const { meta } = envelope;
  const waybill = factsForOtherData(meta.waybill);
  if (meta.source !== "mcp") return adoptEnvelope({ data, meta: { ...meta, waybill } as ResponseMeta });
  const { isError, _meta } = meta;
  return mcpEnvelope(data, { isError, ...contentOf(data, envelope.data, meta), _meta, waybill });
}

function factsForOtherData(known: ResultFacts = {}): ResultFacts | undefined {
  const {
    obtained: _,
    normalization: __,
    violations: ___,
    masked: ____,
    findings: _____,
    said,
    ...facts
  } = known;
  const { content: _shown, ...words } = said ?? {};
  return factsOrNone(Object.keys(words).length === 0 ? facts : { ...facts, said: words });
}

/** Where the data was the content itself, blocks in its place are too; any other data is structured. */
function contentOf(
  data: unknown,
  old: unknown,
  meta: MCPResponseMeta,
): Pick<MCPEnvelopeMeta, "content" | "structuredContent"> {
  const wasContent = old === meta.content || meta.waybill?.obtained === "content";
  if (wasContent && Array.isArray(data) && data.every(isContentBlock)) return { content: data };
  const text = typeof data === "string" ? data : toJsonTextOrNone(data);
  return { content: text === undefined ? [] : [{ type: "text", text }], structuredContent: data };
}

/** Gives the data as it first came back, before anything replaced it. */
export function rawData(envelope: ResponseEnvelope): unknown {
  const raw = Mark.rawOf(envelope);
  return raw === NOT_REPLACED ? envelope.data : raw;
}

/** Rebuilds a checked envelope with the fields its source knows, and marks it: only for those who trust where it came from. */
export function adoptEnvelope<T>({ data, meta }: ResponseEnvelope<T>): ResponseEnvelope<T> {
  switch (meta.source) {
    case "http":
      return httpEnvelope(data, meta);
    case "mcp":
      return mcpEnvelope(data, meta);
    case "local": {
      const { source, operationId, timestamp } = meta;
      const built: Writable<LocalResponseMeta> = { source, operationId, timestamp };
      const isError = ownMember(meta, "isError");
      if (isError !== undefined) built.isError = isError;
      const waybill = ownMember(meta, "waybill");
      if (waybill !== undefined) built.waybill = waybill;
      return Mark.put({ data, meta: built }, NOT_REPLACED);
    }
  }
}

/** Added to one by one, which costs a tenth of what copies by `...` do. */
type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

function joinHeaders(headers: HTTPEnvelopeMeta["headers"]): Readonly<Record<string, string>> {
  if (headers instanceof Headers) return Object.fromEntries(headers.entries());
  const names = Object.keys(headers);
  if (names.every((name) => typeof headers[name] === "string")) return headers as Record<string, string>;
  return Object.fromEntries(names.map((name) => [name, [headers[name]].flat().join(", ")]));
}

function isErrorGiven(meta: { readonly isError?: boolean | undefined }): boolean {
  return Object.hasOwn(meta, "isError") && meta.isError === true;
}

function factsOrNone(facts: ResultFacts): ResultFacts | undefined {
  for (const _ in facts) return facts;
  return undefined;
}

type Check = (value: unknown) => boolean;
type Fields = Readonly<Record<string, Check>>;

const isAnything: Check = () => true;
const isString: Check = (value) => typeof value === "string";
const isNumber: Check = Number.isFinite;
const isInteger: Check = Number.isInteger;
const isBoolean: Check = (value) => typeof value === "boolean";
const isTrue: Check = (value) => value === true;

const oneOf = (...values: readonly string[]): Check => {
  const known = new Set<unknown>(values);
  return (value) => known.has(value);
};

/** By index, not with `every`, which a hostile array can bring along. */
const listOf =
  (isItem: Check): Check =>
  (value) => {
    if (!Array.isArray(value)) return false;
    for (let i = 0; i < value.length; i++) if (!isItem(value[i])) return false;
    return true;
  };

const recordOf =
  (isMember: Check): Check =>
  (value) => {
    if (!isPlainObject(value)) return false;
    for (const key of Object.keys(value)) if (!isMember(value[key])) return false;
    return true;
  };

/** Own properties only; an optional one may be undefined; unknown ones are tolerated. */
const shape = (required: Fields, optional: Fields = {}): Check => {
  const must = Object.entries(required);
  const may = Object.entries(optional);
  return (value) => {
    if (!isPlainObject(value)) return false;
    for (const [key, check] of must) if (!Object.hasOwn(value, key) || !check(value[key])) return false;
    for (const [key, check] of may) {
      if (!Object.hasOwn(value, key)) continue;
      const member = value[key];
      if (member !== undefined && !check(member)) return false;
    }
    return true;
  };
};

/** One shape per value of a discriminant. */
const variants = (discriminant: string, shapes: Fields): Check => {
  const byName = new Map<unknown, Check>(Object.entries(shapes));
  return (value) => {
    if (!isPlainObject(value) || !Object.hasOwn(value, discriminant)) return false;
    return byName.get(value[discriminant])?.(value) === true;
  };
};

const isRecord = recordOf(isAnything);

const isAnnotations = shape(
  {},
  { audience: listOf(oneOf("user", "assistant")), priority: isNumber, lastModified: isString },
);

const extras = { annotations: isAnnotations, _meta: isRecord };
const isMedia = shape({ data: isString, mimeType: isString }, extras);

const isKnownBlock = variants("type", {
  text: shape({ text: isString }, extras),
  image: isMedia,
  audio: isMedia,
  resource: shape(
    {
      resource: shape(
        { uri: isString },
        { mimeType: isString, text: isString, blob: isString, _meta: isRecord },
      ),
    },
    extras,
  ),
  resource_link: shape(
    { uri: isString, name: isString },
    { ...extras, title: isString, description: isString, mimeType: isString, size: isNumber },
  ),
});

const isTexts = listOf(isString);

const isSaid = shape(
  {},
  {
    status: oneOf("ok", "error", "info", "warn"),
    summary: isString,
    details: isTexts,
    nextSteps: isTexts,
    content: listOf(isKnownBlock),
    truncated: isBoolean,
    tokenUsage: shape({}, { inline: isNumber, total: isNumber }),
    rateLimit: shape({}, { remaining: isNumber, resetSeconds: isNumber }),
    capabilities: isTexts,
    upgradeHints: listOf(shape({ feature: isString, tier: isString, reason: isString })),
    category: isString,
    recoverable: isBoolean,
    suggestedAction: isString,
    nextTool: isString,
    errorExtra: isRecord,
    _meta: isRecord,
    extra: recordOf(isRecord),
  },
);

const isFacts = shape(
  {},
  {
    durationMs: isNumber,
    attempts: isNumber,
    obtained: oneOf(
      "structured-content",
      "envelope-block",
      "contract-json",
      "text-json",
      "content",
      "body",
      "members",
      "return-value",
    ),
    normalization: shape(
      { stripped: isTexts, defaulted: isTexts, converted: isTexts },
      { omitted: isNumber },
    ),
    violations: listOf(
      shape({ pointer: isString, expected: isString, found: isString }, { message: isString }),
    ),
    sequence: isNumber,
    cursor: isString,
    event: isString,
    page: shape({}, { next: isString, input: isAnything }),
    unknown: isRecord,
    code: isString,
    message: isString,
    said: isSaid,
    masked: isTexts,
    findings: listOf(
      shape({ kind: isString, rule: isString, pointer: isString, count: isNumber }, { masked: isTrue }),
    ),
  },
);

const isMeta = variants("source", {
  local: shape({ operationId: isString, timestamp: isNumber }, { isError: isTrue, waybill: isFacts }),
  http: shape(
    { statusCode: isInteger, headers: recordOf(isString), contentType: isString },
    { setCookie: listOf(isString), isError: isTrue, waybill: isFacts },
  ),
  mcp: shape({ isError: isBoolean, content: listOf(isKnownBlock) }, { _meta: isRecord, waybill: isFacts }),
});

const isEnvelope = shape({ data: isAnything, meta: isMeta });

/** Tells whether a value is a content block of one of the kinds MCP defines; never throws. */
export function isContentBlock(value: unknown): value is MCPContentBlock {
  return passes(isKnownBlock, value);
}

/** Tells whether a value has the shape of the facts about a result; never throws. */
export function isResultFacts(value: unknown): value is ResultFacts {
  return passes(isFacts, value);
}

/** Tells whether a value has the shape of what an operation says about its result; never throws. */
export function isSaidFacts(value: unknown): value is SaidFacts {
  return passes(isSaid, value);
}

/** Tells whether a value has the shape of an envelope, with the fields its source requires; never throws. */
export function isResponseEnvelope(value: unknown): value is ResponseEnvelope {
  return passes(isEnvelope, value);
}

function passes(check: Check, value: unknown): boolean {
  try {
    return check(value);
  } catch {
    return false;
  }
}
