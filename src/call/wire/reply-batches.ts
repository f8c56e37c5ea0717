import type { Transport } from "./transport.ts";
import { toBatchText, toBytes, toMessageText } from "./wire-message.ts";

/** The last part of the subject that answers to several calls of one caller come by; no call has it as its own. */
export const BATCH = "batch";

/** Characters of one message of answers, so that none is held up by many. */
const MOST_TEXT = 32_768;

/** Characters of an answer that may go together with others; as bytes still less than the least `messageBytes`. */
const SHORT_TEXT = 600;

/** Characters that an entry, or the whole, takes beside its text and token. */
const AROUND = 32;
const TOKEN = 64;
const TOKEN_LETTERS = /^[\w-]+$/;

/** Runs when no promise that is ready has anything left to do. */
const soon: (work: () => void) => void =
  typeof process === "object" && typeof process.nextTick === "function"
    ? (work) => process.nextTick(work)
    : (work) => void setTimeout(work);

/** An answer as text, and the part of its reply path that names the call. */
interface Waiting {
  readonly token: string;
  readonly text: string;
}

/**
 * Sends answers to the same caller that become ready together as one message: carrying a message costs everybody on its way far more
 * than its bytes do. What a batch says names the reply path of each call, which only its two ends know.
 */
export class ReplyBatches {
  readonly #transport: Transport;
  readonly #waiting = new Map<string, Waiting[]>();

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Characters one message may hold, however they are written down. */
  get #room(): number {
    return Math.min(MOST_TEXT, Math.floor(this.#transport.maxMessageBytes / 3) - AROUND);
  }

  /** Takes an answer that is short enough to go with others, and sends it soon; tells whether it is. */
  add(replyTo: string, text: string): boolean {
    if (text.length > Math.min(SHORT_TEXT, this.#room - AROUND - TOKEN)) return false;
    const dot = replyTo.lastIndexOf(".");
    const inbox = replyTo.slice(0, dot);
    const token = replyTo.slice(dot + 1);
    // Whoever makes up names of its own gets its answers one by one.
    if (dot < 1 || token.length > TOKEN || !TOKEN_LETTERS.test(token)) return false;
    const waiting = this.#waiting.get(inbox);
    if (waiting !== undefined) waiting.push({ token, text });
    else {
      if (this.#waiting.size === 0) soon(() => this.flush());
      this.#waiting.set(inbox, [{ token, text }]);
    }
    return true;
  }

  /** Sends what waits, now: whatever is sent by another way afterwards comes after it. */
  flush(): void {
    for (const [inbox, waiting] of this.#waiting) this.#send(inbox, waiting);
    this.#waiting.clear();
  }

  #send(inbox: string, waiting: readonly Waiting[]): void {
    const room = this.#room;
    let batch: Waiting[] = [];
    let size = 0;
    for (const answer of waiting) {
      const own = answer.text.length + answer.token.length + AROUND;
      if (size + own > room) {
        this.#publish(inbox, batch);
        batch = [];
        size = 0;
      }
      batch.push(answer);
      size += own;
    }
    this.#publish(inbox, batch);
  }

  #publish(inbox: string, batch: readonly Waiting[]): void {
    const [first] = batch;
    if (first === undefined) return;
    try {
      if (batch.length === 1) {
        this.#transport.publish(`${inbox}.${first.token}`, toBytes(toMessageText(first.text)));
      } else this.#transport.publish(`${inbox}.${BATCH}`, toBytes(toBatchText(batch)));
    } catch {
      // The transport carries less than a moment ago; whoever waits runs into its deadline.
    }
  }
}
