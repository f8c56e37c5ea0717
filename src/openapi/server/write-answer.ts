import { hash } from "node:crypto";
import type { Identity } from "../../core/access/identity.ts";
import { isErrorEnvelope, type ResponseEnvelope, type ResultFacts } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { MAX_JSON_DEPTH, toJsonTextOrNone } from "../../core/json/json-value.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import type { ResultFormat } from "../../core/result/result-reader.ts";
import { encodeEnvelope, toWire } from "../../core/wire/wire.ts";
import type { AnswerHeaders, AuthenticatedRequest, HttpAnswer } from "../../http/exchange.ts";
import { DATA_TYPE, ENVELOPE_TYPE } from "../media-types.ts";
import { problemAnswer, requestError, toolErrorAnswer, toolErrorStatus } from "./problem-answer.ts";

/** How an answer is written. */
export interface WriteOptions {
  readonly representation: Representation;
  /** Whether the answer goes into a larger JSON document, where bytes need their wire form. */
  readonly nested: boolean;
  /** What is known of a failure beyond its problem, such as how to authenticate. */
  readonly errorHeaders: (error: CallError, caller: AuthenticatedRequest) => AnswerHeaders | undefined;
  readonly caller: AuthenticatedRequest;
}

const FACTS_CHARACTERS = 4_096;
/** What facts may take that are needed to read on; with the other headers, what our own client reads. */
const PAGE_CHARACTERS = 61_440;
const JSON_TYPE = "application/json";
const BYTES_TYPE = "application/octet-stream";
/** Types that no browser runs anything of. */
const HARMLESS_TYPE =
  /^(?:image\/(?:png|jpeg|gif|webp|avif|bmp)|(?:audio|video)\/[a-z0-9.+-]+|application\/(?:pdf|zip|gzip|octet-stream))$/;
/** What nearly all facts are: finding that out takes a third of looking for what to replace. */
const PRINTABLE = /^[\x20-\x7e]*$/;
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
    return problemAnswer(error, requestId, options.errorHeaders(error, options.caller));
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
    options.errorHeaders(outcome.error, options.caller),
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
  const { violations = [], findings = [] } = meta.waybill ?? {};
  if (violations.length > 0) headers["waybill-violations"] = String(violations.length);
  if (findings.length > 0) headers["waybill-findings"] = String(findings.length);
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
  const text = toJsonTextOrNone(facts);
  if (text === undefined || PRINTABLE.test(text)) return text;
  return text.replace(/[^\x20-\x7e]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Makes an entity tag of what was put into a SHA-256. */
export function toEntityTag(digest: string): string {
  return `"${digest.slice(0, 27)}"`;
}

/** Gives an answer to a query its entity tag, unless it has one, or leaves its body out where the client has it already. */
export function withEntityTag(answer: HttpAnswer, ifNoneMatch: string | undefined): HttpAnswer {
  const { status, headers, body } = answer;
  if (status !== 200 || (typeof body !== "string" && !(body instanceof Uint8Array))) return answer;
  const known = headers["etag"];
  const etag = typeof known === "string" ? known : toEntityTag(hash("sha256", body, "base64url"));
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

/** How the result of a call is written: the data alone, the whole envelope, or a format. */
export type Representation =
  | {
      readonly kind: "data";
      /** Whether what plain JSON would change goes in its wire form. */
      readonly exact: boolean;
      /** Whether the whole envelope is accepted as well, for what headers cannot hold. */
      readonly orEnvelope: boolean;
    }
  | { readonly kind: "envelope" }
  | { readonly kind: "format"; readonly format: ResultFormat };

/** The media type of subscriptions. */
export const EVENTS_TYPE = "text/event-stream";

/** The media type of a format, by its name. */
export function formatType(name: string): string {
  return `application/vnd.waybill.${name.toLowerCase()}+json`;
}

/** Tells one way of writing results from another. */
export function representationName(representation: Representation): string {
  if (representation.kind === "format") return `format ${representation.format.name}`;
  if (representation.kind === "envelope") return "envelope";
  return `${representation.exact ? "exact data" : "data"}${representation.orEnvelope ? " or envelope" : ""}`;
}

/** Chooses how to answer. */
export interface Negotiation {
  /** Throws where nothing there is would be accepted; who asks decides where anything is. */
  choose(accept: string | undefined, wanted: string | undefined, identity?: Identity): Representation;
  /** Tells whether a stream of events is accepted before all else. */
  prefersEvents(accept: string | undefined): boolean;
  /** Throws unless a stream of events is accepted. */
  checkEvents(accept: string | undefined): void;
}

const DATA: Representation = { kind: "data", exact: false, orEnvelope: false };
const REMEMBERED = 256;
const ACCEPT_CHARACTERS = 2_048;

interface Choice {
  readonly types: readonly [string, ...string[]];
  readonly representation: Representation;
}

/** Creates what chooses between data, envelope and these formats; `formatOf` names what goes to a client that accepts anything. */
export function createNegotiation(
  formats: readonly ResultFormat[],
  formatOf?: (identity: Identity | undefined) => string | undefined,
): Negotiation {
  const choices: readonly Choice[] = [
    { types: ["application/json", DATA_TYPE, "application/octet-stream"], representation: DATA },
    { types: [ENVELOPE_TYPE], representation: { kind: "envelope" } },
    ...formats.map((format) => ({
      types: [formatType(format.name)] as const,
      representation: { kind: "format", format } as const,
    })),
  ];
  const byName = new Map<string, Representation>([
    ["data", DATA],
    ["envelope", { kind: "envelope" }],
    ...formats.map((format) => [format.name, { kind: "format", format }] as const),
  ]);
  const seen = new Map<string, Representation>();
  return {
    choose(accept, wanted, identity) {
      if (wanted !== undefined) return byName.get(wanted) ?? refuse(choices);
      if (accept === undefined || accept === "*/*") {
        return byName.get(formatOf?.(identity) ?? "data") ?? DATA;
      }
      const known = seen.get(accept);
      if (known !== undefined) return known;
      const chosen = chooseBest(accept, choices) ?? refuse(choices);
      if (seen.size >= REMEMBERED) seen.clear();
      seen.set(accept, chosen);
      return chosen;
    },
    prefersEvents(accept) {
      if (accept?.includes(EVENTS_TYPE) !== true) return false;
      const ranges = parseAccept(accept);
      const others = ranges.filter(({ type }) => type !== EVENTS_TYPE).map(({ quality }) => quality);
      return qualityOf(EVENTS_TYPE, ranges) > Math.max(0, ...others);
    },
    checkEvents(accept) {
      if (accept === undefined || qualityOf(EVENTS_TYPE, parseAccept(accept)) > 0) return;
      throw notAcceptable([EVENTS_TYPE]);
    },
  };
}

function chooseBest(accept: string, choices: readonly Choice[]): Representation | undefined {
  const ranges = parseAccept(accept);
  let best: Representation | undefined;
  let most = 0;
  for (const { types, representation } of choices) {
    const quality = choiceQuality(types, ranges);
    if (quality > most) [most, best] = [quality, representation];
  }
  if (best !== DATA) return best;
  const accepts = (wanted: string): boolean =>
    ranges.some(({ type, quality }) => type === wanted && quality > 0);
  return { kind: "data", exact: accepts(DATA_TYPE), orEnvelope: accepts(ENVELOPE_TYPE) };
}

/** Where the first type, which most results have, is not wanted, only others that are asked for by name make a choice. */
function choiceQuality(types: readonly [string, ...string[]], ranges: readonly MediaRange[]): number {
  const isNamed = (type: string): boolean => ranges.some((range) => range.type === type);
  const [first] = types;
  const isUnwanted = isNamed(first) && qualityOf(first, ranges) === 0;
  const possible = isUnwanted ? types.filter(isNamed) : types;
  return Math.max(0, ...possible.map((type) => qualityOf(type, ranges)));
}

interface MediaRange {
  readonly type: string;
  readonly quality: number;
}

/** Reads the ranges of an `Accept`; one that cannot be read counts as nothing. */
function parseAccept(accept: string): readonly MediaRange[] {
  return accept
    .slice(0, ACCEPT_CHARACTERS)
    .toLowerCase()
    .split(",")
    .map((part) => {
      const [type = "", ...parameters] = part.split(";").map((piece) => piece.trim());
      const weight = parameters.find((parameter) => /^q\s*=/.test(parameter));
      return { type, quality: weight === undefined ? 1 : readQuality(weight) };
    })
    .filter(({ type }) => /^[^\s/]+\/[^\s/]+$/.test(type));
}

function readQuality(weight: string): number {
  const [, digits] = /^q\s*=\s*([01](?:\.\d{0,3})?)$/.exec(weight) ?? [];
  return digits === undefined ? 0 : Math.min(Number(digits), 1);
}

/** The quality that the most specific range gives a type. */
function qualityOf(type: string, ranges: readonly MediaRange[]): number {
  const [group] = type.split("/");
  for (const wanted of [type, `${group}/*`, "*/*"]) {
    const matching = ranges.filter((range) => range.type === wanted);
    if (matching.length > 0) return Math.max(...matching.map(({ quality }) => quality));
  }
  return 0;
}

function refuse(choices: readonly Choice[]): never {
  throw notAcceptable(choices.flatMap(({ types }) => types));
}

function notAcceptable(available: readonly string[]): Error {
  return requestError("VALIDATION_ERROR", "None of the accepted media types is offered; see details.", {
    httpStatus: 406,
    details: { available },
  });
}
