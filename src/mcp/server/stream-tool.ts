import { localEnvelope, withFacts } from "../../core/envelope/envelope.ts";
import type { ResponseEnvelope } from "../../core/envelope/response-meta.ts";
import { toCallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/deadline.ts";
import { asJson } from "../../core/json/as-json.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ExecuteOptions } from "../../core/registry/executor.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import { MAX_ISSUES } from "../../core/schema/limits.ts";
import type { SchemaIssue } from "../../core/schema/schema-issue.ts";
import { cutText } from "../../core/text/cut-text.ts";
import { encodeEnvelope } from "../../core/wire/wire.ts";
import { YIELD_META_KEY } from "../meta-keys.ts";
import type { Exchange } from "./exchange.ts";
import type { ServedTools } from "./served-tools.ts";
import { type StreamResult, streamSchema } from "./stream-result.ts";

/** Characters of a value that people see in a progress notification. */
const MESSAGE_CHARACTERS = 1_000;

/** What a subscription is run with. */
export interface EndStreamOptions {
  readonly served: ServedTools;
  readonly exchange: Exchange;
  readonly operation: AnyOperation;
  readonly input: unknown;
  readonly options: ExecuteOptions & { readonly requestId: string };
}

/** Runs a subscription to its end: each value is progress, and the result holds the first of them. */
export async function endStream(asked: EndStreamOptions): Promise<EndedCall> {
  const { served, exchange, input, options } = asked;
  const { executor, limits } = served;
  // Formats judge the one result by the schema that is advertised for it.
  const operation = { ...asked.operation, outputSchema: streamSchema(asked.operation) };
  const startedAt = monotonicNow();
  const items: unknown[] = [];
  const violations: SchemaIssue[] = [];
  let count = 0;
  let outcome: EndedCall["outcome"];
  try {
    // The handler's own reports would get mixed up with its values, which are counted.
    const { onProgress: _, ...quiet } = options;
    for await (const envelope of executor.subscribe(operation.id, input, quiet)) {
      count += 1;
      const value = asJson(envelope.data ?? null);
      if (items.length < limits.streamItems) {
        const place = `/items/${items.push(value) - 1}`;
        for (const issue of envelope.meta.waybill?.violations ?? []) {
          if (violations.length < MAX_ISSUES) violations.push({ ...issue, pointer: place + issue.pointer });
        }
      }
      exchange.tell(toProgress(envelope, value, count));
    }
    const data: StreamResult = { items, count, truncated: count > items.length };
    const envelope = localEnvelope(data, operation.id);
    outcome = { envelope: violations.length === 0 ? envelope : withFacts(envelope, { violations }) };
  } catch (thrown) {
    outcome = { error: toCallError(thrown) };
  }
  const { requestId, identity } = options;
  const durationMs = Math.max(0, monotonicNow() - startedAt);
  return { operationId: operation.id, operation, requestId, identity, durationMs, outcome };
}

function toProgress(
  envelope: ResponseEnvelope,
  value: unknown,
  count: number,
): Parameters<Exchange["tell"]>[0] {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return {
    progress: count,
    message: cutText(text, MESSAGE_CHARACTERS),
    _meta: { [YIELD_META_KEY]: encodeEnvelope(envelope) },
  };
}
