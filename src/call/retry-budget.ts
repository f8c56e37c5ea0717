import { monotonicNow } from "../core/execution/cancellation.ts";
import { checkOption, checkOptionsObject } from "../core/options/check-options.ts";

/** How many retries one asking side sends, so that they do not bring down what is overloaded already. */
export interface RetryBudgetOptions {
  /** Retries for each call that may be retried. @default 0.2 */
  readonly ratio?: number | undefined;
  /** Retries a second besides, for those who call rarely. @default 10 */
  readonly perSecond?: number | undefined;
  /** Retries that can be saved up; a new budget has all of them. @default 1_000 */
  readonly burst?: number | undefined;
}

const BUDGET_DEFAULTS = { ratio: 0.2, perSecond: 10, burst: 1_000 } as const;

/** A bucket of retries: calls fill it, and so does time. */
export class RetryBudget {
  readonly #ratio: number;
  readonly #perMs: number;
  readonly #burst: number;
  #left: number;
  #filledAt = monotonicNow();

  constructor(options: RetryBudgetOptions = {}) {
    const {
      ratio = BUDGET_DEFAULTS.ratio,
      perSecond = BUDGET_DEFAULTS.perSecond,
      burst = BUDGET_DEFAULTS.burst,
    } = options;
    this.#ratio = ratio;
    this.#perMs = perSecond / 1_000;
    this.#burst = burst;
    this.#left = burst;
  }

  /** A call begins that may be retried. */
  earn(): void {
    this.#left = Math.min(this.#burst, this.#left + this.#ratio);
  }

  /** Takes one retry; false where none is left. */
  spend(): boolean {
    const now = monotonicNow();
    this.#left = Math.min(this.#burst, this.#left + (now - this.#filledAt) * this.#perMs);
    this.#filledAt = now;
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}

/** Throws a `TypeError` unless the budget is left out, false or can work. */
export function checkRetryBudget(budget: RetryBudgetOptions | false | undefined): void {
  if (budget === undefined || budget === false) return;
  checkOptionsObject(budget, Object.keys(BUDGET_DEFAULTS), "retryBudget.");
  for (const [name, value] of Object.entries(budget)) {
    const isCount = value === undefined || (Number.isFinite(value) && (value as number) >= 0);
    checkOption(`retryBudget.${name}`, value, "a number, 0 or more", isCount);
  }
}
