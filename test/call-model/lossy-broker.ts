import { MemoryBroker, type TransportMessage } from "../../src/call/index.ts";
import type { Mischief, Waiting } from "./hostile-bus.ts";

type End = Waiting["to"];

/** What is done to messages for one end. */
interface Disturbance {
  isHeld: boolean;
  readonly held: TransportMessage[];
  /** What happens to the next message. */
  next: "drop" | "duplicate" | undefined;
  /** Messages that were delivered, to be sent once more. */
  readonly past: TransportMessage[];
}

const REMEMBERED = 50;

/** A broker that holds back, drops, repeats and reorders messages when it is told to. */
export class LossyBroker extends MemoryBroker {
  readonly #ends: Record<End, Disturbance> = { asker: undisturbed(), answerer: undisturbed() };
  /** Everything that asked for an answer, newest first. */
  readonly requests: TransportMessage[] = [];

  override publish(message: TransportMessage): void {
    const end = this.#ends[endOf(message)];
    const { next } = end;
    if (message.replyTo !== undefined) this.requests.unshift(message);
    end.next = undefined;
    if (next === "drop") return;
    for (const copy of next === "duplicate" ? [message, message] : [message]) {
      if (end.isHeld) end.held.push({ ...copy, data: copy.data.slice() });
      else this.#pass(copy, end);
    }
  }

  disturb(mischief: Mischief, to: End, pick: number): void {
    const end = this.#ends[to];
    const [first] = end.held;
    if (mischief === "hold") end.isHeld = true;
    else if (mischief === "release") this.#release(end);
    else if (mischief === "swap") end.held.reverse();
    else if (mischief === "late") {
      const again = end.past[pick % Math.max(1, end.past.length)];
      if (again !== undefined) super.publish(again);
    } else if (first === undefined) end.next = mischief;
    else if (mischief === "drop") end.held.shift();
    else end.held.unshift(first);
  }

  /** Whoever took what came before has left, or nobody did: nobody else must be sent it again. */
  forget(): void {
    this.#ends.answerer.past.length = 0;
  }

  #release(end: Disturbance): void {
    end.isHeld = false;
    for (const message of end.held.splice(0)) this.#pass(message, end);
  }

  #pass(message: TransportMessage, end: Disturbance): void {
    end.past.unshift(message);
    end.past.length = Math.min(end.past.length, REMEMBERED);
    super.publish(message);
  }
}

function undisturbed(): Disturbance {
  return { isHeld: false, held: [], next: undefined, past: [] };
}

function endOf({ subject }: TransportMessage): End {
  return subject.startsWith("_inbox.") ? "asker" : "answerer";
}
