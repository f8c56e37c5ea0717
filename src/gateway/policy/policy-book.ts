import { matchesPattern } from "../glob.ts";
import { checkPolicy } from "./check-policy.ts";
import type { Rate } from "./gates.ts";
import type { OperationPolicy, SourcePolicy } from "./policy.ts";
import type { GateRules } from "./turns.ts";

/** Which policies there are, and for what. */
export interface PolicyRules {
  /** By the name of the source. */
  readonly sources: ReadonlyMap<string, SourcePolicy | undefined>;
  /** The name of the source an operation belongs to; nothing where no policy of a source holds for it. */
  sourceOf(operationId: string): string | undefined;
  /** By pattern of operation id. @default none */
  readonly policies?: Readonly<Record<string, OperationPolicy>> | undefined;
}

/** The policy of one operation, put together from all that hold for it. */
export interface AppliedPolicy extends OperationPolicy {
  /** The rule whose rate it is. */
  readonly rateOwner?: string;
  /** The rule whose concurrency it is. */
  readonly placesOwner?: string;
}

const FIELDS = [
  ...(["enabled", "scopes", "timeoutMs", "retries", "rate", "concurrency"] as const),
  ...(["cacheMs", "singleFlight", "resultBudget", "render"] as const),
];
/** A name that no operation has: only wildcards match it. */
export const ANY_NAME = "\u{10FFFF}";
const MOST_KEPT = 100_000;

/**
 * Puts policies together: that of the source, then every pattern that fits the id, in the order of the config; later ones win field by
 * field. A rate or a concurrency is counted by the rule that says it: over all operations of a source, or all that a pattern fits and
 * for which no later rule says another.
 */
export class PolicyBook {
  readonly rules: PolicyRules;
  readonly #patterns: readonly (readonly [pattern: string, policy: OperationPolicy])[];
  readonly #known = new Map<string, AppliedPolicy>();

  constructor(rules: PolicyRules) {
    this.rules = rules;
    this.#patterns = Object.entries(rules.policies ?? {});
    for (const [name, policy] of rules.sources) checkPolicy(`The policy of "${name}"`, policy);
    for (const [pattern, policy] of this.#patterns) checkPolicy(`policies["${pattern}"]`, policy);
  }

  /** The policy of an operation. */
  of(operationId: string): AppliedPolicy {
    const known = this.#known.get(operationId);
    if (known !== undefined) return known;
    const applied = this.merge(operationId, this.rules.sourceOf(operationId));
    if (this.#known.size >= MOST_KEPT) this.#known.clear();
    this.#known.set(operationId, applied);
    return applied;
  }

  /** The same for an operation of this source. */
  merge(operationId: string, source: string | undefined): AppliedPolicy {
    const applied: Record<string, unknown> = {};
    if (source !== undefined) add(applied, this.rules.sources.get(source), sourceOwner(source));
    for (const [pattern, policy] of this.#patterns) {
      if (matchesPattern(pattern, operationId)) add(applied, policy, patternOwner(pattern));
    }
    return applied;
  }

  /** What holds for a source as a whole: its own policy, and patterns that leave none of its operations out. */
  ofSource(source: string): AppliedPolicy {
    return this.merge(`${source}.${ANY_NAME}`, source);
  }

  /** Forgets what it knows of an operation, whose source may be another one now. */
  forget(operationId: string): void {
    this.#known.delete(operationId);
  }

  /** Every rate and concurrency, by the rule that says it. */
  gates(): GateRules {
    const rates = new Map<string, Rate>();
    const places = new Map<string, number>();
    const take = (owner: string, policy: OperationPolicy | undefined): void => {
      if (policy?.rate !== undefined) rates.set(owner, policy.rate);
      if (policy?.concurrency !== undefined) places.set(owner, policy.concurrency);
    };
    for (const [name, policy] of this.rules.sources) take(sourceOwner(name), policy);
    for (const [pattern, policy] of this.#patterns) take(patternOwner(pattern), policy);
    return { rates, places };
  }
}

function add(applied: Record<string, unknown>, policy: OperationPolicy | undefined, owner: string): void {
  if (policy === undefined) return;
  for (const field of FIELDS) if (policy[field] !== undefined) applied[field] = policy[field];
  if (policy.rate !== undefined) applied["rateOwner"] = owner;
  if (policy.concurrency !== undefined) applied["placesOwner"] = owner;
}

function sourceOwner(name: string): string {
  return `source ${name}`;
}

function patternOwner(pattern: string): string {
  return `pattern ${pattern}`;
}
