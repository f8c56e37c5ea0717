import { isCallError } from "../../core/errors/errors.ts";
import { toJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type {
  CallerSide,
  ElicitAnswer,
  ElicitRequest,
  SampleAnswer,
  SampleRequest,
} from "../../core/operation/caller-side.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { withDefaults } from "./answer-defaults.ts";
import { cleanForm } from "./clean-form.ts";
import { isWebAddress } from "./web-address.ts";

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
  /** Whoever was asked has left: no answer will come, which is a refusal as well. */
  left: -1,
  /** It is no question. */
  malformed: -32602,
  /** Whoever was asked failed. */
  failed: -32603,
} as const;

/** A question of a server, and who may answer. */
export interface Question {
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
export async function answerQuestion(question: Question): Promise<Readonly<Record<string, unknown>>> {
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

async function askPerson({ caller, params, maxLength, signal }: Question): Promise<ElicitAnswer> {
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

async function askModel({ caller, params, maxLength, signal }: Question): Promise<SampleAnswer> {
  const sample = caller?.sample?.bind(caller);
  if (sample === undefined) throw new QuestionRefused(REFUSALS.unable, "No model can be asked here.");
  const request = toSampleRequest(params, maxLength);
  const answer = await ask(() => sample(request, signal), signal);
  if (!isPlainObject(answer) || typeof answer["role"] !== "string" || typeof answer["model"] !== "string") {
    throw new QuestionRefused(REFUSALS.failed, "The model's answer could not be read.");
  }
  return answer as unknown as SampleAnswer;
}

/** Waits for the answer, but not beyond the abort: whoever is asked may never look at it. */
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
    throw new QuestionRefused(code, "Whoever was asked could not answer.", { cause });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** What a person gets to see, with nothing hidden in it. */
function toElicitRequest(params: Question["params"], maxLength: number): ElicitRequest {
  const { mode, message: said, requestedSchema, url } = checkSize(params, maxLength);
  if (typeof said !== "string") throw malformed("its message is no text");
  const message = cleanText(said).text;
  if (mode === "url") {
    if (typeof url !== "string" || !isWebAddress(url))
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

function toSampleRequest(params: Question["params"], maxLength: number): SampleRequest {
  const { _meta, ...request } = checkSize(params, maxLength);
  const { messages, maxTokens } = request;
  if (!Array.isArray(messages) || !messages.every(isPlainObject)) throw malformed("its messages are no list");
  if (typeof maxTokens !== "number" || !(maxTokens > 0))
    throw malformed("its maxTokens is no number above 0");
  return request as SampleRequest;
}

function checkSize(params: Question["params"], maxLength: number): Record<string, unknown> {
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
