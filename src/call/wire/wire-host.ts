import type { LiveCounters } from "../call-counters.ts";
import type { CallObservers } from "../call-observer.ts";
import type { Peers } from "./peers.ts";
import type { ReplyBatches } from "./reply-batches.ts";
import type { Subjects } from "./subjects.ts";
import type { Transport } from "./transport.ts";

/** What both halves of a bus work with. */
export interface WireHost {
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly peers: Peers;
  readonly replies: ReplyBatches;
  readonly counters: LiveCounters;
  readonly observers: CallObservers;
  /** Bytes of one event at most. */
  readonly messageBytes: number;
  /** Services that are known at a time. */
  readonly services: number;
}
