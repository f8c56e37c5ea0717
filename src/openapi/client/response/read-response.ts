import { httpEnvelope } from "../../../core/envelope/envelope.ts";
import { isSaidFacts } from "../../../core/envelope/is-response-envelope.ts";
import type { PageFacts, ResponseEnvelope, ResultFacts } from "../../../core/envelope/response-meta.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { parseJsonTextOrNone } from "../../../core/json/json-text.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import type { SchemaIssue } from "../../../core/schema/schema-issue.ts";
import { SourceSecrets } from "../../../core/secrets/source-secrets.ts";
import { cutText } from "../../../core/text/cut-text.ts";
import { ENVELOPE_TYPE, type MediaType, parseMediaType } from "../../media-types.ts";
import type { WholeResponse } from "../http-message.ts";
import type { OperationPlan } from "../plan.ts";
import { createDeclaredCheck } from "./declared-check.ts";
import { mayBeUnchanged, mediaFor, responseFor } from "./declared-media.ts";
import { beginsAsStructure, type DecodedJson, decodeJson, decodeText, firstByte } from "./decode-body.ts";
import { envelopeMeta } from "./envelope-meta.ts";
import { ownMember, readWire } from "./hop-outcome.ts";
import { findInexactNumbers } from "./inexact-numbers.ts";
import { readErrorResponse } from "./response-error.ts";
import { headerOf } from "./response-headers.ts";

/** How responses of one operation are read. */
export interface ResponseReaderOptions {
  readonly operationId: string;
  /** Accepts text and bytes that end with the connection. @default false */
  readonly allowUndelimited?: boolean | undefined;
  /** Codes the operation declares. @default none */
  readonly declared?: ReadonlySet<string> | undefined;
  /** What a Waybill server says for people is taken for the message of an error. @default false */
  readonly trusted?: boolean | undefined;
  /** What of the server's words is passed on. @default all of them, and nothing is secret */
  readonly secrets?: SourceSecrets | undefined;
}

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
  return (response) => {
    const { status } = response;
    const isEmpty = plan.method === "HEAD" || status === 204 || status === 205 || status === 304;
    const facts = factsOf(response, isWaybill);
    if ((status >= 200 && status < 300) || (status === 304 && isUnchangedAllowed)) {
      if (isEmpty) return toEnvelope(response, undefined, false, facts);
      if (isWaybill && isEnvelope(response)) return readEnvelope(response, operationId, facts);
      const { data, type, inexact } = readBody(response, plan, options);
      const violations = check === undefined ? inexact : joined(inexact, check(status, type, data));
      const told = violations === undefined ? facts : { ...facts, violations };
      return toEnvelope(response, data, false, told);
    }
    const told = readErrorResponse(response, {
      operationId,
      declared,
      isTrusted,
      isServed: isWaybill,
      secrets,
    });
    return toEnvelope(response, told.data, true, { ...facts, ...told.facts });
  };
}

type Issues = readonly SchemaIssue[] | undefined;

function joined(inexact: Issues, issues: readonly SchemaIssue[]): Issues {
  return issues.length === 0 ? inexact : [...issues, ...(inexact ?? [])];
}

function toEnvelope(
  response: WholeResponse,
  data: unknown,
  isError: boolean,
  waybill: ResultFacts,
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
  return toEnvelope(response, ownMember(value, "data"), false, {
    ...facts,
    ...(isPlainObject(told) && toldFacts(told)),
  });
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

function readBody(response: WholeResponse, plan: OperationPlan, options: ResponseReaderOptions): BodyData {
  const { body, status, delimited } = response;
  const contentType = headerOf(response.headers, "content-type") ?? "";
  const media = contentType === "" ? guessMedia(body, plan, status) : parseMediaType(contentType);
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
      return { data: decodeText(body, media.charset), type };
  }
}

function readJson(response: WholeResponse, { charset }: MediaType, operationId: string): DecodedJson {
  const { body } = response;
  try {
    return decodeJson(body, charset);
  } catch (error) {
    const text = cutText(decodeText(body.subarray(0, SHOWN_BODY * 4), charset), SHOWN_BODY);
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
  const first = charset === undefined ? "" : decodeText(body.subarray(0, 64), charset).trimStart().charAt(0);
  return first !== "" && '{["'.includes(first);
}

/** An empty text is a text where one is declared, and nothing where a server merely calls nothing so. */
function isDeclaredText(plan: OperationPlan, status: number, media: MediaType): boolean {
  if (media.kind !== "text") return false;
  const declared = mediaFor(responseFor(plan, status), media.type);
  return declared !== undefined && parseMediaType(declared.mediaType).kind === "text";
}
