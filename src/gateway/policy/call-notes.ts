/** What policies did to a call, beyond what its envelope says. */
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
}

const NOTES = new WeakMap<object, CallNotes>();

/** Gives what is noted about a call, by the context that hooks outside of the policies see. */
export function notesOf(context: object): CallNotes | undefined {
  return NOTES.get(context);
}

/** Adds to what is noted about a call. */
export function takeNote(context: object, notes: CallNotes): void {
  NOTES.set(context, { ...NOTES.get(context), ...notes });
}
