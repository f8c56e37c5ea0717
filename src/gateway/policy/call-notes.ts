import type { ResultFinding } from "../../core/envelope/response-meta.ts";
import { firstContextOf } from "../../core/execution/call-context.ts";

/** What is noted about a call on its way, beyond what its envelope says: by policies, by what signs in to a source, by who approves. */
export interface CallNotes {
  /** The result had been kept from an earlier call. */
  readonly cached?: true;
  /** The result is that of a call that was under way already. */
  readonly shared?: true;
  /** The answer is the one that the first call with this idempotency key was given. */
  readonly repeated?: true;
  /** How often the operation was tried, where that was more than once. */
  readonly attempts?: number;
  /** Milliseconds the call waited for its turn, where it had to. */
  readonly waitedMs?: number;
  /** How many findings a guard named in the result. */
  readonly findings?: number;
  /** Where and what the first of them are, at most 20; never the text that was found. */
  readonly marked?: readonly ResultFinding[];
  /** As whom the call was made at its source, where that is more than the one login of the config. */
  readonly upstream?: UpstreamNote;
  /** Who was asked before it ran, and what they said. */
  readonly approval?: ApprovalNote;
}

/** As whom a call was made at its source, and by which grant; it holds no secret. */
export interface UpstreamNote {
  /**
   * How the source came to know them: `shared`, the one login of the gateway; `caller`, a grant of the caller's own; `exchange`, a token had in
   * exchange for the caller's; `forward`, the caller's own token; `key`, a key of the caller's.
   */
  readonly as: "shared" | "caller" | "exchange" | "forward" | "key";
  /** The account at the source, as far as it is known there. */
  readonly subject?: string | undefined;
  /** The authorization server that issued the grant. */
  readonly issuer?: string | undefined;
  /** Names the grant, as `waybill auth status` does. */
  readonly grant?: string | undefined;
}

/** What came of asking a person about a call. */
export interface ApprovalNote {
  /** Names the request for approval. */
  readonly id: string;
  readonly decision: "approved" | "denied" | "waiting";
  /** Who decided; nothing where nobody did, or where it cannot be told. */
  readonly by?: string | undefined;
  /** Who issued what they were recognised by. */
  readonly issuer?: string | undefined;
  /** Where they were asked. */
  readonly via?: string | undefined;
  /** When they decided, as an ISO time. */
  readonly at?: string | undefined;
  /** Milliseconds that this call was held. */
  readonly heldMs?: number | undefined;
}

/** Findings that are noted about one call. */
export const MOST_MARKED = 20;
/** Characters of each text of a note. */
const MOST_CHARACTERS = 200;

/** By the context that a call began with: hooks may give what stands inside of them another one. */
const NOTES = new WeakMap<object, CallNotes>();

/** Gives what is noted about a call, by any of its contexts. */
export function callNotesOf(context: object): CallNotes | undefined {
  return NOTES.get(firstContextOf(context));
}

/** Adds to what is noted about a call, by any of its contexts. */
export function takeNote(context: object, notes: CallNotes): void {
  const first = firstContextOf(context);
  NOTES.set(first, { ...NOTES.get(first), ...notes });
}

/** Notes what a guard found in a result, or in one more value of a stream: how much, and where the first of it stands. */
export function noteFindings(context: object, found: readonly ResultFinding[]): void {
  if (found.length === 0) return;
  const { findings = 0, marked = [] } = callNotesOf(context) ?? {};
  const first = marked.length < MOST_MARKED ? [...marked, ...found].slice(0, MOST_MARKED) : marked;
  takeNote(context, { findings: findings + found.length, marked: first });
}

/** The same note with every text cut and without secrets, as records hold it. */
export function shownNotes(notes: CallNotes, mask: (text: string) => string): CallNotes {
  const { upstream, approval, marked } = notes;
  if (upstream === undefined && approval === undefined && marked === undefined) return notes;
  return {
    ...notes,
    ...(upstream && { upstream: shownTexts(upstream, mask) }),
    ...(approval && { approval: shownTexts(approval, mask) }),
    ...(marked && { marked: marked.map((one) => shownTexts(one, mask)) }),
  };
}

function shownTexts<T extends object>(note: T, mask: (text: string) => string): T {
  const shown = Object.entries(note).map(([name, value]) => [
    name,
    typeof value === "string" ? mask(value).slice(0, MOST_CHARACTERS) : value,
  ]);
  return Object.fromEntries(shown) as T;
}
