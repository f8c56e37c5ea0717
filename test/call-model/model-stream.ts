import type { Outcome } from "./model-call.ts";

/** One subscription as its reader has to see it. */
export class ModelStream {
  readonly map: number;
  readonly deadline: number;
  readonly signal: number | undefined;
  readonly window: number;
  phase: "not started" | "open" | "over" = "not started";
  requestId: string | undefined;
  ask = -1;
  /** What each step that was asked for comes to; nothing yet for those that wait. */
  readonly reads: (Outcome | undefined)[] = [];
  readonly arrived: Outcome[] = [];
  /** The place of the yield that comes next. */
  next = 0;
  /** Yields granted and not yet arrived. */
  granted: number;
  progress = 0;
  #end: Outcome = "done";

  constructor(map: number, deadline: number, signal: number | undefined, window: number) {
    this.map = map;
    this.deadline = deadline;
    this.signal = signal;
    this.window = window;
    this.granted = window;
  }

  read(): void {
    const known = this.arrived.shift() ?? (this.phase === "over" ? this.#lastWord() : undefined);
    this.reads.push(known);
  }

  /** False when it was not asked for. */
  arrive(outcome: Outcome): boolean {
    if (this.granted === 0) return false;
    this.next++;
    this.granted--;
    const waiting = this.reads.indexOf(undefined);
    if (waiting < 0) this.arrived.push(outcome);
    else this.reads[waiting] = outcome;
    return true;
  }

  /** False for more than the window has room for. */
  grant(credit: number): boolean {
    this.granted += credit;
    return this.phase === "open" && this.granted + this.arrived.length <= this.window;
  }

  /** The first who waits hears how it ended, the others that it is over. */
  finish(end: Outcome): void {
    this.phase = "over";
    this.#end = end;
    for (const [at, read] of this.reads.entries()) {
      if (read === undefined) this.reads[at] = this.#lastWord();
    }
  }

  leave(): void {
    this.phase = "over";
    this.arrived.length = 0;
    this.#end = "done";
  }

  #lastWord(): Outcome {
    const end = this.#end;
    this.#end = "done";
    return end;
  }
}
