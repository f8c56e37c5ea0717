import { CallError } from "../../../core/errors/errors.ts";
import { PACKAGE_VERSION } from "../../../core/package-version.ts";
import {
  essenceOf,
  mediaKindOf,
  parseSendableType,
  type SendableType,
  writeMediaType,
} from "../../media-types.ts";
import type { OutgoingRequest, RequestDraft } from "../http-message.ts";
import type { TransportLimits } from "../openapi-options.ts";
import type { OperationPlan, ParameterPlan, ResponsePlan } from "../plan.ts";
import { createBodyWriter } from "./body-writer.ts";
import {
  checkOptionHeaders,
  escapeLiteral,
  escapeText,
  invalidInput,
  isFramingHeader,
  isHeaderValue,
  isToken,
  notCallable,
  shown,
} from "./input-text.ts";
import {
  createCookieWriter,
  createHeaderWriter,
  createPathWriter,
  createQuerystringWriter,
  createQueryWriter,
  createRequiredCheck,
  isAbsent,
  isSendableHeader,
  type PairWriter,
} from "./parameters.ts";
import { resolveServer, type ServerOptions } from "./server-address.ts";

/** Where requests of an operation go, and what goes with each of them. */
export interface RequestBuilderOptions extends ServerOptions {
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly limits: TransportLimits;
}

/** Makes a draft of the request for one input; fails with `CallError` alone. */
export type RequestBuilder = (input: unknown) => RequestDraft;

/** Adds one part of an input to a draft. */
type DraftWriter = (input: object, draft: RequestDraft) => void;

const NO_INPUT = Object.freeze({});

const EMPTY = "is empty, which would be sent as nothing at all, and it is required";

/** Reads a plan once and makes what builds its requests; options that cannot work are a `TypeError`. */
export function createRequestBuilder(plan: OperationPlan, options: RequestBuilderOptions): RequestBuilder {
  const fixed = {
    accept: toAcceptHeader(plan.responses),
    "user-agent": `waybill/${PACKAGE_VERSION}`,
    ...checkOptionHeaders(options.headers),
  };
  const address = resolveServer(plan.servers, options);
  const refusal = address.refusal ?? refusalOf(plan);
  if (refusal !== undefined || address.refusal !== undefined) {
    return () => {
      throw (refusal as () => CallError)();
    };
  }
  const { origin, basePath } = address;
  const { method } = plan;
  const template = createPathTemplate(plan.path, plan.parameters, basePath);
  const writers = createWriters(plan, options.limits);
  return (input) => {
    const given = toInputObject(input);
    const headers: Record<string, string> = { ...fixed };
    const path = template.write(given);
    const draft: RequestDraft = { method, origin, path, query: [], headers, cookies: [], body: undefined };
    if (template.writeQuery !== undefined) draft.query.push(template.writeQuery(given));
    for (const write of writers) write(given, draft);
    return draft;
  };
}

function refusalOf({ method }: OperationPlan): (() => CallError) | undefined {
  if (isToken(method) && method !== "CONNECT") return undefined;
  return () => notCallable("The method of this operation cannot be sent.");
}

function toInputObject(input: unknown): object {
  if (input === undefined || input === null) return NO_INPUT;
  if (typeof input === "object" && !Array.isArray(input)) return input;
  const message = "The input must be an object, with a property for each parameter.";
  throw new CallError("VALIDATION_ERROR", message, { stack: false });
}

function createWriters(plan: OperationPlan, limits: TransportLimits): DraftWriter[] {
  const isRequired = createRequiredCheck(plan);
  const writers = plan.parameters
    .filter((each) => each.in !== "path")
    .map((each) => createParameterWriter(each, isRequired(each) && isSendableHeader(each)));
  if (plan.body !== undefined) writers.push(createBodyPart(plan.body, plan, limits));
  return writers;
}

function createParameterWriter(parameter: ParameterPlan, required: boolean): DraftWriter {
  const { key, allowEmpty } = parameter;
  const write = createPlaceWriter(parameter);
  return (input, draft) => {
    const value = readInput(input, key);
    if (!isAbsent(value)) {
      const isWritten = write(value, draft);
      if (required && !isWritten) throw invalidInput(key, EMPTY);
    } else if (value === null && allowEmpty && parameter.in === "query") write("", draft);
    else if (required) throw invalidInput(key, "is missing");
  };
}

/** Writes a value into a draft, and tells whether there was anything to write. */
type PlaceWriter = (value: unknown, draft: RequestDraft) => boolean;

function createPlaceWriter(parameter: ParameterPlan): PlaceWriter {
  switch (parameter.in) {
    case "query":
      return intoPairs(createQueryWriter(parameter), "query");
    case "querystring":
      return intoPairs(createQuerystringWriter(parameter), "query");
    case "cookie":
      return intoPairs(createCookieWriter(parameter), "cookies");
    case "header": {
      const write = createHeaderWriter(parameter);
      const name = parameter.name.toLowerCase();
      return (value, draft) => {
        const text = write(value);
        if (text !== undefined) draft.headers[name] = text;
        return text !== undefined;
      };
    }
    case "path":
      return () => true;
  }
}

function intoPairs(write: PairWriter, place: "query" | "cookies"): PlaceWriter {
  return (value, draft) => {
    const pairs = draft[place];
    const before = pairs.length;
    write(value, pairs);
    return pairs.length > before;
  };
}

function createBodyPart(
  body: NonNullable<OperationPlan["body"]>,
  { definitions }: OperationPlan,
  limits: TransportLimits,
): DraftWriter {
  const { key, required } = body;
  const write = createBodyWriter(body, definitions);
  return (input, draft) => {
    const value = readInput(input, key);
    if (value === undefined) {
      if (required) throw invalidInput(key, "is missing");
      return;
    }
    const written = write(value);
    checkBodySize(written.body, limits);
    draft.body = written.body;
    draft.headers["content-type"] = written.contentType;
  };
}

/** Most media types that are asked for. */
const MOST = 10;

/** Writes what an operation's success may come as, JSON first; anything where its document does not say. */
function toAcceptHeader(responses: readonly ResponsePlan[]): string {
  const successes = responses.filter(({ status }) => /^2/.test(status));
  const declared = successes.length > 0 ? successes : responses.filter(({ status }) => status === "default");
  const types = declared.flatMap(({ content }) =>
    content.map(({ mediaType }) => parseSendableType(mediaType) ?? parseSendableType(essenceOf(mediaType))),
  );
  const known = types.filter((type): type is SendableType => type !== undefined);
  const ordered = [...known.filter(isJson), ...known.filter((type) => !isJson(type))];
  const names = [...new Set(ordered.map((type) => writeMediaType(type, ["charset", "q", "boundary"])))];
  if (names.length === 0) return "*/*";
  return names
    .slice(0, MOST)
    .map((name, index) => (index === 0 ? name : `${name};q=${Math.max(1, MOST - index) / MOST}`))
    .join(", ");
}

function isJson({ essence }: SendableType): boolean {
  return mediaKindOf(essence) === "json";
}

/** The bounds of a request when none are given. */
const REQUEST_LIMITS = { requestBytes: 33_554_432, urlCharacters: 32_768 } as const;

/** All but what RFC 3986 lets a path hold. */
const NO_PATH = /[^\w\-.~!$&'()*+,;=:@%/]/;

/** The same for a query. */
const NO_QUERY = /[^\w\-.~!$&'()*+,;=:@%/?]/;

/** A percent sign that escapes nothing. */
const NO_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

/** What cannot be a cookie, or is more than one. */
const NO_COOKIE = /[^!-:<-~]/;

/**
 * Joins what a draft holds, and looks at all of it once more. A path that passes is one that every URL parser
 * leaves as it is: no character that needs escaping, no dot segment.
 */
export function finishRequest(draft: RequestDraft, limits: TransportLimits): OutgoingRequest {
  const { method, origin, path, query, cookies, headers, body } = draft;
  if (!isToken(method) || method === "CONNECT") throw unsendable("method");
  if (path.charCodeAt(0) !== 47 || NO_PATH.test(path) || NO_ESCAPE.test(path) || hasDotSegment(path)) {
    throw unsendable("path");
  }
  const joined = query.length === 0 ? "" : `?${query.join("&")}`;
  if (joined !== "" && (NO_QUERY.test(joined) || NO_ESCAPE.test(joined))) throw unsendable("query");
  const most = limits.urlCharacters ?? REQUEST_LIMITS.urlCharacters;
  if (origin.length + path.length + joined.length > most) {
    throw tooLarge(`The address of the request is longer than ${most} characters.`);
  }
  for (const name of Object.keys(headers)) checkHeader(name, headers[name]);
  checkBodySize(body, limits);
  const sent = cookies.length === 0 ? headers : withCookies(headers, cookies);
  return { method, origin, path: path + joined, headers: sent, body };
}

/** Refuses a body that is larger than the limit. */
function checkBodySize(body: string | Uint8Array | undefined, limits: TransportLimits): void {
  const most = limits.requestBytes ?? REQUEST_LIMITS.requestBytes;
  if (body === undefined || (typeof body === "string" && body.length * 3 <= most)) return;
  const size = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  if (size > most) throw tooLarge(`The body of the request is larger than ${most} bytes.`);
}

function checkHeader(name: string, value: unknown): void {
  const isRight =
    isToken(name) && !isFramingHeader(name) && typeof value === "string" && isHeaderValue(value);
  if (!isRight) throw unsendable(`header ${shown(name)}`);
}

/** Cookies join those of a header that is declared as such. */
function withCookies(headers: Readonly<Record<string, string>>, cookies: readonly string[]) {
  if (cookies.some((cookie) => NO_COOKIE.test(cookie))) throw unsendable("cookies");
  const { cookie } = headers;
  const all = cookie === undefined || cookie === "" ? cookies : [cookie, ...cookies];
  return { ...headers, cookie: all.join("; ") };
}

function unsendable(what: string): CallError {
  const message = `The request cannot be sent: what was made of the input is not valid in its ${what}.`;
  return new CallError("VALIDATION_ERROR", message, { stack: false });
}

function tooLarge(message: string): CallError {
  return new CallError("TOO_LARGE", message, { stack: false });
}

/** A path of a document, ready to be filled in. */
export interface PathTemplate {
  write(input: object): string;
  /** The part of the path after a `?`: no document should have it, and some do. */
  writeQuery?(input: object): string;
}

/** `.` and `..` as URL parsers see them. */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/** Tells whether a path has segments that lead elsewhere. */
function hasDotSegment(path: string): boolean {
  return DOT_SEGMENT.test(path);
}

/** Reads a path once; a fragment is left out. `basePath` comes first and does not end with `/`. */
function createPathTemplate(
  path: string,
  parameters: readonly ParameterPlan[],
  basePath: string,
): PathTemplate {
  const [address = "", query] = splitOutsideBraces(path);
  const begun = address.startsWith("/") ? address : `/${address}`;
  const pieces = toPieces(begun, parameters);
  const write = (input: object) => {
    const filled = basePath + fill(pieces, input);
    if (hasDotSegment(filled)) throw dotSegment(parameters);
    return filled;
  };
  if (query === undefined || query === "") return { write };
  // What may stay in a path may separate here.
  const escaped = parameters.map((parameter) => ({ ...parameter, allowReserved: false }));
  const queryPieces = toPieces(query, escaped);
  return { write, writeQuery: (input) => fill(queryPieces, input) };
}

interface Piece {
  readonly text: string;
  readonly key?: string;
  readonly writeValue?: (value: unknown) => string;
}

function fill(pieces: readonly Piece[], input: object): string {
  let filled = "";
  for (const { text, key, writeValue } of pieces) {
    if (key === undefined || writeValue === undefined) {
      filled += text;
      continue;
    }
    const value = readInput(input, key);
    if (isAbsent(value)) throw invalidInput(key, "is missing");
    filled += writeValue(value);
  }
  return filled;
}

/** Splits fixed text from `{names}`; braces that name no parameter are text. */
function toPieces(template: string, parameters: readonly ParameterPlan[]): Piece[] {
  const byName = new Map(parameters.filter((each) => each.in === "path").map((each) => [each.name, each]));
  const pieces: Piece[] = [];
  for (const part of template.split(/(\{[^{}]*\})/)) {
    const parameter = part.startsWith("{") ? byName.get(part.slice(1, -1)) : undefined;
    if (parameter !== undefined) {
      pieces.push({ text: "", key: parameter.key, writeValue: quickly(parameter) });
    } else if (part !== "") pieces.push({ text: escapeLiteral(part) });
  }
  return pieces;
}

/** Plain text in the plain style needs nothing but escaping. */
function quickly(parameter: ParameterPlan): (value: unknown) => string {
  const write = createPathWriter(parameter);
  const { key, style, allowReserved, contentType } = parameter;
  if (style !== "simple" || allowReserved || contentType !== undefined) return write;
  return (value) => (typeof value === "string" && value !== "" ? escapeText(value, key) : write(value));
}

/** The path and the query of a template, without its fragment; `?` and `#` inside of braces belong to a name. */
function splitOutsideBraces(path: string): [string, string?] {
  const plain = path.replace(/\{[^{}]*\}/g, (name) => "x".repeat(name.length));
  const hash = plain.indexOf("#");
  const end = hash === -1 ? path.length : hash;
  const mark = plain.slice(0, end).indexOf("?");
  return mark === -1 ? [path.slice(0, end)] : [path.slice(0, mark), path.slice(mark + 1, end)];
}

function dotSegment(parameters: readonly ParameterPlan[]) {
  const keys = parameters.filter((each) => each.in === "path").map((each) => each.key);
  const [only] = keys;
  if (only === undefined) return notCallable('The path holds "." or "..", which leads elsewhere.');
  if (keys.length === 1)
    return invalidInput(only, 'makes a segment "." or ".." of the path, which leads elsewhere');
  const names = keys.slice(0, 5).map(shown).join(", ");
  return invalidInput(
    only,
    `or another of ${names} makes a segment "." or ".." of the path, which leads elsewhere`,
  );
}

/** Reads an own property; inherited ones are nobody's input. */
function readInput(input: object, key: string): unknown {
  return Object.hasOwn(input, key) ? (input as Record<string, unknown>)[key] : undefined;
}
