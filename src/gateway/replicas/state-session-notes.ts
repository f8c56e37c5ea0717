import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import {
  type NoteChange,
  type NotedSession,
  type SessionNote,
  type SessionNotes,
  withChange,
} from "../../mcp/server/http/session-notes.ts";
import { readLogLevel } from "../../mcp/server/peer-request.ts";
import type { SharedState } from "../state/gateway-state.ts";
import { StateError, type StateName, type StateRecord } from "../state/state-store.ts";

/** What replicas note of sessions, of all and of one caller. */
export const NOTE_BOUNDS = {
  records: 20_000,
  bytes: 16_777_216,
  ownRecords: 5_000,
  ownBytes: 4_194_304,
} as const;

/** How often a note that others change all the time is tried. */
const MOST_TRIES = 20;

/** Keeps what is noted of sessions in the store that replicas share. */
export class StateSessionNotes implements SessionNotes {
  readonly #shared: () => SharedState | undefined;

  /** `shared` gives what is shared by now; nothing while that cannot be told. */
  constructor(shared: () => SharedState | undefined) {
    this.#shared = shared;
  }

  read(session: NotedSession): Promise<SessionNote | undefined> | undefined {
    const store = this.#shared()?.store;
    const name = nameOf(session);
    return store?.mayHave(name) === true
      ? store.get(name).then((record) => record && decode(record))
      : undefined;
  }

  async write(session: NotedSession, change: NoteChange): Promise<void> {
    const shared = this.#shared();
    if (shared === undefined) throw new StateError("unreachable", "The shared state cannot be reached.");
    const { store } = shared;
    const name = nameOf(session);
    for (let attempt = 1; attempt <= MOST_TRIES; attempt++) {
      const record = await store.get(name);
      const value = encode(withChange(record && decode(record), change));
      const write = { expiresAt: session.expiresAt, bounds: NOTE_BOUNDS };
      const put =
        record === undefined
          ? await store.create(name, value, write)
          : await store.update(name, record.revision, value, write);
      if (put.state === "created" || put.state === "updated") return;
      if (put.state === "full")
        throw new StateError("full", "There is no room for another note of a session.");
    }
    throw new StateError("slow", "The note of a session changes all the time.");
  }

  watch(session: NotedSession, listener: () => void): () => void {
    return this.#shared()?.store.watch(nameOf(session), listener) ?? (() => {});
  }
}

function nameOf({ owner, id }: NotedSession): StateName {
  return { collection: "sessions", owner, key: id };
}

function encode({ isEnded, level, subscriptions }: SessionNote): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ ended: isEnded, level, subscriptions }));
}

/** Reads a note of ours, which another process wrote. */
function decode({ value }: StateRecord): SessionNote {
  const found = parseJsonTextOrNone(new TextDecoder().decode(value));
  const { ended, level, subscriptions } = isPlainObject(found) ? found : {};
  const isRight =
    typeof ended === "boolean" &&
    Array.isArray(subscriptions) &&
    subscriptions.every((uri) => typeof uri === "string");
  if (!isRight) throw new StateError("damaged", "The note of a session in the shared state cannot be read.");
  return { isEnded: ended, level: readLogLevel(level), subscriptions };
}
