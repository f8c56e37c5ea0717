import { JetStreamApiError } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { CallError, isCallError } from "../../../core/errors/errors.ts";

/** What the broker answers when a subject has its one message already, or the stream has no room for more. */
const NOT_TAKEN_IN: readonly number[] = [10071, 10164, 10077];

/** Out of memory, storage or streams, in the account or altogether. */
const EXHAUSTED: readonly number[] = [10002, 10023, 10026, 10027, 10028, 10047];

/** Tells whether the broker refused a message because of those it has. */
export function isNotTakenIn(thrown: unknown): boolean {
  return thrown instanceof JetStreamApiError && NOT_TAKEN_IN.includes(thrown.code);
}

/** The client wraps what the broker says about a subject it does not let one use. */
function isForbidden(thrown: unknown): boolean {
  const said = thrown instanceof errors.RequestError ? thrown.cause : thrown;
  return said instanceof errors.PermissionViolationError;
}

/** Tells whether trying again at once would be answered in the same way. */
export function isFinal(thrown: unknown): boolean {
  if (isCallError(thrown)) return true;
  return (
    isForbidden(thrown) ||
    thrown instanceof errors.ClosedConnectionError ||
    thrown instanceof errors.DrainingConnectionError ||
    (thrown instanceof JetStreamApiError && thrown.status < 500) ||
    (thrown instanceof JetStreamApiError && EXHAUSTED.includes(thrown.code))
  );
}

/** Turns what the client of the broker throws into a `CallError`. */
export function toStoreError(thrown: unknown): CallError {
  if (isCallError(thrown)) return thrown;
  const options = { cause: thrown, stack: false };
  if (isForbidden(thrown)) {
    return new CallError(
      "ACCESS_DENIED",
      "The broker does not let this user store or read the call.",
      options,
    );
  }
  if (thrown instanceof JetStreamApiError && EXHAUSTED.includes(thrown.code)) return storeFull(thrown);
  return new CallError("UNAVAILABLE", "The broker that keeps durable calls cannot be reached.", options);
}

/** The error for a broker that has no room left. */
export function storeFull(cause: unknown): CallError {
  const message = "The broker has no room for another durable call.";
  return new CallError("RESOURCE_EXHAUSTED", message, { cause, stack: false });
}
