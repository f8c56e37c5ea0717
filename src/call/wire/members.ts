import { monotonicNow } from "../../core/execution/cancellation.ts";
import type { LeftOutMember } from "../bus.ts";
import { Circuits, EJECTION_MS, OVERLOADED_MS } from "../circuits.ts";

/** Milliseconds that a member is believed to be there after it said so; members are asked again after half of that. */
const READY_MS = 1_000;

/** Operations with members that are left out, and members of one operation, that are remembered. */
const MOST_OPERATIONS = 1_000;
const MOST_MEMBERS = 1_000;

/** Questions to members whose answers are waited for. */
const MOST_QUESTIONS = 1_000;

/** Stands for the member that took a call and did not answer in time, where nobody knows which one it was. */
const UNKNOWN = "";

/** What is known of those who answer one operation; times are on the monotonic clock. */
interface OperationMembers {
  readonly circuits: Circuits<string>;
  /** Members that could take a call, and when they said so. */
  readonly ready: Map<string, number>;
  askedAt: number;
  turn: number;
}

/** How to send a first try, while members of its operation are left out. */
export interface Choice {
  /** The member to name; the broker chooses where it is absent. */
  readonly member?: string;
  /** Members are to be asked who can take a call, with answers to this last part of a reply path. */
  readonly question?: string;
}

const ANY: Choice = Object.freeze({});

/**
 * Members of groups that failed calls of this side. The broker knows nothing of that and goes on to pick them, so that calls of such
 * an operation name another member for a while. Then one call tries the member again.
 */
export class Members {
  /** Whether no member of any operation is left out. A field, for every call looks at it. */
  isEmpty = true;
  readonly #operations = new Map<string, OperationMembers>();
  /** Operations by question. */
  readonly #questions = new Map<string, string>();
  readonly #ejectionMs: number;
  readonly #onLeaveOut: () => void;

  constructor(ejectionMs: number, onLeaveOut: () => void) {
    this.#ejectionMs = ejectionMs;
    this.#onLeaveOut = onLeaveOut;
  }

  /** Those that are left out now, at most as many of each operation. */
  leftOut(): LeftOutMember[] {
    return [...this.#operations].flatMap(([operationId, { circuits }]) =>
      circuits.opened().map((member) => (member === UNKNOWN ? { operationId } : { operationId, member })),
    );
  }

  /** Leaves a member out: for long where it failed, shortly where it has no room. */
  leaveOut(operationId: string, member: string, isFull = false): void {
    const members = this.#operations.get(operationId) ?? this.#add(operationId);
    members.ready.delete(member);
    members.circuits.failed(member, isFull ? OVERLOADED_MS : undefined);
  }

  /** Leaves out members that do not say that they could take a call: one of them did not answer in time. */
  suspect(operationId: string): void {
    this.leaveOut(operationId, UNKNOWN);
  }

  /** Takes notice of an answer of a member, or that it gave none in time, which counts where it was left out: callers choose their times. */
  took(operationId: string, member: string, isInTime: boolean): void {
    const circuits = this.#operations.get(operationId)?.circuits;
    if (circuits === undefined) return;
    if (isInTime) circuits.succeeded(member);
    else if (circuits.stateOf(member) === "half-open") this.leaveOut(operationId, member);
  }

  /** Takes notice of a member that could take a call; tells whether it may be given one. */
  hear(operationId: string, member: string): boolean {
    const members = this.#current(operationId);
    if (members === undefined) return true;
    const state = members.circuits.stateOf(member);
    if (state === "open") return false;
    if (members.ready.size >= MOST_MEMBERS) members.ready.clear();
    members.ready.set(member, monotonicNow());
    return state === "closed";
  }

  /** The operation that members were asked about with this question. */
  askedAbout(question: string): string | undefined {
    return this.#questions.get(question);
  }

  /** Tells whether any member may be asked for this operation. */
  areAllWell(operationId: string): boolean {
    return this.#current(operationId) === undefined;
  }

  /** Says how to send a first try: to a member in turn that said it could take one, while others are left out. */
  choose(operationId: string): Choice {
    if (this.isEmpty) return ANY;
    const members = this.#current(operationId);
    if (members === undefined) return ANY;
    const now = monotonicNow();
    for (const [member, heardAt] of members.ready) {
      if (now - heardAt > READY_MS) members.ready.delete(member);
    }
    const question = now - members.askedAt < READY_MS / 2 ? undefined : this.#ask(operationId, members, now);
    const member = this.#next(members);
    return { ...(member !== undefined && { member }), ...(question !== undefined && { question }) };
  }

  /** The next one in turn that may have a call; one that was left out is tried with one alone. */
  #next(members: OperationMembers): string | undefined {
    const names = [...members.ready.keys()];
    const first = members.turn++;
    const inTurn = names.map((_, at) => names[(first + at) % names.length] as string);
    return inTurn.find((member) => members.circuits.passes(member));
  }

  #ask(operationId: string, members: OperationMembers, now: number): string {
    members.askedAt = now;
    for (const oldest of this.#questions.keys()) {
      if (this.#questions.size < MOST_QUESTIONS) break;
      this.#questions.delete(oldest);
    }
    const question = crypto.randomUUID();
    this.#questions.set(question, operationId);
    return question;
  }

  /** What is known of an operation while some of its members are left out. */
  #current(operationId: string): OperationMembers | undefined {
    const members = this.#operations.get(operationId);
    if (members === undefined) return undefined;
    const { circuits } = members;
    // Looking at them forgets those of which nothing was heard for long.
    const opened = circuits.opened();
    if (circuits.size === 0) {
      this.#operations.delete(operationId);
      this.isEmpty = this.#operations.size === 0;
    }
    // Nobody can be tried by name of whom it is not known which one it is.
    const isAlone = opened.length === 1 && opened[0] === UNKNOWN && circuits.stateOf(UNKNOWN) === "half-open";
    return opened.length === 0 || isAlone ? undefined : members;
  }

  #add(operationId: string): OperationMembers {
    const circuits = new Circuits<string>({
      failures: 1,
      openMs: this.#ejectionMs,
      longestMs: Math.max(this.#ejectionMs, EJECTION_MS.longest),
      most: MOST_MEMBERS,
      onOpen: this.#onLeaveOut,
    });
    const added = { circuits, ready: new Map(), askedAt: Number.NEGATIVE_INFINITY, turn: 0 };
    for (const oldest of this.#operations.keys()) {
      if (this.#operations.size < MOST_OPERATIONS) break;
      this.#operations.delete(oldest);
    }
    this.#operations.set(operationId, added);
    this.isEmpty = false;
    return added;
  }
}
