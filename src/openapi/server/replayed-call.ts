import type { Identity } from "../../core/access/identity.ts";
import { isErrorEnvelope } from "../../core/envelope/envelope.ts";
import type { Metadata } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";

/** How a call ended: it gave a result, ran and said no, or never ran or broke. */
export interface CallEnding {
  readonly outcome: "ok" | "tool_error" | "call_error";
  /** Of an error. */
  readonly code?: string | undefined;
}

/** A call that was not run: it repeats another one, and was answered as that one was. */
export interface ReplayedCall extends CallEnding {
  readonly operation: AnyOperation;
  readonly input: unknown;
  readonly requestId: string;
  readonly identity: Identity | undefined;
  readonly metadata: Metadata;
  /** Waiting for the first one included, where that still ran. */
  readonly durationMs: number;
}

/** Says how a call ended, without what it came to. */
export function endingOfCall({ outcome }: EndedCall): CallEnding {
  if ("error" in outcome) return { outcome: "call_error", code: outcome.error.code };
  const { envelope } = outcome;
  if (!isErrorEnvelope(envelope)) return { outcome: "ok" };
  const { code } = envelope.meta.waybill ?? {};
  return { outcome: "tool_error", ...(code !== undefined && { code: String(code).slice(0, 64) }) };
}
