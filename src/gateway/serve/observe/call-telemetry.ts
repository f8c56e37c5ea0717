import type { Metadata } from "../../../core/operation/operation-context.ts";

/** What begins the spans of calls that come in. */
export interface CallTelemetry {
  /** Answers a request of the HTTP API, whose headers say what trace it belongs to. */
  answering<T>(headers: Readonly<Record<string, unknown>>, run: () => T): T;
  /** Begins the span of a call that comes in; the metadata that comes back holds it, and says so to whoever it is sent on to. */
  begin(metadata: Metadata): Metadata;
}
