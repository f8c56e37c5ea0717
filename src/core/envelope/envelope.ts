import { toErrorDetails } from "../errors/error-details.ts";
import type { MCPContentBlock } from "./content-block.ts";
import type {
  HTTPResponseMeta,
  MCPResponseMeta,
  ResponseEnvelope,
  ResponseMeta,
  ResultFacts,
} from "./response-meta.ts";

export { isResponseEnvelope } from "./is-response-envelope.ts";
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

/** What `toolError` may be told beyond its data. */
export interface ToolErrorOptions {
  /** A code for programs, best one the operation declares. */
  readonly code?: string | undefined;
  /** A sentence for people. */
  readonly message?: string | undefined;
  /** Facts for the caller, copied into bounded JSON. */
  readonly details?: unknown;
  /** @default the operation that returns it */
  readonly operationId?: string | undefined;
}

/** What a call that returned came to. */
export type Outcome = "ok" | "tool_error";

const NOT_REPLACED = Symbol("not replaced");

class ReturnArgument {
  constructor(target: object) {
    // biome-ignore lint/correctness/noConstructorReturn: lets a subclass put its private field on the argument
    return target;
  }
}

/** A private field on the envelope itself: nothing can forge it, nobody sees it, and it costs no lookup table. */
class Mark extends ReturnArgument {
  readonly #raw: unknown;

  private constructor(envelope: object, raw: unknown) {
    super(envelope);
    this.#raw = raw;
  }

  static put<E extends ResponseEnvelope>(envelope: E, raw: unknown): E {
    new Mark(envelope, raw);
    return envelope;
  }

  static rawOf(value: object): unknown {
    return #raw in value ? value.#raw : NOT_REPLACED;
  }

  static isOn(value: object): boolean {
    return #raw in value;
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
  const built: HTTPResponseMeta = {
    source: "http",
    statusCode,
    headers: joinHeaders(headers),
    contentType: contentType ?? "",
    ...own(meta, "setCookie"),
    ...(isErrorGiven(meta) && { isError: true }),
    ...own(meta, "waybill"),
  };
  return Mark.put({ data, meta: built }, NOT_REPLACED);
}

/** Wraps the result of an MCP tool; the envelope says `"mcp"` whatever `meta` claims. */
export function mcpEnvelope<T>(data: T, meta: MCPEnvelopeMeta): ResponseEnvelope<T> {
  const built: MCPResponseMeta = {
    source: "mcp",
    isError: isErrorGiven(meta),
    content: meta.content ?? [],
    ...own(meta, "structuredContent"),
    ...own(meta, "_meta"),
    ...own(meta, "waybill"),
  };
  return Mark.put({ data, meta: built }, NOT_REPLACED);
}

/** Says that an operation ran and the answer is no: what a local handler returns instead of throwing. */
export function toolError<T>(data: T, options: ToolErrorOptions = {}): ResponseEnvelope<T> {
  const { code, message, operationId = "" } = options;
  const details = toErrorDetails(options.details);
  const facts = { ...own({ code }, "code"), ...own({ message }, "message"), ...own({ details }, "details") };
  const meta = { source: "local", operationId, timestamp: Date.now(), isError: true } as const;
  return Mark.put(
    { data, meta: { ...meta, ...own({ waybill: factsOrNone(facts) }, "waybill") } },
    NOT_REPLACED,
  );
}

/** Gives the data and leaves the paper. */
export function unwrap<T>(envelope: ResponseEnvelope<T>): T {
  return envelope.data;
}

/** Tells whether the operation ran and said no. */
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

/** Adds facts in a marked copy; `data`, unless undefined, takes the place of the old, which `rawData` still gives. */
export function withFacts<T>(
  envelope: ResponseEnvelope<T>,
  facts: ResultFacts,
  data?: T,
): ResponseEnvelope<T> {
  const known = envelope.meta.waybill;
  const waybill = factsOrNone(known === undefined ? { ...facts } : { ...known, ...facts });
  // `Object.assign`, because adding a key to a spread copy is ten times slower.
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
      const isBare = !Object.hasOwn(meta, "isError") && !Object.hasOwn(meta, "waybill");
      if (isBare) return Mark.put({ data, meta: { source, operationId, timestamp } }, NOT_REPLACED);
      const flags = { ...own(meta, "isError"), ...own(meta, "waybill") };
      return Mark.put({ data, meta: { source, operationId, timestamp, ...flags } }, NOT_REPLACED);
    }
  }
}

/** Picks one own property that is not undefined: what a prototype offers, or an empty field, stays out. */
function own<O extends object, K extends keyof O>(from: O, key: K): { [P in K]?: Exclude<O[P], undefined> } {
  const value = Object.hasOwn(from, key) ? from[key] : undefined;
  return value === undefined ? {} : ({ [key]: value } as { [P in K]: Exclude<O[P], undefined> });
}

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
