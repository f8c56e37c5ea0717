import type { OutgoingRequest } from "../http-message.ts";
import type { Sent } from "./transport-errors.ts";
import type { TransportSettings } from "./transport-settings.ts";

/** What one exchange is about. */
export interface ExchangePlan {
  readonly request: OutgoingRequest;
  readonly sent: Sent;
  readonly signal: AbortSignal;
  readonly settings: TransportSettings;
  /** Gives the body of a success as it arrives. */
  readonly streamed: boolean;
  /** On the monotonic clock. */
  readonly deadline: number;
}
