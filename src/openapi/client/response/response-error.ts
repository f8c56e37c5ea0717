import type { ResultFacts } from "../../../core/envelope/response-meta.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { wordsIn } from "../../../core/errors/source-words.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import { cutText } from "../../../core/text/cut-text.ts";
import { parseMediaType } from "../../media-types.ts";
import type { WholeResponse } from "../http-message.ts";
import { decodeJson, decodeText } from "./decode-body.ts";
import { type HopReader, ownMember, readHopOutcome } from "./hop-outcome.ts";
import { headerOf, retryAfterMs, toldHeaders } from "./response-headers.ts";
import { codeOfStatus, nameStatus } from "./status-codes.ts";

/** An answer that ran and said no, as the server that ran it tells. */
export interface ToldToolError {
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
export function readErrorResponse(
  response: WholeResponse,
  reader: Omit<HopReader, "message">,
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
    details: detailsOf(response, contentType, { problem, body, ...secrets.saying(wordsIn(body)) }),
    local: FOREIGN,
    stack: false,
  });
}

interface ErrorBody {
  readonly problem: Record<string, unknown> | undefined;
  readonly body: unknown;
  /** What it says, as it is passed on. */
  readonly said?: string;
}

/** In the order of what matters most: details are bounded, and a body may use up what is left. */
function detailsOf(
  { status, headers }: WholeResponse,
  contentType: string,
  { problem, body, said }: ErrorBody,
): object {
  const told = toldHeaders(headers);
  const waitMs = retryAfterMs(headerOf(headers, "retry-after"), Date.now());
  return {
    status,
    contentType: contentType.slice(0, 256),
    ...(told !== undefined && { headers: told }),
    ...(waitMs !== undefined && { retryAfterMs: waitMs }),
    ...(said !== undefined && { said }),
    ...(problem !== undefined && { problem: standardMembers(problem) }),
    ...(body !== undefined && { body: typeof body === "string" ? cutText(body, MOST_TEXT) : body }),
  };
}

/** Members of the wrong type count as absent (RFC 9457, section 3.1). */
function standardMembers(problem: Record<string, unknown>): Readonly<Record<string, string | number>> {
  const members: Record<string, string | number> = { type: "about:blank" };
  for (const name of ["type", "title", "detail", "instance"]) {
    const value = ownMember(problem, name);
    if (typeof value === "string") members[name] = cutText(value, MOST_TEXT);
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
  return decodeText(body.subarray(0, MOST_READ), charset);
}
