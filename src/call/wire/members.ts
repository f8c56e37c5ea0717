import { monotonicNow } from "../../core/execution/deadline.ts";

/** Milliseconds that a member which failed is left out. */
const LEFT_OUT_MS = 10_000;

/** Milliseconds that a member is believed to be there after it said so. */
const READY_MS = 1_000;

/** Operations with members that are left out, and members of one operation, that are remembered. */
const MOST_OPERATIONS = 1_000;
const MOST_MEMBERS = 1_000;

/** What is known of those who answer one operation; times are on the monotonic clock. */
interface OperationMembers {
  /** Members that failed, and until when they are left out. */
  readonly leftOut: Map<string, number>;
  /** Members that could take a call, and when they said so. */
  readonly ready: Map<string, number>;
  askedAt: number;
  turn: number;
}

/**
 * Members of groups that failed calls of this side. The broker knows nothing of that and goes on to pick them, so that calls of such
 * an operation name another member for a while.
 */
export class Members {
  readonly #operations = new Map<string, OperationMembers>();

  /** Leaves a member out for a while. */
  leaveOut(operationId: string, member: string): void {
    const members = this.#operations.get(operationId) ?? this.#add(operationId);
    if (members.leftOut.size >= MOST_MEMBERS) members.leftOut.clear();
    members.leftOut.set(member, monotonicNow() + LEFT_OUT_MS);
    members.ready.delete(member);
  }

  /** Takes notice of a member that could take a call; tells whether it may be given one. */
  hear(operationId: string, member: string): boolean {
    const members = this.#current(operationId);
    if (members === undefined) return true;
    if (members.leftOut.has(member)) return false;
    if (members.ready.size >= MOST_MEMBERS) members.ready.clear();
    members.ready.set(member, monotonicNow());
    return true;
  }

  /**
   * Names the member to ask, in turn, while others are left out: "any" where the broker may choose, "unknown" where it has to, for
   * members are still to be asked who can take a call.
   */
  choose(operationId: string): { readonly member: string } | "any" | "unknown" {
    if (this.#operations.size === 0) return "any";
    const members = this.#current(operationId);
    if (members === undefined) return "any";
    const now = monotonicNow();
    for (const [member, heardAt] of members.ready) {
      if (now - heardAt > READY_MS) members.ready.delete(member);
    }
    const ready = [...members.ready.keys()];
    const member = ready[members.turn++ % ready.length];
    if (member !== undefined) return { member };
    if (now - members.askedAt < READY_MS) return "any";
    members.askedAt = now;
    return "unknown";
  }

  /** What is known of an operation while some of its members are left out. */
  #current(operationId: string): OperationMembers | undefined {
    const members = this.#operations.get(operationId);
    if (members === undefined) return undefined;
    const now = monotonicNow();
    for (const [member, until] of members.leftOut) if (until <= now) members.leftOut.delete(member);
    if (members.leftOut.size > 0) return members;
    this.#operations.delete(operationId);
    return undefined;
  }

  #add(operationId: string): OperationMembers {
    const added = { leftOut: new Map(), ready: new Map(), askedAt: Number.NEGATIVE_INFINITY, turn: 0 };
    for (const oldest of this.#operations.keys()) {
      if (this.#operations.size < MOST_OPERATIONS) break;
      this.#operations.delete(oldest);
    }
    this.#operations.set(operationId, added);
    return added;
  }
}
