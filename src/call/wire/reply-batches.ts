import type { Transport } from "./transport.ts";
import { toBatchText, toBytes, toEntryText, toMessageText } from "./wire-message.ts";

/** The last part of the subject that answers to several calls of one caller come by; no call has it as its own. */
export const BATCH = "batch";

/** Characters of one message to several calls, so that none is held up by many. */
export const MOST_BATCH_TEXT = 32_768;

/** Characters that an entry, or the whole, takes beside its text and token. */
export const AROUND = 32;

/** Characters of an answer that may go together with others; as bytes still less than the least `messageBytes`. */
const SHORT_TEXT = 600;

const TOKEN = 64;
const TOKEN_LETTERS = /^[\w-]+$/;

/** Tells whether the last part of a reply path may be named among others. */
export function isReplyToken(token: unknown): token is string {
  return typeof token === "string" && token.length <= TOKEN && TOKEN_LETTERS.test(token);
}

/** Runs when no promise that is ready has anything left to do. */
export const soon: (work: () => void) => void =
  typeof process === "object" && typeof process.nextTick === "function"
    ? process.nextTick.bind(process)
    : (work) => void setTimeout(work);

/** Answers to one caller that wait to be sent: the first, and all as entries once there are several. */
interface Waiting {
  readonly inbox: string;
  readonly token: string;
  readonly text: string;
  entries: string[] | undefined;
  size: number;
}

/**
 * Sends answers to the same caller that become ready together as one message: carrying a message costs everybody on its way far more
 * than its bytes do. What a batch says names the reply path of each call, which only its two ends know.
 */
export class ReplyBatches {
  readonly #transport: Transport;
  readonly #waiting = new Map<string, Waiting>();
  /** The one added to last, which most answers go on with. */
  #latest: Waiting | undefined;
  readonly #flushSoon = () => this.flush();

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Characters one message may hold, however they are written down. */
  get #room(): number {
    return Math.min(MOST_BATCH_TEXT, Math.floor(this.#transport.maxMessageBytes / 3) - AROUND);
  }

  /** Takes an answer that is short enough to go with others, and sends it soon; tells whether it is. */
  add(replyTo: string, text: string): boolean {
    const room = this.#room;
    if (text.length > Math.min(SHORT_TEXT, room - AROUND - TOKEN)) return false;
    const dot = replyTo.lastIndexOf(".");
    const token = replyTo.slice(dot + 1);
    // A caller that makes up names of its own gets its answers one by one.
    if (dot < 1 || !isReplyToken(token)) return false;
    const waiting = this.#find(replyTo, dot);
    const size = text.length + token.length + AROUND;
    if (waiting !== undefined && waiting.size + size <= room) {
      waiting.entries ??= [toEntryText(waiting.token, waiting.text)];
      waiting.entries.push(toEntryText(token, text));
      waiting.size += size;
    } else {
      if (waiting !== undefined) this.#send(waiting);
      this.#begin({ inbox: replyTo.slice(0, dot), token, text, entries: undefined, size });
    }
    return true;
  }

  /** Sends what waits, now: whatever is sent by another way afterwards comes after it. */
  flush(): void {
    if (this.#waiting.size === 0) return;
    for (const waiting of this.#waiting.values()) this.#send(waiting);
    this.#waiting.clear();
    this.#latest = undefined;
  }

  #find(replyTo: string, dot: number): Waiting | undefined {
    const latest = this.#latest;
    if (latest !== undefined && latest.inbox.length === dot && replyTo.startsWith(latest.inbox))
      return latest;
    return this.#waiting.size === 0 ? undefined : this.#waiting.get(replyTo.slice(0, dot));
  }

  #begin(waiting: Waiting): void {
    if (this.#waiting.size === 0) soon(this.#flushSoon);
    this.#waiting.set(waiting.inbox, waiting);
    this.#latest = waiting;
  }

  #send({ inbox, token, text, entries }: Waiting): void {
    try {
      if (entries === undefined) this.#transport.publish(`${inbox}.${token}`, toBytes(toMessageText(text)));
      else this.#transport.publish(`${inbox}.${BATCH}`, toBytes(toBatchText(entries)));
    } catch {
      // The transport carries less than a moment ago; the caller runs into its deadline.
    }
  }
}
