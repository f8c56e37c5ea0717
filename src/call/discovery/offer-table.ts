import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { UsableSpec } from "./service-offers.ts";

/** One service's offer of an operation. */
export interface OperationOffer {
  readonly serviceId: string;
  readonly version: string;
}

/** Services that offer the same id and do not mean the same by it. */
export interface OperationConflict {
  readonly operationId: string;
  /** Whose spec is taken: the highest version, of those the smallest service id. */
  readonly chosen: OperationOffer;
  /** Those who offer another spec, by service id. */
  readonly others: readonly OperationOffer[];
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

function toOffer({ serviceId, spec }: Candidate): OperationOffer {
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

/** Orders two semantic versions by precedence: below 0 when the first is older, 0 when only their build differs. */
export function compareVersions(a: string, b: string): number {
  const [first, second] = [parse(a), parse(b)];
  const release = compareLists(first.release, second.release);
  if (release !== 0) return release;
  // A version without a pre-release comes after all of its pre-releases.
  if (first.pre.length === 0 || second.pre.length === 0) return second.pre.length - first.pre.length;
  return compareLists(first.pre, second.pre);
}

interface Version {
  readonly release: readonly string[];
  readonly pre: readonly string[];
}

function parse(version: string): Version {
  const [precedence = ""] = version.split("+", 1);
  const dash = precedence.indexOf("-");
  if (dash < 0) return { release: precedence.split("."), pre: [] };
  return { release: precedence.slice(0, dash).split("."), pre: precedence.slice(dash + 1).split(".") };
}

function compareLists(a: readonly string[], b: readonly string[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = comparePart(a[i] ?? "", b[i] ?? "");
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Numbers by value and before words, words by their characters. */
function comparePart(a: string, b: string): number {
  if (a === b) return 0;
  const [isNumberA, isNumberB] = [isNumber(a), isNumber(b)];
  if (isNumberA !== isNumberB) return isNumberA ? -1 : 1;
  // No leading zeros: the longer number is the larger one, however large it is.
  if (isNumberA && a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

function isNumber(part: string): boolean {
  return /^\d+$/.test(part);
}
