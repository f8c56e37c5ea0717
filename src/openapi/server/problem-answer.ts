import type { ResponseEnvelope, SaidFacts } from "../../core/envelope/envelope.ts";
import { ERROR_CODES, isErrorCode } from "../../core/errors/error-codes.ts";
import { CallError, toProblem } from "../../core/errors/errors.ts";
import { saidIn, toSaid } from "../../core/errors/source-words.ts";
import { isPlainObject, type JsonValue } from "../../core/json/json-value.ts";
import { textOf } from "../../core/result/tool-result.ts";
import { truncateText } from "../../core/text/truncate-text.ts";
import { toWire } from "../../core/wire/wire.ts";
import type { AnswerHeaders, AuthenticatedRequest, HttpAnswer } from "../../http/exchange.ts";

/** The media type of problems (RFC 9457). */
export const PROBLEM_TYPE = "application/problem+json";

const TOOL_ERROR = {
  type: "https://waybill.dev/problems/tool-error",
  title: "The operation reported an error",
} as const;
const UNPROCESSABLE = 422;
/** Characters of the detail of a tool error; all of it is in the data. */
const MOST_DETAIL = 1_000;
/** The status of an aborted call means that nobody listens; a client that still listens is told that the server failed. */
const CLIENT_GONE = 499;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** What a problem looks like on a wire. */
export interface ProblemBody {
  readonly status: number;
  readonly [member: string]: JsonValue;
}

/** Answers with an error: never with its cause or its stack. */
export function problemAnswer(error: CallError, requestId: string, headers: AnswerHeaders = {}): HttpAnswer {
  const problem = problemOf(error, requestId);
  const wait = retryAfter(error.details);
  return toAnswer(problem, wait === undefined ? headers : { "retry-after": wait, ...headers });
}

/** Writes an error as a problem. */
export function problemOf(error: CallError, requestId: string): ProblemBody {
  const problem = toProblem(error, instanceOf(requestId));
  const status = problem.status === CLIENT_GONE ? 500 : problem.status;
  return { ...problem, status, waybill: { outcome: "call-error" } } as unknown as ProblemBody;
}

/** Answers with what an operation that ran and reported an error has to say. */
export function toolErrorAnswer(
  envelope: ResponseEnvelope,
  requestId: string,
  headers: AnswerHeaders,
): HttpAnswer {
  return toAnswer(toolErrorProblem(envelope, requestId), headers);
}

/** The status of a result that is an error: that of its code, where the table has it. */
export function toolErrorStatus({ meta }: ResponseEnvelope): number {
  const code = meta.waybill?.code;
  const status = isErrorCode(code) ? ERROR_CODES[code].httpStatus : UNPROCESSABLE;
  return status === CLIENT_GONE ? UNPROCESSABLE : status;
}

function toolErrorProblem(envelope: ResponseEnvelope, requestId: string): ProblemBody {
  const { code, message, details, said } = envelope.meta.waybill ?? {};
  const shownDetails = withWords(details, envelope);
  const told = {
    ...(code !== undefined && { code }),
    ...(message !== undefined && { message }),
    ...(details !== undefined && { details: toWire(details, { code: "OUTPUT_INVALID", errors: false }) }),
  };
  return {
    ...TOOL_ERROR,
    status: toolErrorStatus(envelope),
    detail: message ?? said?.summary ?? reasonIn(envelope) ?? TOOL_ERROR.title,
    instance: instanceOf(requestId),
    ...adviceOf(code, said?.recoverable),
    ...(code !== undefined && { code }),
    ...(shownDetails !== undefined && {
      details: toWire(shownDetails, { code: "OUTPUT_INVALID", errors: false }),
    }),
    ...(said !== undefined && adviceMembers(said)),
    waybill: {
      outcome: "tool-error",
      ...told,
      ...(said !== undefined && { said: toWire(said, { code: "OUTPUT_INVALID", errors: false }) }),
      wire: toWire(envelope.data, { code: "OUTPUT_INVALID", errors: false }),
    },
  };
}

/** Whether to try again: what the operation said, else what is known about its code. */
function adviceOf(
  code: string | undefined,
  recoverable: boolean | undefined,
): { readonly retryable: boolean; readonly correctable: boolean } {
  const { retryable, correctable } = isErrorCode(code)
    ? ERROR_CODES[code]
    : { retryable: false, correctable: false };
  if (recoverable === undefined || recoverable === (retryable || correctable))
    return { retryable, correctable };
  // Said to be recoverable, and nothing says that the input is at fault: trying again is all that is left.
  return { retryable: recoverable, correctable: false };
}

/** What an operation said to do about its error, as members of the problem. */
function adviceMembers(said: SaidFacts): Record<string, JsonValue> {
  const { category, suggestedAction, nextTool, nextSteps } = said;
  return {
    ...(category !== undefined && { category }),
    ...(suggestedAction !== undefined && { suggestedAction }),
    ...(nextTool !== undefined && { nextTool }),
    ...(nextSteps !== undefined && { nextSteps: [...nextSteps] }),
  };
}

/** What an operation of ours that gave no message says for people. */
function reasonIn({ data, meta }: ResponseEnvelope): string | undefined {
  const reason = meta.source === "local" ? textIn(data) : "";
  return reason === "" ? undefined : truncateText(reason, MOST_DETAIL);
}

/** What a source wrote about its error is not ours to say in `detail`: it stands among the details, as its words. */
function withWords(details: unknown, { data, meta }: ResponseEnvelope): unknown {
  if (meta.source === "local" || saidIn(details) !== undefined) return details;
  const said = toSaid(textIn(meta.source === "mcp" ? meta.content : data) || textIn(data), (text) => text);
  if (said === undefined || (details !== undefined && !isPlainObject(details))) return details;
  return { ...details, said };
}

/** A text, or that of blocks. */
function textIn(said: unknown): string {
  if (typeof said === "string") return said.trim();
  const texts = Array.isArray(said) ? said.map(textOf) : [];
  return texts
    .filter((text) => text !== undefined)
    .join("\n")
    .trim();
}

/** Names this occurrence as a URI. */
function instanceOf(requestId: string): string {
  return UUID.test(requestId)
    ? `urn:uuid:${requestId}`
    : `urn:waybill:request:${encodeURIComponent(requestId)}`;
}

function toAnswer(problem: ProblemBody, headers: AnswerHeaders): HttpAnswer {
  const all = { "content-type": PROBLEM_TYPE, "cache-control": "no-store", ...headers };
  return { status: problem.status, headers: all, body: JSON.stringify(problem) };
}

/** Whole seconds, as the header wants them, where an error says how long to wait. */
function retryAfter(details: JsonValue | undefined): string | undefined {
  const ms = isPlainObject(details) ? details["retryAfterMs"] : undefined;
  if (typeof ms !== "number" || !Number.isFinite(ms) || ms < 0) return undefined;
  return String(Math.min(Math.ceil(ms / 1_000), 31_536_000));
}

/** Makes an error about the request itself, with a status of its own where the table has none for it. */
export function requestError(
  code: "VALIDATION_ERROR" | "NOT_FOUND" | "NOT_IMPLEMENTED" | "CONFLICT" | "TOO_LARGE" | "UNAVAILABLE",
  message: string,
  options: { readonly httpStatus?: number; readonly details?: unknown } = {},
): CallError {
  return new CallError(code, message, { ...options, stack: false });
}

/** Answers that a method is not for this address, or the operation there, and which ones are. */
export function refuseMethod(
  { allow, operationId }: { readonly allow: string; readonly operationId?: string | undefined },
  requestId: string,
): HttpAnswer {
  const ways = allow.split(", ").filter((method) => method !== "HEAD" && method !== "OPTIONS");
  const what = operationId === undefined ? "This address is" : `"${operationId}" is`;
  const message = `${what} not for this HTTP method; use ${ways.join(" or ")}.`;
  return problemAnswer(requestError("NOT_IMPLEMENTED", message, { httpStatus: 405 }), requestId, { allow });
}

/** Hears of faults of this side, which clients are told nothing about. */
export type Warn = (message: string, cause?: unknown) => void;

/** Makes sure that the listener of faults causes none. */
export function createWarn(onWarning: Warn = (message, cause) => console.warn(message, cause)): Warn {
  return (message, cause) => {
    try {
      onWarning(message, cause);
    } catch {
      // There is nobody else to tell.
    }
  };
}

/** Answers with what is allowed where that is asked, or where the method is not among it. */
export function refuseOr(
  { request, requestId }: AuthenticatedRequest,
  allowed: { readonly allow: string; readonly operationId?: string },
  answer: () => Promise<HttpAnswer> | HttpAnswer,
): Promise<HttpAnswer> | HttpAnswer {
  const { method } = request;
  const { allow } = allowed;
  if (method === "OPTIONS") return { status: 204, headers: { allow }, body: undefined };
  // Only methods that are known come here, and none is a part of another.
  if (allow.includes(method)) return answer();
  return refuseMethod(allowed, requestId);
}
