import { monotonicNow } from "../core/execution/cancellation.ts";
import { checkOption, checkOptionsObject } from "../core/options/check-options.ts";

/** When what fails is left alone, and for how long. */
export interface CircuitBreakerOptions {
  /** Failures in a row that open the circuit. @default 50 */
  readonly failures?: number | undefined;
  /** Milliseconds it stays open; twice as long each time the call that is let through then fails too. @default 1_000 */
  readonly openMs?: number | undefined;
  /** @default 10_000 */
  readonly longestMs?: number | undefined;
}

const CIRCUIT_DEFAULTS = { failures: 50, openMs: 1_000, longestMs: 10_000 } as const;

/** The same with nothing left out. */
type CircuitLimits = { readonly [Name in keyof CircuitBreakerOptions]-?: number };

/** Reads how a breaker is meant, one that never opens where it is false; a `TypeError` names what makes no sense. */
export function readCircuitBreaker(given: CircuitBreakerOptions | false | undefined): CircuitLimits {
  if (given === undefined) return CIRCUIT_DEFAULTS;
  if (given === false) return { ...CIRCUIT_DEFAULTS, failures: Number.POSITIVE_INFINITY };
  checkOptionsObject(given, Object.keys(CIRCUIT_DEFAULTS), "circuitBreaker.");
  for (const [name, value] of Object.entries(given)) {
    const isCount = Number.isSafeInteger(value) && (value as number) > 0;
    checkOption(`circuitBreaker.${name}`, value, "a whole number, 1 or more", isCount);
  }
  const { failures, openMs, longestMs } = CIRCUIT_DEFAULTS;
  return {
    failures: given.failures ?? failures,
    openMs: given.openMs ?? openMs,
    longestMs: given.longestMs ?? longestMs,
  };
}

/** Milliseconds that a member which failed is left out, and the longest time it is after failing again and again. */
export const EJECTION_MS = { first: 10_000, longest: 300_000 } as const;

/** Milliseconds that a member is left out which had no room for one more call: it is well. */
export const OVERLOADED_MS = 1_000;

/** Milliseconds that a half open circuit waits for a call that tries it, at least. */
const LEAST_MEMORY_MS = 2_000;

/** Circuits that are remembered at a time, unless told otherwise. */
const MOST_CIRCUITS = 1_000;

interface CircuitsOptions extends CircuitLimits {
  readonly most?: number;
  /** Hears that a circuit was opened. */
  readonly onOpen?: (() => void) | undefined;
}

/** Times are on the monotonic clock. */
interface Circuit {
  /** Failures in a row while it is closed. */
  failures: number;
  /** How often it was opened in a row. */
  opened: number;
  until: number;
  /** How long it was opened for last. */
  openMs: number;
  probedAt: number;
}

/** What a circuit lets pass: everything, one call to try it, or nothing. */
export type CircuitState = "closed" | "half-open" | "open";

/**
 * Circuit breakers by key. What fails as often in a row as allowed is left alone for a while; then one call may try it, and its end
 * closes the circuit or opens it for twice as long. One that no call has tried for as long as it was open is forgotten.
 */
export class Circuits<Key> {
  /** Keys of which a failure is remembered: while there are none, everything passes. A field, for every call looks at it. */
  size = 0;
  readonly #circuits = new Map<Key, Circuit>();
  readonly #options: CircuitsOptions;

  constructor(options: CircuitsOptions) {
    this.#options = options;
  }

  /** Keys whose circuit is open or half open. */
  opened(): Key[] {
    return [...this.#circuits.keys()].filter((key) => this.stateOf(key) !== "closed");
  }

  stateOf(key: Key): CircuitState {
    const circuit = this.#circuits.get(key);
    if (circuit === undefined || circuit.opened === 0) return "closed";
    const now = monotonicNow();
    if (now < circuit.until) return "open";
    if (now < circuit.until + Math.max(circuit.openMs, LEAST_MEMORY_MS)) return "half-open";
    this.forget(key);
    return "closed";
  }

  /** Tells whether a call may be sent; where the circuit is half open, this is the one that tries it. */
  passes(key: Key): boolean {
    const state = this.stateOf(key);
    if (state !== "half-open") return state === "closed";
    const circuit = this.#circuits.get(key) as Circuit;
    const now = monotonicNow();
    // A call that tried it and never came to an end holds up others no longer than this.
    if (now - circuit.probedAt < this.#options.openMs) return false;
    circuit.probedAt = now;
    return true;
  }

  /** Counts a failure; those of calls that were sent before the circuit opened say nothing new. `openMs` opens it for so long, without doubling. */
  failed(key: Key, openMs?: number): void {
    const state = this.stateOf(key);
    if (state === "open") return;
    const circuit = this.#circuits.get(key) ?? this.#add(key);
    circuit.failures++;
    if (state === "closed" && circuit.failures < this.#options.failures) return;
    const { openMs: first, longestMs } = this.#options;
    circuit.openMs = openMs ?? Math.min(first * 2 ** circuit.opened, longestMs);
    if (openMs === undefined || circuit.opened === 0) circuit.opened++;
    circuit.until = monotonicNow() + circuit.openMs;
    circuit.probedAt = Number.NEGATIVE_INFINITY;
    this.#options.onOpen?.();
  }

  /** Closes the circuit, unless it is open: then it is the answer to an earlier call. */
  succeeded(key: Key): void {
    if (this.stateOf(key) !== "open") this.forget(key);
  }

  forget(key: Key): void {
    this.#circuits.delete(key);
    this.size = this.#circuits.size;
  }

  #add(key: Key): Circuit {
    const { most = MOST_CIRCUITS } = this.#options;
    for (const oldest of this.#circuits.keys()) {
      if (this.#circuits.size < most) break;
      this.#circuits.delete(oldest);
    }
    const added = { failures: 0, opened: 0, until: 0, openMs: 0, probedAt: Number.NEGATIVE_INFINITY };
    this.#circuits.set(key, added);
    this.size = this.#circuits.size;
    return added;
  }
}
