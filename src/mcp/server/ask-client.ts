import { randomUUID } from "node:crypto";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import type { CallerSide, ElicitRequest } from "../../core/operation/caller-side.ts";
import { ProtocolError, RPC_CODES } from "../protocol/messages.ts";
import {
  assertAskable,
  checkedAnswer,
  readElicitAnswer,
  readRoots,
  readSampleAnswer,
} from "./caller-answers.ts";
import type { PeerRequest } from "./peer-request.ts";

/** Who is asked by `toCallerSide`, and how long they may take. */
export interface AskClientOptions {
  readonly party: CallerSide["party"];
  readonly timeoutMs: number;
}

/** What a 2025 client may be asked while its request runs, by requests to it. */
export function toCallerSide(request: PeerRequest, { party, timeoutMs }: AskClientOptions): CallerSide {
  const can = request.capabilities;
  const ask = (method: string, params: object, signal: AbortSignal): Promise<unknown> =>
    send(request, method, params, { signal, timeoutMs });
  const caller: CallerSide = { party, extensions: request.extensions };
  if (can.form || can.url) {
    caller.elicit = async (question, signal) => {
      assertAskable(question.mode ?? "form", can);
      const answer = readElicitAnswer(await ask("elicitation/create", toParams(question), signal));
      return checkedAnswer(answer ?? noAnswer(), question);
    };
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

function noAnswer(): never {
  throw new CallError("OUTPUT_INVALID", "The client gave no proper answer.");
}

/** The revision 2025-11-25 wants an id for what happens at an address. */
function toParams(request: ElicitRequest): object {
  if (request.mode !== "url") return { ...request, mode: "form" };
  return { ...request, elicitationId: request.elicitationId ?? randomUUID() };
}

async function send(
  request: PeerRequest,
  method: string,
  params: object,
  options: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<unknown> {
  try {
    return await request.ask(method, params, options);
  } catch (cause) {
    if (options.signal.aborted) throw new CallError("ABORTED", undefined, { cause });
    if (isCallError(cause) && cause.code === "TIMEOUT")
      throw new CallError("TIMEOUT", "The client did not answer in time.", { cause });
    const isMissing = cause instanceof ProtocolError && cause.code === RPC_CODES.methodNotFound;
    if (isMissing) throw new CallError("NOT_IMPLEMENTED", "The client cannot be asked.", { cause });
    throw new CallError("UNAVAILABLE", "The client could not be asked, or refused to answer.", { cause });
  }
}
