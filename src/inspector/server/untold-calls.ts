import type { CallLog } from "./call-log.ts";
import { KEPT_CALLS, MOST_WAITING_ROWS, ROWS_PER_EVENT } from "./inspector-limits.ts";
import { isRunning, type LoggedCall } from "./logged-call.ts";
import { maySee, type Viewer } from "./viewer.ts";

type Calls = Map<number, LoggedCall>;

/**
 * Calls that a page was not told yet, within bounds. What is left out for a page that does not keep up are calls it never heard of; one
 * that it shows as running is always told to have ended.
 */
export class UntoldCalls {
  readonly #log: CallLog;
  readonly #viewer: Viewer;
  /** What is still to be told of what was remembered at the start, latest first. */
  readonly #remembered: number[];
  readonly #lastRemembered: number;
  /** Calls that the page shows as running, as many as it can hold. */
  readonly #shown = new Set<number>();
  /** Those of them that changed. */
  readonly #owed: Calls = new Map();
  /** Calls that the page never heard of and that run, or have ended. */
  readonly #begun: Calls = new Map();
  readonly #ended: Calls = new Map();
  /** Whether a running call was left out: it is looked for again once there is room. */
  #hasMissed = false;
  #dropped = 0;

  constructor(log: CallLog, viewer: Viewer) {
    this.#log = log;
    this.#viewer = viewer;
    this.#lastRemembered = log.lastSeq;
    this.#remembered = Array.from(log.calls())
      .filter(({ caller }) => maySee(viewer, caller))
      .map(({ seq }) => seq)
      .reverse();
  }

  /** Calls that the page will not hear of. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes a call that changed. */
  take(call: LoggedCall): void {
    const { seq, caller } = call;
    if (!maySee(this.#viewer, caller)) return;
    if (this.#shown.has(seq)) this.#owed.set(seq, call);
    // It is told with what is remembered, in whatever state it is by then, or was counted when it was not there any more.
    else if (seq <= this.#lastRemembered) return;
    else if (isRunning(call)) this.#takeBegun(call);
    else this.#takeEnded(call);
  }

  /** Gives the next calls to tell, in the order they began; none when all is told. */
  next(): readonly LoggedCall[] {
    const calls = this.#nextOwed() ?? this.#nextRemembered() ?? this.#nextNew() ?? [];
    for (const call of calls) this.#show(call);
    return calls;
  }

  #takeBegun(call: LoggedCall): void {
    if (this.#begun.has(call.seq)) return;
    if (this.#hasRoom()) this.#begun.set(call.seq, call);
    else this.#hasMissed = true;
  }

  /** An end says all that a beginning does, so it may take the place of one. */
  #takeEnded(call: LoggedCall): void {
    this.#begun.delete(call.seq);
    if (!this.#hasRoom()) {
      const [replaced] = this.#begun.keys();
      if (replaced === undefined) {
        this.#dropped += 1;
        return;
      }
      this.#begun.delete(replaced);
      this.#hasMissed = true;
    }
    this.#ended.set(call.seq, call);
  }

  #hasRoom(): boolean {
    return this.#begun.size + this.#ended.size < MOST_WAITING_ROWS;
  }

  #nextOwed(): readonly LoggedCall[] | undefined {
    return this.#owed.size === 0 ? undefined : inOrder(takeFrom(this.#owed, ROWS_PER_EVENT));
  }

  #nextRemembered(): readonly LoggedCall[] | undefined {
    const calls: LoggedCall[] = [];
    while (calls.length < ROWS_PER_EVENT) {
      const seq = this.#remembered.pop();
      if (seq === undefined) break;
      const call = this.#log.get(seq);
      if (call === undefined) this.#dropped += 1;
      else calls.push(call);
    }
    return calls.length === 0 ? undefined : calls;
  }

  #nextNew(): readonly LoggedCall[] | undefined {
    if (this.#ended.size + this.#begun.size === 0) this.#findMissed();
    const ended = takeFrom(this.#ended, ROWS_PER_EVENT);
    const calls = [...ended, ...takeFrom(this.#begun, ROWS_PER_EVENT - ended.length)];
    return calls.length === 0 ? undefined : inOrder(calls);
  }

  #findMissed(): void {
    if (!this.#hasMissed) return;
    this.#hasMissed = false;
    for (const call of this.#log.calls()) if (isRunning(call)) this.take(call);
    // Those that are shown already did not change.
    this.#owed.clear();
  }

  /** The page lets go of its oldest calls too. */
  #show(call: LoggedCall): void {
    const { seq } = call;
    if (!isRunning(call)) {
      this.#shown.delete(seq);
      return;
    }
    this.#shown.add(seq);
    if (this.#shown.size <= KEPT_CALLS) return;
    const [oldest] = this.#shown;
    if (oldest !== undefined) this.#shown.delete(oldest);
  }
}

function takeFrom(calls: Calls, most: number): LoggedCall[] {
  const taken: LoggedCall[] = [];
  for (const [seq, call] of calls) {
    if (taken.length >= most) break;
    calls.delete(seq);
    taken.push(call);
  }
  return taken;
}

function inOrder(calls: LoggedCall[]): readonly LoggedCall[] {
  return calls.sort((a, b) => a.seq - b.seq);
}
