import { randomUUID } from "node:crypto";
import {
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { CallError } from "../../core/errors/errors.ts";
import type { CallerSide, ElicitRequest } from "../../core/operation/caller-side.ts";
import {
  assertAskable,
  checkedAnswer,
  readCapabilities,
  readElicitAnswer,
  readRoots,
  readSampleAnswer,
} from "./caller-answers.ts";

/** Who is asked by `toCallerSide`, and how long they may take. */
export interface AskClientOptions {
  readonly party: CallerSide["party"];
  readonly timeoutMs: number;
}

/** What a 2025 client may be asked while its request runs, by requests to it. */
export function toCallerSide(
  server: Server,
  context: ServerContext,
  { party, timeoutMs }: AskClientOptions,
): CallerSide {
  const can = readCapabilities(server.getClientCapabilities());
  const ask = (method: string, params: object, signal: AbortSignal): Promise<unknown> =>
    send(context, method, params, { signal, timeout: timeoutMs });
  const caller: CallerSide = { party };
  if (can.form || can.url) {
    caller.elicit = async (request, signal) => {
      assertAskable(request.mode ?? "form", can);
      const answer = readElicitAnswer(await ask("elicitation/create", toParams(request), signal));
      return checkedAnswer(answer ?? noAnswer(), request);
    };
  }
  if (can.sampling) {
    caller.sample = async (request, signal) =>
      readSampleAnswer(await ask("sampling/createMessage", request, signal)) ?? noAnswer();
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
  context: ServerContext,
  method: string,
  params: object,
  options: { readonly signal: AbortSignal; readonly timeout: number },
): Promise<unknown> {
  try {
    return await context.mcpReq.send({ method, params } as never, options);
  } catch (cause) {
    if (options.signal.aborted) throw new CallError("ABORTED", undefined, { cause });
    const isTimeout = cause instanceof SdkError && cause.code === SdkErrorCode.RequestTimeout;
    if (isTimeout) throw new CallError("TIMEOUT", "The client did not answer in time.", { cause });
    const isMissing = cause instanceof ProtocolError && cause.code === ProtocolErrorCode.MethodNotFound;
    if (isMissing) throw new CallError("NOT_IMPLEMENTED", "The client cannot be asked.", { cause });
    throw new CallError("UNAVAILABLE", "The client could not be asked, or refused to answer.", { cause });
  }
}
