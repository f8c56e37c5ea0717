import { randomUUID } from "node:crypto";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type {
  CallerSide,
  ElicitAnswer,
  ElicitRequest,
  Root,
  SampleAnswer,
} from "../../core/operation/caller-side.ts";
import { type OperationSchema, toOperationSchema } from "../../core/schema/any-schema.ts";
import { ProtocolError, RPC_CODES } from "../protocol/messages.ts";
import type { PeerRequest } from "./peer-request.ts";

/** What a client says it can be asked. */
export interface AskableCapabilities {
  readonly form: boolean;
  readonly url: boolean;
  readonly sampling: boolean;
  readonly roots: boolean;
}

/** Reads the capabilities of a client; an empty `elicitation` means forms, as it did before there were modes. */
export function readCapabilities(declared: unknown): AskableCapabilities {
  const { elicitation, sampling, roots } = isPlainObject(declared) ? declared : {};
  const modes = isPlainObject(elicitation) ? elicitation : undefined;
  const url = isPlainObject(modes?.["url"]);
  return {
    form: modes !== undefined && (isPlainObject(modes["form"]) || !url),
    url,
    sampling: isPlainObject(sampling),
    roots: isPlainObject(roots),
  };
}

/** What a client would have had to declare, by the error that says it did not. */
const missing = new WeakMap<object, Readonly<Record<string, object>>>();

/** Throws where a client does not offer the kind of question. */
export function assertAskable(kind: keyof AskableCapabilities, can: AskableCapabilities): void {
  if (can[kind]) return;
  const error = new CallError("NOT_IMPLEMENTED", `The client cannot be asked this (${kind}).`);
  missing.set(error, kind === "form" || kind === "url" ? { elicitation: { [kind]: {} } } : { [kind]: {} });
  throw error;
}

/** The capabilities for want of which a call failed; nothing where it failed for another reason. */
export function missingCapabilities(thrown: unknown): Readonly<Record<string, object>> | undefined {
  let error = thrown;
  for (let depth = 0; depth < 10 && error instanceof Error; depth++, error = error.cause) {
    const found = missing.get(error);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Takes an answer of a person for what it says; nothing where it is not one. */
export function readElicitAnswer(value: unknown): ElicitAnswer | undefined {
  if (!isPlainObject(value)) return undefined;
  const { action, content } = value;
  if (action !== "accept" && action !== "decline" && action !== "cancel") return undefined;
  if (content === undefined || content === null) return { action };
  return isPlainObject(content) ? { action, content } : undefined;
}

/** Takes an answer of a model for what it says; nothing where it is not one. */
export function readSampleAnswer(value: unknown): SampleAnswer | undefined {
  if (!isPlainObject(value) || value["content"] === undefined) return undefined;
  return typeof value["role"] === "string" && typeof value["model"] === "string"
    ? (value as unknown as SampleAnswer)
    : undefined;
}

/** Takes a list of roots for what it says; nothing where it is not one. */
export function readRoots(value: unknown): readonly Root[] | undefined {
  if (!isPlainObject(value) || !Array.isArray(value["roots"])) return undefined;
  const isRoot = (root: unknown): boolean => isPlainObject(root) && typeof root["uri"] === "string";
  return value["roots"].every(isRoot) ? (value["roots"] as Root[]) : undefined;
}

/** Throws `VALIDATION_ERROR` when what was filled in is not what the form asked for. */
export function checkedAnswer(answer: ElicitAnswer, request: ElicitRequest): ElicitAnswer {
  if (answer.action !== "accept" || request.mode === "url") return answer;
  const schema = compiled(request.requestedSchema);
  const content = answer.content ?? {};
  if (schema === undefined || schema.check(content)) return answer;
  throw new CallError("VALIDATION_ERROR", "The answer does not match the form that was asked for.", {
    details: { issues: schema.errors(content) },
  });
}

/** A form of an imported server may have a schema we refuse; that server then checks the answer itself. */
function compiled(schema: unknown): OperationSchema | undefined {
  try {
    return toOperationSchema(schema as never, "output");
  } catch {
    return undefined;
  }
}

interface AskClientOptions {
  readonly party: CallerSide["party"];
  readonly timeoutMs: number;
}

/** What a 2025 client may be asked while its request runs, by requests to it. */
export function toCallerSide(request: PeerRequest, { party, timeoutMs }: AskClientOptions): CallerSide {
  const can = request.capabilities;
  const ask = async (method: string, params: object, signal: AbortSignal): Promise<unknown> => {
    try {
      return await request.ask(method, params, { signal, timeoutMs });
    } catch (cause) {
      throw toAskFailure(cause, signal);
    }
  };
  const caller: CallerSide = { party, extensions: request.extensions };
  if (can.form || can.url) {
    caller.elicit = async (question, signal) => {
      assertAskable(question.mode ?? "form", can);
      const answer = readElicitAnswer(await ask("elicitation/create", toParams(question), signal));
      return checkedAnswer(answer ?? noAnswer(), question);
    };
    caller.elicited = (elicitationId) =>
      request.notify("notifications/elicitation/complete", { elicitationId });
  }
  if (can.sampling) {
    caller.sample = async (question, signal) =>
      readSampleAnswer(await ask("sampling/createMessage", question, signal)) ?? noAnswer();
  }
  if (can.roots) {
    caller.roots = async (signal) => readRoots(await ask("roots/list", {}, signal)) ?? noAnswer();
  }
  return caller;
}

/** Says that a client gave no answer to a question, or nothing that is one. */
export function noAnswer(): never {
  throw new CallError("OUTPUT_INVALID", "The client gave no proper answer.");
}

/** The revision 2025-11-25 wants an id for what happens at an address. */
function toParams(request: ElicitRequest): object {
  if (request.mode !== "url") return { ...request, mode: "form" };
  return { ...request, elicitationId: request.elicitationId ?? randomUUID() };
}

function toAskFailure(cause: unknown, signal: AbortSignal): CallError {
  if (signal.aborted) return new CallError("ABORTED", undefined, { cause });
  if (isCallError(cause) && cause.code === "TIMEOUT")
    return new CallError("TIMEOUT", "The client did not answer in time.", { cause });
  const isMissing = cause instanceof ProtocolError && cause.code === RPC_CODES.methodNotFound;
  if (isMissing) return new CallError("NOT_IMPLEMENTED", "The client cannot be asked.", { cause });
  return new CallError("UNAVAILABLE", "The client could not be asked, or refused to answer.", { cause });
}
