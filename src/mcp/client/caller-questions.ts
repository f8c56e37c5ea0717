import { CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject, setOwn, toJsonTextOrNone } from "../../core/json/json-value.ts";
import type {
  CallerSide,
  ElicitAnswer,
  ElicitRequest,
  SampleAnswer,
  SampleRequest,
} from "../../core/operation/caller-side.ts";
import type { JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { rewriteSchema } from "../../core/schema/rewrite-schema.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { McpLimits } from "./connection-options.ts";
import { toPlainLine } from "./plain-line.ts";
import type { AskedOfServer } from "./request-failures.ts";

/** Why a question has no answer, in the words of JSON-RPC. */
export class QuestionRefused extends Error {
  override readonly name = "QuestionRefused";
  readonly code: number;

  constructor(code: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The codes a server gets for a question that is not answered. */
export const REFUSALS = {
  /** Nobody can be asked this: what the specification has clients answer that lack the capability. */
  unable: -32601,
  /** It cannot be told whom to ask: refused on the user's behalf, as the specification does with -1. */
  unclear: -1,
  /** The person who was asked has left: no answer will come, which is a refusal as well. */
  left: -1,
  /** It is no question. */
  malformed: -32602,
  /** The function that was asked failed. */
  failed: -32603,
} as const;

/** A question of a server, and who may answer. */
export interface ServerQuestion {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>> | undefined;
  readonly caller: CallerSide | undefined;
  readonly roots: readonly { readonly uri: string; readonly name?: string }[];
  /** Characters as JSON. */
  readonly maxLength: number;
  readonly signal: AbortSignal;
}

/** Tells whether a server may ask this at all. */
export function isQuestion(method: string): boolean {
  return method === "elicitation/create" || method === "sampling/createMessage" || method === "roots/list";
}

/** Answers a server's question: checks it, asks the caller, checks the answer. Rejects with a `QuestionRefused`. */
export async function answerQuestion(question: ServerQuestion): Promise<Readonly<Record<string, unknown>>> {
  switch (question.method) {
    case "roots/list":
      return { roots: question.roots.map((root) => ({ ...root })) };
    case "elicitation/create":
      return toWireAnswer(await askPerson(question));
    case "sampling/createMessage":
      return toWireAnswer(await askModel(question));
    default:
      throw new QuestionRefused(REFUSALS.unable, "This client knows no such method.");
  }
}

async function askPerson({ caller, params, maxLength, signal }: ServerQuestion): Promise<ElicitAnswer> {
  const elicit = caller?.elicit?.bind(caller);
  if (elicit === undefined) throw new QuestionRefused(REFUSALS.unable, "Nobody can be asked here.");
  const request = toElicitRequest(params, maxLength);
  const answer = await ask(() => elicit(request, signal), signal);
  if (!isPlainObject(answer) || !["accept", "decline", "cancel"].includes(String(answer["action"]))) {
    throw new QuestionRefused(REFUSALS.failed, "The person's answer could not be read.");
  }
  const { action, content } = answer as unknown as ElicitAnswer;
  if (action !== "accept") return { action };
  if (content !== undefined && !isPlainObject(content)) {
    throw new QuestionRefused(REFUSALS.failed, "The person's answer could not be read.");
  }
  const filled = request.mode === "url" ? content : withDefaults(content, request.requestedSchema);
  return filled === undefined ? { action } : { action, content: filled };
}

async function askModel({ caller, params, maxLength, signal }: ServerQuestion): Promise<SampleAnswer> {
  const sample = caller?.sample?.bind(caller);
  if (sample === undefined) throw new QuestionRefused(REFUSALS.unable, "No model can be asked here.");
  const request = toSampleRequest(params, maxLength);
  const answer = await ask(() => sample(request, signal), signal);
  if (!isPlainObject(answer) || typeof answer["role"] !== "string" || typeof answer["model"] !== "string") {
    throw new QuestionRefused(REFUSALS.failed, "The model's answer could not be read.");
  }
  return answer as unknown as SampleAnswer;
}

/** Waits for the answer, but not beyond the abort: the function that is asked may never look at it. */
async function ask<T>(run: () => Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(new QuestionRefused(REFUSALS.failed, "The question was withdrawn."));
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([aborted, run()]);
  } catch (cause) {
    if (cause instanceof QuestionRefused) throw cause;
    const code = isCallError(cause) && cause.code === "NOT_IMPLEMENTED" ? REFUSALS.unable : REFUSALS.failed;
    throw new QuestionRefused(code, "The caller that was asked could not answer.", { cause });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** What a person gets to see, with nothing hidden in it. */
function toElicitRequest(params: ServerQuestion["params"], maxLength: number): ElicitRequest {
  const { mode, message: said, requestedSchema, url } = checkSize(params, maxLength);
  if (typeof said !== "string") throw malformed("its message is no text");
  const message = cleanText(said).text;
  if (mode === "url") {
    if (typeof url !== "string" || !isShowableAddress(url))
      throw malformed("its url is no web address that can be shown");
    const { elicitationId } = params as Record<string, unknown>;
    return { mode, message, url, ...(typeof elicitationId === "string" ? { elicitationId } : {}) };
  }
  if (mode !== undefined && mode !== "form") throw malformed("its mode is unknown");
  if (!isPlainObject(requestedSchema) || requestedSchema["type"] !== "object") {
    throw malformed("its requestedSchema is no object schema");
  }
  return { mode: "form", message, requestedSchema: cleanForm(requestedSchema) };
}

function toSampleRequest(params: ServerQuestion["params"], maxLength: number): SampleRequest {
  const { _meta, ...request } = checkSize(params, maxLength);
  const { messages, maxTokens } = request;
  if (!Array.isArray(messages) || !messages.every(isPlainObject)) throw malformed("its messages are no list");
  if (typeof maxTokens !== "number" || !(maxTokens > 0))
    throw malformed("its maxTokens is no number above 0");
  return request as SampleRequest;
}

function checkSize(params: ServerQuestion["params"], maxLength: number): Record<string, unknown> {
  const text = params === undefined ? undefined : toJsonTextOrNone(params);
  if (text === undefined) throw malformed("it has no params that can be read");
  if (text.length > maxLength) throw malformed(`it is longer than ${maxLength} characters`);
  return { ...params };
}

/** What leaves this process is JSON, whatever a caller's function returned. */
function toWireAnswer(answer: ElicitAnswer | SampleAnswer): Readonly<Record<string, unknown>> {
  const text = toJsonTextOrNone(answer);
  if (text === undefined) throw new QuestionRefused(REFUSALS.failed, "The answer cannot be written as JSON.");
  return JSON.parse(text) as Record<string, unknown>;
}

function malformed(what: string): QuestionRefused {
  return new QuestionRefused(REFUSALS.malformed, `The question is malformed: ${what}.`);
}

type Content = Readonly<Record<string, unknown>>;

/** Fills the fields that an accepted answer leaves out with the defaults that the question declares for them. */
export function withDefaults(content: Content | undefined, requestedSchema: unknown): Content | undefined {
  const properties = isPlainObject(requestedSchema) ? requestedSchema["properties"] : undefined;
  if (!isPlainObject(properties)) return content;
  const given = content ?? {};
  const missing = Object.entries(properties).filter(
    ([name, field]) =>
      name !== "__proto__" && (!Object.hasOwn(given, name) || given[name] === undefined) && hasDefault(field),
  );
  if (missing.length === 0) return content;
  const defaults = missing.map(([name, field]) => [name, (field as Content)["default"]]);
  return { ...given, ...Object.fromEntries(defaults) };
}

/** A default of another type than its field would be an answer that nobody could have given. */
function hasDefault(field: unknown): boolean {
  if (!isPlainObject(field) || !Object.hasOwn(field, "default")) return false;
  const value = field["default"];
  switch (field["type"]) {
    case "string":
    case "boolean":
      return typeof value === field["type"];
    case "number":
      return typeof value === "number";
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value) && value.every((item) => typeof item === "string");
    default:
      return false;
  }
}

/** What of a form people read; all else is what programs compare. */
const SHOWN = new Set(["title", "description"]);
/** Copies the schema of a form with the texts that people see cleaned; names and values of fields stay as they are. */
export function cleanForm(schema: JsonSchemaObject): JsonSchemaObject {
  return rewriteSchema(schema, {
    everywhere: true,
    keywords: (part) =>
      Object.fromEntries(Object.entries(part).map(([key, value]) => [key, cleanMember(key, value)])),
  });
}

function cleanMember(key: string, value: unknown): unknown {
  const isShown = SHOWN.has(key) || key === "enumNames";
  if (isShown && Array.isArray(value)) return value.map((name: unknown) => cleanMember(key, name));
  return isShown && typeof value === "string" ? cleanText(value).text : value;
}

const LOOPBACK = /^(?:(?:[^.]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * Tells whether an address is safe to show to a person who is to open it: `https`, or `http` on this machine, nothing before the
 * host that could be taken for one, and no character that hides something or that parsers drop.
 */
export function isShowableAddress(url: string): boolean {
  if (parseUrl(url) === undefined || /[\s\\]/.test(url)) return false;
  const cleaned = cleanText(url);
  if (cleaned.findings.length > 0 || cleaned.text !== url) return false;
  const { protocol, hostname, username, password } = new URL(url);
  if (username !== "" || password !== "" || /^[^/?#]*\/\/[^/?#]*@/.test(url)) return false;
  return protocol === "https:" || (protocol === "http:" && LOOPBACK.test(hostname));
}

type Result = Readonly<Record<string, unknown>>;

/** Who answers the questions of one request. */
export interface InputSide {
  readonly asked: AskedOfServer;
  readonly caller: CallerSide | undefined;
  readonly roots: readonly { readonly uri: string; readonly name?: string }[];
  readonly limits: McpLimits;
  readonly signal: AbortSignal;
}

/** Tells a result that asks for more from a final one (2026-07-28); a kind that is not known is an error. */
export function wantsInput(result: Result, asked: AskedOfServer): boolean {
  const kind = result["resultType"];
  if (kind === "input_required") return true;
  if (kind === undefined || kind === "complete") return false;
  throw new CallError(
    "EXECUTION_ERROR",
    `${asked.server} answered ${asked.method} with an unknown kind of result.`,
    {
      details: { resultType: toPlainLine(kind, 100) },
    },
  );
}

/** Answers all questions of a round and gives what the request is sent again with. */
export async function answerRound(result: Result, side: InputSide): Promise<Result> {
  const requests = result["inputRequests"];
  const state = result["requestState"];
  const questions = isPlainObject(requests) ? Object.entries(requests) : [];
  if (questions.length === 0 && typeof state !== "string")
    throw refuse(side, "asks for input and names none");
  if (questions.length > side.limits.questions) {
    throw refuse(side, `asks more than ${side.limits.questions} questions at once`);
  }
  const responses: Record<string, unknown> = {};
  for (const [key, question] of questions) setOwn(responses, key, await answerOne(question, side));
  return {
    ...(questions.length === 0 ? {} : { inputResponses: responses }),
    ...(typeof state === "string" ? { requestState: state } : {}),
  };
}

async function answerOne(question: unknown, side: InputSide): Promise<Result> {
  const { method, params } = isPlainObject(question) ? question : {};
  if (typeof method !== "string" || !isQuestion(method)) throw refuse(side, "asks what is no question");
  const { caller, roots, limits, signal } = side;
  try {
    return await answerQuestion({
      method,
      params: isPlainObject(params) ? params : undefined,
      caller,
      roots,
      maxLength: limits.questionLength,
      signal,
    });
  } catch (cause) {
    throw refuse(side, `asks ${method}, which has no answer`, cause);
  }
}

function refuse({ asked }: InputSide, what: string, cause?: unknown): CallError {
  return new CallError("EXECUTION_ERROR", `${asked.server} ${what} while it runs ${asked.method}.`, {
    cause,
  });
}
