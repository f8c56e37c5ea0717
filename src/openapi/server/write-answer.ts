import { createHash, type Hash } from "node:crypto";
import { isErrorEnvelope, type ResponseEnvelope, type ResultFacts } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { MAX_JSON_DEPTH } from "../../core/json/json-depth.ts";
import { toJsonTextOrNone } from "../../core/json/json-text.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import { encodeEnvelope, toWire } from "../../core/wire/wire.ts";
import type { AnswerHeaders, HttpAnswer } from "../../http/exchange.ts";
import { DATA_TYPE, ENVELOPE_TYPE } from "../media-types.ts";
import { formatType, type Representation } from "./accept.ts";
import { problemAnswer, toolErrorAnswer, toolErrorStatus } from "./problem-answer.ts";

/** How an answer is written. */
export interface WriteOptions {
  readonly representation: Representation;
  /** Whether the answer goes into a larger JSON document, where bytes need their wire form. */
  readonly nested: boolean;
  /** What is known of a failure beyond its problem, such as how to authenticate. */
  readonly errorHeaders: (status: number) => AnswerHeaders | undefined;
}

const FACTS_CHARACTERS = 4_096;
/** What facts may take that are needed to read on; with the other headers, what our own client reads. */
const PAGE_CHARACTERS = 61_440;
const JSON_TYPE = "application/json";
const BYTES_TYPE = "application/octet-stream";
/** Types that no browser runs anything of. */
const HARMLESS_TYPE =
  /^(?:image\/(?:png|jpeg|gif|webp|avif|bmp)|(?:audio|video)\/[a-z0-9.+-]+|application\/(?:pdf|zip|gzip|octet-stream))$/;
const WIRE = { code: "OUTPUT_INVALID", errors: false } as const;

/** Writes a call that has ended as an answer; a result that cannot be written is thrown as a `CallError`. */
export function writeAnswer(call: EndedCall, options: WriteOptions): Promise<HttpAnswer> | HttpAnswer {
  const { representation } = options;
  // A format alone has to be waited for.
  if (representation.kind === "format") return writeFormat(call, representation.format, options);
  return writeOutcome(call, options);
}

function writeOutcome(call: EndedCall, options: WriteOptions): HttpAnswer {
  const { outcome, requestId } = call;
  if ("error" in outcome) {
    const { error } = outcome;
    return problemAnswer(error, requestId, options.errorHeaders(error.httpStatus));
  }
  const { envelope } = outcome;
  const isWhole = options.representation.kind === "envelope" || needsEnvelope(envelope, options);
  const representation: Representation = isWhole ? { kind: "envelope" } : options.representation;
  const headers = factHeaders(call.operationId, envelope, representation);
  if (isWhole) {
    headers["content-type"] = ENVELOPE_TYPE;
    const status = isErrorEnvelope(envelope) ? toolErrorStatus(envelope) : 200;
    return { status, headers, body: encodeEnvelope(envelope) };
  }
  if (isErrorEnvelope(envelope)) return toolErrorAnswer(envelope, requestId, headers);
  const exact = options.representation.kind === "data" && options.representation.exact;
  return writeData(envelope, headers, { exact, nested: options.nested });
}

/** What an operation said about its data and no header holds travels in the envelope, for clients that take one. */
function needsEnvelope({ meta }: ResponseEnvelope, { representation, nested }: WriteOptions): boolean {
  if (meta.waybill?.said === undefined || meta.isError === true || nested) return false;
  if (representation.kind !== "data" || !representation.orEnvelope) return false;
  return (toAscii(meta.waybill)?.length ?? 0) > FACTS_CHARACTERS;
}

function writeData(
  { data, meta }: ResponseEnvelope,
  headers: AnswerHeaders,
  { exact, nested }: { readonly exact: boolean; readonly nested: boolean },
): HttpAnswer {
  if (data === undefined) return { status: 204, headers, body: undefined };
  if (data instanceof Uint8Array && !nested) {
    headers["content-type"] = meta.source === "http" ? harmlessType(meta.contentType) : BYTES_TYPE;
    return { status: 200, headers, body: data };
  }
  // Text first: what has no end has no text, and must not be walked.
  const text = exact ? undefined : toJsonTextOrNone(data);
  if (text !== undefined && !isChangedByJson(data)) {
    headers["content-type"] = JSON_TYPE;
    return { status: 200, headers, body: text };
  }
  const wire = toWire(data, WIRE);
  headers["content-type"] = wire === data ? JSON_TYPE : DATA_TYPE;
  return { status: 200, headers, body: JSON.stringify(wire) };
}

/** Finds what JSON would quietly make something else of: dates that are none, and scalars in boxes. */
function isChangedByJson(data: unknown, depth = 0): boolean {
  if (typeof data !== "object" || data === null || depth > MAX_JSON_DEPTH) return false;
  if (Array.isArray(data)) return data.some((item) => isChangedByJson(item, depth + 1));
  if (data instanceof Date) return Number.isNaN(data.getTime());
  if (data instanceof Number || data instanceof String || data instanceof Boolean) return true;
  if (typeof (data as { toJSON?: unknown }).toJSON === "function") return false;
  for (const name in data) {
    if (isChangedByJson((data as Record<string, unknown>)[name], depth + 1)) return true;
  }
  return false;
}

async function writeFormat(
  call: EndedCall,
  format: Extract<Representation, { kind: "format" }>["format"],
  options: WriteOptions,
): Promise<HttpAnswer> {
  const { outcome } = call;
  const result = await format.write(call);
  const body = JSON.stringify(toWire(result, WIRE));
  if ("envelope" in outcome) {
    const headers = factHeaders(call.operationId, outcome.envelope, options.representation);
    headers["content-type"] = formatType(format.name);
    const status = isErrorEnvelope(outcome.envelope) ? toolErrorStatus(outcome.envelope) : 200;
    return { status, headers, body };
  }
  const { status, headers } = problemAnswer(
    outcome.error,
    call.requestId,
    options.errorHeaders(outcome.error.httpStatus),
  );
  return { status, headers: { ...headers, "content-type": formatType(format.name) }, body };
}

function harmlessType(contentType: string): string {
  const [type = ""] = contentType.toLowerCase().split(";");
  return HARMLESS_TYPE.test(type.trim()) ? type.trim() : BYTES_TYPE;
}

/** The facts of an envelope as header fields: printable ASCII whatever they say. */
function factHeaders(
  operationId: string,
  { meta }: ResponseEnvelope,
  { kind }: Representation,
): AnswerHeaders {
  const headers: AnswerHeaders = { "waybill-source": meta.source, "waybill-operation": operationId };
  const facts = meta.waybill === undefined ? undefined : writeFacts(meta.waybill, kind === "data");
  if (facts !== undefined) headers["waybill-facts"] = facts;
  const { violations = [] } = meta.waybill ?? {};
  if (violations.length > 0) headers["waybill-violations"] = String(violations.length);
  return headers;
}

/** Facts that are too long stay behind; how to ask for the next page never does where the body cannot say it: a list would seem to end. */
function writeFacts(facts: ResultFacts, needsPage: boolean): string | undefined {
  const all = toAscii(facts);
  if (all !== undefined && all.length <= FACTS_CHARACTERS) return all === "{}" ? undefined : all;
  const { page, said, ...others } = facts;
  if (said !== undefined) return writeFacts({ ...others, ...(page && { page }) }, needsPage);
  if (!needsPage || (page?.next === undefined && page?.input === undefined)) return undefined;
  const needed = toAscii({ page });
  if (needed !== undefined && needed.length <= PAGE_CHARACTERS) return needed;
  const message = `What asks for the next page is longer than ${PAGE_CHARACTERS} characters, or no JSON.`;
  throw new CallError("OUTPUT_INVALID", message, { stack: false });
}

function toAscii(facts: ResultFacts): string | undefined {
  return toJsonTextOrNone(facts)?.replace(
    /[^\x20-\x7e]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Makes an entity tag of what was put into a SHA-256. */
export function toEntityTag(hash: Hash): string {
  return `"${hash.digest("base64url").slice(0, 27)}"`;
}

/** Gives an answer to a query its entity tag, unless it has one, or leaves its body out where the client has it already. */
export function withEntityTag(answer: HttpAnswer, ifNoneMatch: string | undefined): HttpAnswer {
  const { status, headers, body } = answer;
  if (status !== 200 || (typeof body !== "string" && !(body instanceof Uint8Array))) return answer;
  const known = headers["etag"];
  const etag = typeof known === "string" ? known : toEntityTag(createHash("sha256").update(body));
  (headers as AnswerHeaders)["etag"] = etag;
  if (ifNoneMatch === undefined || !matches(ifNoneMatch, etag)) return answer;
  return { status: 304, headers: headers, body: undefined };
}

/** Weak and strong tags are equal here, as RFC 9110 has it for this header. */
function matches(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === "*") return true;
  return ifNoneMatch.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

/** Where the next page of a query is: relative to the page at hand, whose address may begin with what a server it is mounted in took off. */
export function nextPageLink(call: EndedCall, query: string): string | undefined {
  const next = "envelope" in call.outcome ? call.outcome.envelope.meta.waybill?.page?.next : undefined;
  if (typeof next !== "string" || /\p{Surrogate}/u.test(next)) return undefined;
  const others = query.split("&").filter((pair) => pair !== "" && !/^cursor(?:=|$)/.test(pair));
  const link = `<?${[...others, `cursor=${encodeURIComponent(next)}`].join("&")}>; rel="next"`;
  // A query may hold signs that would end the address early.
  return link.length <= FACTS_CHARACTERS && /^<[^<>"\s]+>; rel="next"$/.test(link) ? link : undefined;
}
