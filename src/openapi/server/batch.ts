import { toCallError } from "../../core/errors/errors.ts";
import { isRequestId, randomId } from "../../core/execution/request-id.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { toWire } from "../../core/wire/wire.ts";
import type { AuthenticatedRequest, HttpAnswer } from "../../http/exchange.ts";
import type { Representation } from "./accept.ts";
import { type CallRunner, fingerprint } from "./call-runner.ts";
import { problemAnswer, requestError } from "./problem-answer.ts";

/** A call by the id of its operation. */
export interface GenericCall {
  readonly operationId: string;
  readonly input: unknown;
  readonly timeoutMs?: number | undefined;
}

const MEMBERS = ["operation", "input", "timeoutMs"];

/** Reads a generic call; anything else is a `CallError`. */
export function readGenericCall(value: unknown): GenericCall {
  if (!isPlainObject(value) || typeof value["operation"] !== "string") {
    throw requestError(
      "VALIDATION_ERROR",
      'A call is an object such as { "operation": "namespace.name", "input": … }.',
    );
  }
  const unknown = Object.keys(value).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) {
    const shown = JSON.stringify(unknown.slice(0, 80));
    throw requestError("VALIDATION_ERROR", `A call has no member ${shown}, only ${MEMBERS.join(", ")}.`);
  }
  const { operation, input, timeoutMs } = value;
  const isTime = typeof timeoutMs === "number" && timeoutMs >= 0;
  if (timeoutMs !== undefined && !isTime) {
    throw requestError("VALIDATION_ERROR", "timeoutMs must be a number of milliseconds, 0 or more.");
  }
  return { operationId: operation, input, timeoutMs: isTime ? timeoutMs : undefined };
}

/** What all calls of a batch have in common. */
export interface BatchOptions {
  readonly caller: AuthenticatedRequest;
  readonly representation: Representation;
  readonly timeoutMs: number;
  readonly idempotencyKey: string | undefined;
  /** Calls in one batch. */
  readonly limit: number;
}

/** Runs the calls of a batch at the same time and answers them in their order; one that fails changes nothing for the others. */
export async function runBatch(
  runner: CallRunner,
  value: unknown,
  options: BatchOptions,
): Promise<HttpAnswer> {
  if (!Array.isArray(value)) throw requestError("VALIDATION_ERROR", "A batch is a list of calls.");
  if (value.length > options.limit) {
    const message = `A batch holds at most ${options.limit} calls; split it.`;
    throw requestError("TOO_LARGE", message, { details: { limit: options.limit } });
  }
  const answers = await Promise.all(value.map((item, index) => runItem(runner, item, { ...options, index })));
  const headers = { "content-type": "application/json", "cache-control": "no-store" };
  return { status: 200, headers, body: `[${answers.map(writeItem).join(",")}]` };
}

async function runItem(
  runner: CallRunner,
  item: unknown,
  { caller, representation, timeoutMs, idempotencyKey, index }: BatchOptions & { readonly index: number },
): Promise<HttpAnswer> {
  const numbered = `${caller.requestId}.${index}`;
  const requestId = isRequestId(numbered) ? numbered : randomId();
  try {
    const { operationId, input, timeoutMs: own = timeoutMs } = readGenericCall(item);
    const wrongWay = runner.subscriptionError(operationId, caller.identity);
    if (wrongWay !== undefined) throw wrongWay;
    const answer = await runner.run({
      caller: { ...caller, requestId },
      operationId,
      input,
      representation,
      timeoutMs: Math.min(own, timeoutMs),
      nested: true,
      ...(idempotencyKey !== undefined && {
        // No caller can come to the same key by chance.
        idempotencyKey: fingerprint(`${idempotencyKey} ${index}`),
        fingerprint: fingerprint(JSON.stringify(toWire(item))),
      }),
    });
    return { ...answer, headers: { ...answer.headers, "x-request-id": requestId } };
  } catch (thrown) {
    return problemAnswer(toCallError(thrown), requestId, { "x-request-id": requestId });
  }
}

/** Every body is JSON text here, or nothing. */
function writeItem({ status, headers, body }: HttpAnswer): string {
  const shown = `"status":${status},"headers":${JSON.stringify(headers)}`;
  return typeof body === "string" ? `{${shown},"body":${body}}` : `{${shown}}`;
}
