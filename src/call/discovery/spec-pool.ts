import type { AccessRule } from "../../core/access/access.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Steps } from "./offer-reader.ts";
import { type ReadNotice, reasonOf } from "./read-operation-notice.ts";
import type { OperationNotice } from "./service-notice.ts";
import { vetNotice } from "./vet-notice.ts";

/** One spec, shared by all services that offer exactly it. */
export interface PooledSpec {
  readonly id: string;
  readonly version: string;
  readonly text: string;
  /** Absent when the spec is unusable. */
  readonly operation: AnyOperation | undefined;
  readonly access: AccessRule | undefined;
  /** Why it is unusable; absent when it is not. */
  readonly reason: string | undefined;
}

/** A spec that can be called. */
export interface UsableSpec extends PooledSpec {
  readonly operation: AnyOperation;
}

interface Slot {
  readonly spec: PooledSpec;
  users: number;
}

/** Tells whether a spec can be called. */
export function isUsable(spec: PooledSpec): spec is UsableSpec {
  return spec.operation !== undefined;
}

/** Specs by their text, vetted once for however many services offer them. */
export class SpecPool {
  readonly #slots = new Map<string, Slot>();
  readonly #limit: number;
  readonly #handlerFor: (notice: OperationNotice) => AnyOperation["handler"];
  readonly #unused = new Set<Slot>();

  constructor(limit: number, handlerFor: (notice: OperationNotice) => AnyOperation["handler"]) {
    this.#limit = limit;
    this.#handlerFor = handlerFor;
  }

  /** Specs in use. */
  get size(): number {
    return this.#slots.size - this.#unused.size;
  }

  /** Makes a spec of what was read, the one that is here already if there is one; nobody has a share in it yet. */
  *vet({ id, notice, text }: ReadNotice): Steps<PooledSpec> {
    const known = this.#slots.get(text);
    if (known !== undefined) return known.spec;
    const { version } = notice;
    try {
      const { operation, access } = yield* vetNotice(notice, this.#handlerFor(notice));
      return { id, version, text, operation, access, reason: undefined };
    } catch (thrown) {
      return { id, version, text, operation: undefined, access: undefined, reason: reasonOf(thrown) };
    }
  }

  /** Takes a share in a spec, or in the equal one that is here already; nothing when it would be one too many. */
  take(spec: PooledSpec): PooledSpec | undefined {
    const known = this.#slots.get(spec.text);
    if ((known === undefined || known.users === 0) && this.size >= this.#limit) return undefined;
    const slot = known ?? { spec, users: 0 };
    if (known === undefined) this.#slots.set(spec.text, slot);
    slot.users++;
    this.#unused.delete(slot);
    return slot.spec;
  }

  /** Gives a share back; a spec that nobody uses is still there until `sweep`, in case it is taken again. */
  release({ text }: PooledSpec): void {
    const slot = this.#slots.get(text);
    if (slot !== undefined && --slot.users === 0) this.#unused.add(slot);
  }

  /** Forgets what nobody uses. */
  sweep(): void {
    for (const { spec } of this.#unused) this.#slots.delete(spec.text);
    this.#unused.clear();
  }
}
