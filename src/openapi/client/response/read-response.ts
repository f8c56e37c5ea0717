import { httpEnvelope, isSaidFacts } from "../../../core/envelope/envelope.ts";
import type {
  HTTPResponseMeta,
  PageFacts,
  ResponseEnvelope,
  ResultFacts,
} from "../../../core/envelope/response-meta.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { wordsIn } from "../../../core/errors/source-words.ts";
import { isPlainObject, ownMember, parseJsonTextOrNone, setOwn } from "../../../core/json/json-value.ts";
import { type CompiledSchema, compileSchema } from "../../../core/schema/compile-schema.ts";
import type { SchemaIssue } from "../../../core/schema/schema-issue.ts";
import { SourceSecrets } from "../../../core/secrets/secret-mask.ts";
import { truncateText } from "../../../core/text/truncate-text.ts";
import { ENVELOPE_TYPE, type MediaType, parseMediaType } from "../../media-types.ts";
import { withDefinitions } from "../definitions.ts";
import type { ResponseHead, WholeResponse } from "../http-message.ts";
import type { MediaPlan, OperationPlan } from "../plan.ts";
import { codeOfStatus, type HopReader, nameStatus, readHopOutcome, readWire } from "./hop-outcome.ts";
import {
  isStatusDeclared,
  mayBeUnchanged,
  mediaFor,
  mediaSchemaOf,
  responseFor,
  successResponses,
} from "./output-schema.ts";
import type { StreamOptions } from "./read-stream.ts";
import {
  beginsAsStructure,
  type DecodedJson,
  decodeBody,
  decodeJson,
  findInexactNumbers,
  firstByte,
  headerOf,
  retryAfterMs,
  toldHeaders,
} from "./response-body.ts";

/** How responses of one operation are read. */
type ResponseReaderOptions = Omit<StreamOptions, "eventBytes">;

/** Makes an envelope of a response, or throws the `CallError` it stands for. */
export type ResponseReader = (response: WholeResponse) => ResponseEnvelope;

const NO_CODES: ReadonlySet<string> = new Set();
const FACTS_HEADER = "waybill-facts";
const FACTS_LENGTH = 65_536;
const CURSOR_LENGTH = 8_192;
const SHOWN_BODY = 4_096;

/** Creates the reader of an operation's responses. */
export function createResponseReader(plan: OperationPlan, options: ResponseReaderOptions): ResponseReader {
  const { operationId, declared = NO_CODES, secrets = new SourceSecrets() } = options;
  const isWaybill = plan.waybill !== undefined;
  const isTrusted = isWaybill && options.trusted === true;
  const isUnchangedAllowed = mayBeUnchanged(plan);
  const check = createDeclaredCheck(plan);
  const reading = { ...options, mediaOf: createMediaReader() };
  return (response) => {
    const { status } = response;
    const isEmpty = plan.method === "HEAD" || status === 204 || status === 205 || status === 304;
    const facts = factsOf(response, isWaybill);
    if ((status >= 200 && status < 300) || (status === 304 && isUnchangedAllowed)) {
      if (isEmpty) return toEnvelope(response, undefined, { waybill: facts });
      if (isWaybill && isEnvelope(response)) return readEnvelope(response, operationId, facts);
      const { data, type, inexact } = readBody(response, plan, reading);
      const violations = check === undefined ? inexact : joined(inexact, check(status, type, data));
      const told = violations === undefined ? facts : { ...facts, violations };
      return toEnvelope(response, data, { waybill: told });
    }
    const told = readErrorResponse(response, {
      operationId,
      declared,
      isTrusted,
      isServed: isWaybill,
      isStatusDeclared: isStatusDeclared(plan, status),
      secrets,
    });
    return toEnvelope(response, told.data, { isError: true, waybill: { ...facts, ...told.facts } });
  };
}

type Issues = readonly SchemaIssue[] | undefined;

function joined(inexact: Issues, issues: readonly SchemaIssue[]): Issues {
  return issues.length === 0 ? inexact : [...issues, ...(inexact ?? [])];
}

function toEnvelope(
  response: WholeResponse,
  data: unknown,
  { isError = false, waybill }: { readonly isError?: boolean; readonly waybill: ResultFacts },
): ResponseEnvelope {
  const { statusCode, headers, contentType, setCookie } = envelopeMeta(response);
  return httpEnvelope(data, { statusCode, headers, contentType, setCookie, isError, waybill });
}

function factsOf(response: WholeResponse, isWaybill: boolean): ResultFacts {
  const { attempts } = response;
  const told = isWaybill ? readTold(headerOf(response.headers, FACTS_HEADER)) : undefined;
  if (attempts <= 1 && told === undefined) return { obtained: "body" };
  return { obtained: "body", ...(attempts > 1 && { attempts }), ...told };
}

/** Reads the facts that only the server can know; the others are made here. */
function readTold(header: string | undefined): Pick<ResultFacts, "page" | "said"> | undefined {
  if (header === undefined || header.length > FACTS_LENGTH) return undefined;
  const facts = parseJsonTextOrNone(header);
  return isPlainObject(facts) ? toldFacts(facts) : undefined;
}

function toldFacts(facts: Record<string, unknown>): Pick<ResultFacts, "page" | "said"> {
  const page = readPage(ownMember(facts, "page"));
  const said = ownMember(facts, "said");
  return { ...(page !== undefined && { page }), ...(isSaidFacts(said) && { said }) };
}

function isEnvelope({ headers }: WholeResponse): boolean {
  return parseMediaType(headerOf(headers, "content-type") ?? "").type === ENVELOPE_TYPE;
}

/** A Waybill server sends the envelope where headers cannot hold what the operation said; its data and those words are taken over. */
function readEnvelope(response: WholeResponse, operationId: string, facts: ResultFacts): ResponseEnvelope {
  const value = readWire(readJson(response, JSON_MEDIA, operationId).value, operationId);
  const meta = isPlainObject(value) ? ownMember(value, "meta") : undefined;
  if (!isPlainObject(value) || !isPlainObject(meta)) {
    throw invalid(response, `"${operationId}" answered with what it calls an envelope and is none.`);
  }
  const told = ownMember(meta, "waybill");
  const waybill = { ...facts, ...(isPlainObject(told) && toldFacts(told)) };
  return toEnvelope(response, ownMember(value, "data"), { waybill });
}

function readPage(page: unknown): PageFacts | undefined {
  if (!isPlainObject(page)) return undefined;
  const next = ownMember(page, "next");
  if (next === undefined) return {};
  if (typeof next !== "string" || next.length > CURSOR_LENGTH) return undefined;
  const input = ownMember(page, "input");
  return input === undefined ? { next } : { next, input };
}

/** What a body holds. */
interface BodyData {
  readonly data: unknown;
  /** The media type it was read as. */
  readonly type: string;
  /** Numbers that could not be kept as they are, where there are any. */
  readonly inexact?: readonly SchemaIssue[];
}

type ReadMedia = (contentType: string) => MediaType;

/** The longest `content-type` that is remembered. */
const REMEMBERED = 200;

/** Reads media types, of which an operation hardly ever answers with more than one. */
function createMediaReader(): ReadMedia {
  let last: { readonly contentType: string; readonly media: MediaType } | undefined;
  return (contentType) => {
    if (contentType === last?.contentType) return last.media;
    const media = parseMediaType(contentType);
    if (contentType.length <= REMEMBERED) last = { contentType, media };
    return media;
  };
}

function readBody(
  response: WholeResponse,
  plan: OperationPlan,
  options: ResponseReaderOptions & { readonly mediaOf: ReadMedia },
): BodyData {
  const { body, status, delimited } = response;
  const contentType = headerOf(response.headers, "content-type") ?? "";
  const media = contentType === "" ? guessMedia(body, plan, status) : options.mediaOf(contentType);
  if (!delimited && options.allowUndelimited !== true && !showsItsEnd(body, media)) {
    throw invalid(
      response,
      `"${options.operationId}" answered with a body that may have been cut: it ended with the connection. ` +
        "Accept such bodies with the option allowUndelimited.",
    );
  }
  const { type, kind } = media;
  if (body.length === 0) return { data: isDeclaredText(plan, status, media) ? "" : undefined, type };
  switch (kind) {
    case "json": {
      const { value, text } = readJson(response, media, options.operationId);
      const inexact = findInexactNumbers(text);
      return inexact.length === 0 ? { data: value, type } : { data: value, type, inexact };
    }
    case "wire":
      return {
        data: readWire(readJson(response, media, options.operationId).value, options.operationId),
        type,
      };
    case "bytes":
      return { data: body, type };
    case "text":
    case "events":
    case "lines":
    case "records":
      return { data: decodeBody(body, media.charset), type };
  }
}

function readJson(response: WholeResponse, { charset }: MediaType, operationId: string): DecodedJson {
  const { body } = response;
  try {
    return decodeJson(body, charset);
  } catch (error) {
    const text = truncateText(decodeBody(body.subarray(0, SHOWN_BODY * 4), charset), SHOWN_BODY);
    throw invalid(
      response,
      `"${operationId}" answered with a body that says it is JSON and is not, or is nested too deeply.`,
      new Error(text, { cause: error }),
    );
  }
}

function invalid({ status }: WholeResponse, message: string, cause?: unknown): CallError {
  return new CallError("OUTPUT_INVALID", message, { cause, details: { status }, stack: false });
}

const JSON_MEDIA: MediaType = { type: "application/json", charset: undefined, kind: "json" };
const BYTES: MediaType = { type: "", charset: undefined, kind: "bytes" };
const ANY_TYPES = new Set(["*/*", "application/*"]);

/** For a response that does not say what it is: the one thing it may be, or JSON where it may be and looks like it. */
function guessMedia(body: Uint8Array, plan: OperationPlan, status: number): MediaType {
  const types = (responseFor(plan, status)?.content ?? []).map(({ mediaType }) => parseMediaType(mediaType));
  const [only] = types;
  if (only !== undefined && types.length === 1 && !only.type.includes("*")) return only;
  const mayBeJson = types.some(({ kind, type }) => kind === "json" || ANY_TYPES.has(type));
  return mayBeJson && beginsAsStructure(body) && isJson(body) ? JSON_MEDIA : BYTES;
}

function isJson(body: Uint8Array): boolean {
  try {
    decodeJson(body, undefined);
    return true;
  } catch {
    return false;
  }
}

const QUOTE = 0x22;

/** An object, a list and a string end with a character of their own: one that was cut is no JSON. */
function showsItsEnd(body: Uint8Array, { kind, charset }: MediaType): boolean {
  if (kind !== "json" && kind !== "wire") return false;
  if (beginsAsStructure(body) || firstByte(body) === QUOTE) return true;
  const first = charset === undefined ? "" : decodeBody(body.subarray(0, 64), charset).trimStart().charAt(0);
  return first !== "" && '{["'.includes(first);
}

/** An empty text is a text where one is declared, and nothing where a server merely calls nothing so. */
function isDeclaredText(plan: OperationPlan, status: number, media: MediaType): boolean {
  if (media.kind !== "text") return false;
  const declared = mediaFor(responseFor(plan, status), media.type);
  return declared !== undefined && parseMediaType(declared.mediaType).kind === "text";
}

/** Lists what is wrong with the data of a success, by its status and media type. */
type DeclaredCheck = (status: number, type: string, data: unknown) => readonly SchemaIssue[];

const NONE: readonly SchemaIssue[] = [];

/**
 * Creates the check of data against what is declared for its own status and media type; nothing where only one thing is, which the
 * operation's schema says already.
 */
function createDeclaredCheck(plan: OperationPlan): DeclaredCheck | undefined {
  const successes = successResponses(plan);
  const alternatives = successes.reduce((count, { content }) => count + Math.max(content.length, 1), 0);
  if (plan.waybill !== undefined || alternatives < 2) return undefined;
  const compiled = new Map<MediaPlan, CompiledSchema | undefined>();
  return (status, type, data) => {
    const response = responseFor(plan, status);
    if (response === undefined || !successes.includes(response)) return NONE;
    const media = mediaFor(response, type);
    if (media === undefined) return NONE;
    if (!compiled.has(media)) compiled.set(media, compile(media, plan));
    const schema = compiled.get(media);
    return schema === undefined || schema.check(data) ? NONE : schema.errors(data);
  };
}

/** A schema that is refused says nothing; the operation's own, which holds it, tells so. */
function compile(media: MediaPlan, plan: OperationPlan): CompiledSchema | undefined {
  const schema = mediaSchemaOf(media, plan.definitions);
  try {
    return schema === undefined ? undefined : compileSchema(withDefinitions(schema, plan.definitions));
  } catch {
    return undefined;
  }
}

/** What an envelope says of the response it came in. */
export interface EnvelopeMeta extends Pick<HTTPResponseMeta, "statusCode" | "headers" | "contentType"> {
  readonly setCookie: readonly string[] | undefined;
}

/** Gives the meta of a response; cookies are kept apart, which joining would break, and any name is an ordinary one. */
export function envelopeMeta(response: Pick<ResponseHead, "status" | "headers">): EnvelopeMeta {
  const { status, headers: fields } = response;
  const contentType = headerOf(fields, "content-type") ?? "";
  if (isJoined(fields)) return { statusCode: status, headers: fields, contentType, setCookie: undefined };
  const headers: Record<string, string> = {};
  let setCookie: readonly string[] | undefined;
  for (const name of Object.keys(fields)) {
    const value = fields[name] as string | readonly string[];
    if (name === "set-cookie") setCookie = typeof value === "string" ? [value] : [...value];
    else setOwn(headers, name, typeof value === "string" ? value : value.join(", "));
  }
  return { statusCode: status, headers, contentType, setCookie };
}

/** Most responses have one value for each name and no cookies: their headers need no copy. */
function isJoined(fields: ResponseHead["headers"]): fields is Readonly<Record<string, string>> {
  for (const name in fields) if (typeof fields[name] !== "string" || name === "set-cookie") return false;
  return true;
}

/** An answer that ran and reported an error, as the server that ran it tells. */
interface ToldToolError {
  readonly data: unknown;
  readonly facts: ResultFacts;
}

const PROBLEM = "application/problem+json";
/** Bytes of an error's body that are read at all; past it, only the beginning is shown. */
const MOST_READ = 1_048_576;
const MOST_TEXT = 4_096;
/** Details in the words of the server: callers elsewhere are told what of them is for people, in `said`. */
const FOREIGN = ["body", "problem"];

/** Throws the error that a response stands for; gives the tool error back where Waybill says it is one. */
function readErrorResponse(
  response: WholeResponse,
  reader: Omit<HopReader, "message"> & {
    /** Whether the document names this status, by number or range. */
    readonly isStatusDeclared: boolean;
  },
): ToldToolError {
  const { status } = response;
  const contentType = headerOf(response.headers, "content-type") ?? "";
  const { secrets } = reader;
  const read = readErrorBody(response.body, contentType);
  const body = secrets.maskAll(read);
  const message = `"${reader.operationId}" answered ${nameStatus(status)}.`;
  const problem = parseMediaType(contentType).type === PROBLEM && isPlainObject(body) ? body : undefined;
  const hop =
    status >= 400 && reader.isServed ? readHopOutcome(problem, status, { ...reader, message }) : undefined;
  if (hop?.outcome === "tool-error") return hop;
  if (hop !== undefined) throw hop.error;
  const code = codeOfStatus(status);
  throw new CallError(code, message, {
    httpStatus: status,
    details: detailsOf(response, contentType, {
      problem,
      body,
      isDeclared: reader.isStatusDeclared,
      ...secrets.saying(wordsIn(body)),
    }),
    local: FOREIGN,
    stack: false,
  });
}

interface ErrorBody {
  readonly problem: Record<string, unknown> | undefined;
  readonly body: unknown;
  /** What it says, as it is passed on. */
  readonly said?: string;
  /** Whether the document names the status. */
  readonly isDeclared: boolean;
}

/** In the order of what matters most: details are bounded, and a body may use up what is left. */
function detailsOf(
  { status, headers }: WholeResponse,
  contentType: string,
  { problem, body, said, isDeclared }: ErrorBody,
): object {
  const told = toldHeaders(headers);
  const waitMs = retryAfterMs(headerOf(headers, "retry-after"), Date.now());
  return {
    status,
    ...(isDeclared && { declared: true }),
    contentType: contentType.slice(0, 256),
    ...(told !== undefined && { headers: told }),
    ...(waitMs !== undefined && { retryAfterMs: waitMs }),
    ...(said !== undefined && { said }),
    ...(problem !== undefined && { problem: standardMembers(problem) }),
    ...(body !== undefined && { body: typeof body === "string" ? truncateText(body, MOST_TEXT) : body }),
  };
}

/** Members of the wrong type count as absent (RFC 9457, section 3.1). */
function standardMembers(problem: Record<string, unknown>): Readonly<Record<string, string | number>> {
  const members: Record<string, string | number> = { type: "about:blank" };
  for (const name of ["type", "title", "detail", "instance"]) {
    const value = ownMember(problem, name);
    if (typeof value === "string") members[name] = truncateText(value, MOST_TEXT);
  }
  const status = ownMember(problem, "status");
  if (Number.isInteger(status)) members["status"] = status as number;
  return members;
}

/** Gives what can be told of a body; nothing of an empty one. */
function readErrorBody(body: Uint8Array, contentType: string): unknown {
  if (body.length === 0) return undefined;
  const { kind, charset, type } = parseMediaType(contentType);
  if (kind === "json" || kind === "wire") {
    const parsed = body.length <= MOST_READ ? parsedOrNone(body, charset) : undefined;
    return parsed === undefined ? beginningOf(body, charset) : parsed;
  }
  return kind === "bytes" && type !== "" ? body : beginningOf(body, charset);
}

function parsedOrNone(body: Uint8Array, charset: string | undefined): unknown {
  try {
    return decodeJson(body, charset).value;
  } catch {
    return undefined;
  }
}

/** More than is shown: secrets are masked before it is cut. */
function beginningOf(body: Uint8Array, charset: string | undefined): string {
  return decodeBody(body.subarray(0, MOST_READ), charset);
}
