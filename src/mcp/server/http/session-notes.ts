import type { McpLogLevel } from "../../provider.ts";
import type { SessionFacts } from "./sealed-sessions.ts";

/** What a client has said in a session after it opened it, as far as every replica has to know. */
export interface SessionNote {
  readonly isEnded: boolean;
  readonly level: McpLogLevel | undefined;
  /** Addresses of resources. */
  readonly subscriptions: readonly string[];
}

/** Something that a client says of its session. */
export type NoteChange =
  | { readonly kind: "ended" }
  | { readonly kind: "level"; readonly level: McpLogLevel }
  | { readonly kind: "subscribed" | "unsubscribed"; readonly uri: string };

/** Names a session, and tells until when it is one. */
export type NotedSession = Pick<SessionFacts, "id" | "owner" | "expiresAt">;

/** What replicas note of sessions for each other. An ordinary request has nothing to do with it. */
export interface SessionNotes {
  /** What is noted of a session; nothing, at once, where nothing ever was, as far as this replica has heard. */
  read(session: NotedSession): Promise<SessionNote | undefined> | undefined;
  /** Notes something; rejects where it cannot, and then this replica alone knows of it. */
  write(session: NotedSession, change: NoteChange): Promise<void>;
  /** Hears that something was noted, by whichever replica; returns how to stop. */
  watch(session: NotedSession, listener: () => void): () => void;
}

/** A note of which something has changed. */
export function withChange(note: SessionNote | undefined, change: NoteChange): SessionNote {
  const { isEnded = false, level, subscriptions = [] } = note ?? {};
  const before = { isEnded, level, subscriptions };
  switch (change.kind) {
    case "ended":
      return { ...before, isEnded: true, subscriptions: [] };
    case "level":
      return { ...before, level: change.level };
    case "subscribed":
      return { ...before, subscriptions: [...new Set([...subscriptions, change.uri])] };
    case "unsubscribed":
      return { ...before, subscriptions: subscriptions.filter((uri) => uri !== change.uri) };
  }
}
