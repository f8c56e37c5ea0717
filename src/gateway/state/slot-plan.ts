import { isPlainObject, isStringList, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { StateError } from "./state-store.ts";

/** Who holds the slots of a limit, and which replicas wait for more: the first of them is served first. */
export interface SlotRecord {
  readonly held: Readonly<Record<string, number>>;
  readonly queue: readonly string[];
}

/** What a replica makes of its slots at the moment. */
export interface SlotNeed {
  readonly replica: string;
  /** Slots of the limit, of all replicas together. */
  readonly count: number;
  /** Slots that cannot be given back: calls that run, or starts that still count. */
  readonly used: number;
  /** Calls that wait for one. */
  readonly waiting: number;
  /** Slots that were taken just now, and are kept until a call has used them. */
  readonly granted: number;
  /** Whether slots that nobody needs are given back although nobody asks for them: all but so many. */
  readonly shrinkTo?: number | undefined;
}

/** What a replica does about it. */
export interface SlotPlan {
  /** As it should be; the same one where nothing changes. */
  readonly record: SlotRecord;
  readonly held: number;
  readonly taken: number;
  /** No more than so many are used, since others who wait have less than their share. `Infinity` where none have. */
  readonly cap: number;
  /** Whether what others do may help: this one waits for more, or others wait. */
  readonly isContended: boolean;
}

/** Of all slots, the part that is taken at a time where nobody else waits for one. */
const BLOCKS = 8;

/** The record of a limit that nobody has used. */
export const NO_SLOTS: SlotRecord = { held: {}, queue: [] };

/**
 * Says what a replica takes and gives back. A share is what each of those who hold or wait would have; who waits and has less than that, or
 * nothing, is hungry. Where others are hungry, a replica keeps its share and what it uses; where there are more replicas than slots, a slot
 * goes round. The sum of what is held exceeds the count only where slots are in use that the record did not know of.
 */
export function planSlots(record: SlotRecord, need: SlotNeed): SlotPlan {
  const { replica, count, used, waiting, granted } = need;
  const before = record.held[replica] ?? 0;
  const others = Object.entries(record.held).filter(([name, held]) => name !== replica && held > 0);
  const heldOf = new Map(others);
  const queue = record.queue.filter((name) => name !== replica);
  const known = Math.max(before, used);
  const desired = Math.max(Math.min(used + waiting, count), used);
  const isIn = known > 0 || desired > 0;
  const share = Math.floor(count / (new Set([...heldOf.keys(), ...queue]).size + (isIn ? 1 : 0) || 1));
  const enough = Math.max(share, 1);
  const hungry = queue.filter((name) => (heldOf.get(name) ?? 0) < enough);
  const cap = hungry.length > 0 ? share : Number.POSITIVE_INFINITY;
  const wanted = hungry.length > 0 ? Math.min(desired, share) : desired;
  const idle = queue.length > 0 ? 0 : (need.shrinkTo ?? known);
  const kept = Math.min(known, Math.max(used + granted, wanted, idle));
  const free = count - kept - others.reduce((sum, [, held]) => sum + held, 0);
  const isQueued = record.queue.includes(replica);
  const ahead = isQueued
    ? hungry.filter((name) => record.queue.indexOf(name) < record.queue.indexOf(replica))
    : hungry;
  const reserved = ahead.reduce((sum, name) => sum + enough - (heldOf.get(name) ?? 0), 0);
  const most = hungry.length > 0 ? enough - kept : Math.ceil(free / (queue.length + 1));
  const room = Math.max(Math.min(most, desired - kept, free - reserved), 0);
  const block = room > 0 && queue.length === 0 ? Math.ceil(count / BLOCKS) : 0;
  const taken = Math.min(room + block, Math.max(free, 0));
  const held = kept + taken;
  const isShort = desired > held;
  const now = {
    held: { ...Object.fromEntries(others), ...(held > 0 && { [replica]: held }) },
    queue: !isShort ? queue : isQueued && taken === 0 ? record.queue : [...queue, replica],
  };
  const isSame = held === before && now.queue.join() === record.queue.join();
  return {
    record: isSame ? record : now,
    held,
    taken,
    cap,
    isContended: isShort || queue.length > 0,
  };
}

/** Takes a replica out that is gone; its slots too, where they do not count any more. */
export function withoutReplica(record: SlotRecord, replica: string, isOver: boolean): SlotRecord {
  const held = Object.entries(record.held).filter(([name]) => !isOver || name !== replica);
  return { held: Object.fromEntries(held), queue: record.queue.filter((name) => name !== replica) };
}

/** Every replica but one that a record names. */
export function othersOf({ held, queue }: SlotRecord, replica: string): readonly string[] {
  return [...new Set([...Object.keys(held), ...queue])].filter((name) => name !== replica);
}

/** Writes a record for the store. */
export function encodeSlots(record: SlotRecord): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(record));
}

/** Reads what another replica wrote. */
export function decodeSlots(value: Uint8Array): SlotRecord {
  const found = parseJsonTextOrNone(new TextDecoder().decode(value));
  if (isPlainObject(found)) {
    const { held, queue } = found;
    const isHeld = isPlainObject(held) && Object.values(held).every((count) => Number.isSafeInteger(count));
    const isQueue = isStringList(queue);
    if (isHeld && isQueue) return { held: held as Record<string, number>, queue };
  }
  throw new StateError("damaged", "The record of a limit in the shared state cannot be read.");
}
