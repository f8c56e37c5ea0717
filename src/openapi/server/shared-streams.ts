import { CallError } from "../../core/errors/errors.ts";
import { writeError } from "./live-stream.ts";

/** Names a subscription among those of all replicas. */
export interface SharedStreamName {
  /** The caller, whatever rights they have at the moment. */
  readonly owner: string;
  /** All that decides whose it is; nobody else may take it up. */
  readonly session: string;
  readonly stream: string;
}

/** An event of a subscription, as text. */
interface SharedEvent {
  readonly place: number;
  readonly json: string;
}

/** A subscription as another replica finds it. */
export interface FoundSubscription {
  /** Whether nothing comes after the place that was asked for. */
  readonly isOver: boolean;
  /** What came after the place, and then what comes; throws where the rest is lost. */
  readonly events: AsyncIterable<SharedEvent>;
}

/** What a server with replicas does with subscriptions: their ids name the replica, and their events are kept for the others. */
export interface SharedStreams {
  /** Names this replica: eight hexadecimal digits. */
  readonly replica: string;
  readonly log: {
    open(name: SharedStreamName, asked: readonly never[]): Promise<void>;
    append(name: SharedStreamName, event: SharedEvent): Promise<void>;
    end(name: SharedStreamName): Promise<void>;
    find(name: SharedStreamName, after: number, signal: AbortSignal): Promise<FoundSubscription | undefined>;
  };
}

/** Keeps the events of one subscription, and waits for nothing: its reader has them first. */
export class SharedWriter {
  readonly #log: SharedStreams["log"];
  readonly #name: SharedStreamName;
  #isKept = true;

  constructor(log: SharedStreams["log"], name: SharedStreamName) {
    this.#log = log;
    this.#name = name;
    this.#do(log.open(name, []));
  }

  keep(place: number, json: string): void {
    if (this.#isKept) this.#do(this.#log.append(this.#name, { place, json }));
  }

  end(): void {
    if (this.#isKept) this.#do(this.#log.end(this.#name));
  }

  /** What is not kept can be resumed at its own replica alone; the store counts why. */
  #do(writing: Promise<void>): void {
    writing.catch(() => {
      this.#isKept = false;
    });
  }
}

/** Writes the rest of a subscription whose replica is gone: what is kept of it, and that it is lost where it had not ended. */
export async function* readShared(
  { events }: FoundSubscription,
  stream: string,
  {
    from,
    requestId,
    leaving,
  }: { readonly from: number; readonly requestId: string; readonly leaving: AbortController },
): AsyncGenerator<string, void> {
  let next = from;
  try {
    yield "retry: 1000\n\n";
    try {
      for await (const { place, json } of events) {
        next = place + 1;
        yield json;
      }
    } catch {
      yield writeError(`${stream}:${next}`, lostReplica(), requestId);
    }
  } finally {
    leaving.abort();
  }
}

function lostReplica(): CallError {
  const message =
    "The replica that ran this subscription cannot be reached; start it again without the last event id.";
  return new CallError("UNAVAILABLE", message, { details: { reason: "replica_lost" }, stack: false });
}
