import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { compareVersions } from "./compare-versions.ts";
import type { UsableSpec } from "./spec-pool.ts";

/** One service's offer of an operation. */
export interface Offer {
  readonly serviceId: string;
  readonly version: string;
}

/** Services that offer the same id and do not mean the same by it. */
export interface OperationConflict {
  readonly operationId: string;
  /** Whose spec is taken: the highest version, of those the smallest service id. */
  readonly chosen: Offer;
  /** Those who offer another spec, by service id. */
  readonly others: readonly Offer[];
}

interface Candidate {
  readonly serviceId: string;
  readonly spec: UsableSpec;
}

interface Candidates {
  readonly byService: Map<string, Candidate>;
  chosen: Candidate;
}

/** Who offers which operation, and whose spec of it counts. */
export class OfferTable {
  readonly #byId = new Map<string, Candidates>();
  #sorted: readonly UsableSpec[] | undefined;
  #operations: readonly AnyOperation[] | undefined;

  /** The spec that counts for an id. */
  get(id: string): UsableSpec | undefined {
    return this.#byId.get(id)?.chosen.spec;
  }

  /** Adds an offer, in place of an earlier one of that service. */
  put(serviceId: string, spec: UsableSpec): void {
    const candidate: Candidate = { serviceId, spec };
    const candidates = this.#byId.get(spec.id);
    if (candidates === undefined) {
      this.#byId.set(spec.id, { byService: new Map([[serviceId, candidate]]), chosen: candidate });
      this.#forget();
      return;
    }
    candidates.byService.set(serviceId, candidate);
    if (candidates.chosen.serviceId === serviceId)
      this.#choose(candidates, best(candidates.byService.values()));
    else if (isBefore(candidate, candidates.chosen)) this.#choose(candidates, candidate);
  }

  /** Takes an offer back. */
  delete(serviceId: string, id: string): void {
    const candidates = this.#byId.get(id);
    if (candidates === undefined || !candidates.byService.delete(serviceId)) return;
    if (candidates.byService.size === 0) {
      this.#byId.delete(id);
      this.#forget();
    } else if (candidates.chosen.serviceId === serviceId) {
      this.#choose(candidates, best(candidates.byService.values()));
    }
  }

  /** The specs that count, by id in code unit order. */
  sorted(): readonly UsableSpec[] {
    this.#sorted ??= [...this.#byId.values()]
      .map(({ chosen }) => chosen.spec)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    return this.#sorted;
  }

  /** Their operations, in the same order. */
  operations(): readonly AnyOperation[] {
    this.#operations ??= Object.freeze(this.sorted().map(({ operation }) => operation));
    return this.#operations;
  }

  /** Every id that means different things to those who offer it, by id. */
  conflicts(): readonly OperationConflict[] {
    return this.sorted().flatMap(({ id }) => this.#conflictsOf(id));
  }

  #conflictsOf(id: string): readonly OperationConflict[] {
    const candidates = this.#byId.get(id);
    if (candidates === undefined || candidates.byService.size === 1) return [];
    const { chosen, byService } = candidates;
    const others = [...byService.values()].filter(({ spec }) => spec !== chosen.spec);
    if (others.length === 0) return [];
    others.sort((a, b) => (a.serviceId < b.serviceId ? -1 : 1));
    return [{ operationId: id, chosen: toOffer(chosen), others: others.map(toOffer) }];
  }

  #choose(candidates: Candidates, chosen: Candidate): void {
    // A replica that takes over changes nothing for anybody.
    if (candidates.chosen.spec !== chosen.spec) this.#forget();
    candidates.chosen = chosen;
  }

  #forget(): void {
    this.#sorted = undefined;
    this.#operations = undefined;
  }
}

function toOffer({ serviceId, spec }: Candidate): Offer {
  return { serviceId, version: spec.version };
}

function best(candidates: Iterable<Candidate>): Candidate {
  const [first, ...rest] = candidates;
  if (first === undefined) throw new RangeError("There is nothing to choose from.");
  return rest.reduce((chosen, candidate) => (isBefore(candidate, chosen) ? candidate : chosen), first);
}

function isBefore(a: Candidate, b: Candidate): boolean {
  const order = a.spec === b.spec ? 0 : compareVersions(a.spec.version, b.spec.version);
  return order === 0 ? a.serviceId < b.serviceId : order > 0;
}
