import { randomBytes } from "node:crypto";

/** Where a request stands in a trace (W3C Trace Context). */
export interface TraceContext {
  /** With a span of our own; its trace is the client's where that said one, else new. */
  readonly traceparent: string;
  /** As it came; nothing without a trace it belongs to. */
  readonly tracestate: string | undefined;
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})$/;
/** Printable ASCII, and no longer than the standard asks everybody to pass on. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** Takes up the trace of a request, or begins one. */
export function readTrace(traceparent: string | undefined, tracestate: string | undefined): TraceContext {
  const [, trace, flags] = (traceparent !== undefined && TRACEPARENT.exec(traceparent)) || [];
  if (trace === undefined) {
    return { traceparent: `00-${randomHex(32)}-${randomHex(16)}-00`, tracestate: undefined };
  }
  const state = tracestate !== undefined && TRACESTATE.test(tracestate) ? tracestate : undefined;
  return { traceparent: `00-${trace}-${randomHex(16)}-${flags}`, tracestate: state };
}

/** Random digits are drawn for many ids at once: one id alone costs as much. */
const POOL_BYTES = 4_096;
let pool = "";
let taken = 0;

/** Digits of which at least one is not zero, as ids need; never the same ones twice. */
function randomHex(digits: number): string {
  for (;;) {
    if (taken + digits > pool.length) {
      pool = randomBytes(POOL_BYTES).toString("hex");
      taken = 0;
    }
    const hex = pool.slice(taken, taken + digits);
    taken += digits;
    if (/[1-9a-f]/.test(hex)) return hex;
  }
}
