/** What a bus and both of its sides take on before they say no with `RESOURCE_EXHAUSTED`. */
export const CALL_LIMITS = {
  /** Calls and subscriptions one asking side waits for. */
  pendingCalls: 10_000,
  /** Calls and subscriptions one answering side runs at a time. */
  runningCalls: 10_000,
  /** Bytes of one event, written down; in chunks where the bus carries less at a time. */
  messageBytes: 16 * 1024 * 1024,
  /** Yields of one subscription that wait for their reader. */
  streamBuffer: 64,
  /** Milliseconds a call may take, and takes at most where it says nothing. */
  deadlineMs: 300_000,
  /** Request ids an answering side remembers, so that none runs twice. */
  rememberedRequests: 100_000,
  /** Operations one service may offer, and services one directory holds. */
  operations: 100_000,
  services: 10_000,
} as const;

/** The error that says that something is too large must not be. */
const LEAST_MESSAGE_BYTES = 2_048;

/** Limits by name; what is left out takes its default. */
export type CallLimits = { readonly [Limit in keyof typeof CALL_LIMITS]: number };

/** Fills in the defaults; a `TypeError` names the limit that makes no sense. */
export function readLimits(given: Partial<CallLimits> = {}): CallLimits {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(CALL_LIMITS, name)) throw new TypeError(`There is no limit called "${name}".`);
    if (value !== undefined && !(Number.isInteger(value) && value > 0)) {
      throw new TypeError(`limits.${name} must be a whole number, 1 or more.`);
    }
    if (name === "messageBytes" && value < LEAST_MESSAGE_BYTES) {
      throw new TypeError(`limits.messageBytes must be at least ${LEAST_MESSAGE_BYTES}.`);
    }
  }
  const defined = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return { ...CALL_LIMITS, ...defined };
}
