import {
  ERROR_CODES,
  type ErrorCategory,
  isErrorCode,
  type TieredErrorCode,
} from "../core/errors/error-codes.ts";
import type { ResultError } from "../core/result/tool-result.ts";
import { TIERED_ERROR_CODES } from "./tiered-envelope/tiered-envelope.ts";

/** Whether to try again: with the same input, or with a better one; absent where nobody can tell. */
export interface RetryAdvice {
  /** The same input may work later. */
  readonly retryable?: boolean;
  /** The caller can fix the input. */
  readonly correctable?: boolean;
}

const LATER: RetryAdvice = { retryable: true, correctable: false };
const FIXED: RetryAdvice = { retryable: false, correctable: true };
const NEVER: RetryAdvice = { retryable: false, correctable: false };

/** By category of the tool envelope and code of the tiered one; the two sets of words do not clash. */
const ADVICE: ReadonlyMap<string, RetryAdvice> = new Map([
  ["validation", FIXED],
  ["not_found", FIXED],
  ["invalid_argument", FIXED],
  ["invalid_path", FIXED],
  ["too_large", FIXED],
  ["timeout", LATER],
  ["model", LATER],
  ["network", LATER],
  ["rate_limit", LATER],
  ["resource_exhausted", LATER],
  ["dependency_unavailable", LATER],
  ["execution", NEVER],
  ["internal", NEVER],
  ["authorization", NEVER],
  ["forbidden", NEVER],
  ["not_implemented", NEVER],
  ["upgrade_required", NEVER],
  ["internal_error", NEVER],
]);

/** Works out from an error's code, category and `recoverable` whether another try is worth it. */
export function adviseRetry({ code, category, recoverable }: ResultError): RetryAdvice {
  if (recoverable === false) return NEVER;
  const known = isErrorCode(code) ? traits(code) : (ADVICE.get(code ?? "") ?? ADVICE.get(category ?? ""));
  if (recoverable === undefined) return known ?? {};
  // Said to be recoverable, and nothing says that the input is at fault: trying again is all that is left.
  return known === undefined || known === NEVER ? LATER : known;
}

function traits(code: keyof typeof ERROR_CODES): RetryAdvice {
  const { retryable, correctable } = ERROR_CODES[code];
  return { retryable, correctable };
}

/** The tiered code for each category of the tool envelope. */
const BY_CATEGORY: Readonly<Record<ErrorCategory, TieredErrorCode>> = {
  validation: "invalid_argument",
  execution: "internal_error",
  timeout: "timeout",
  model: "dependency_unavailable",
  network: "dependency_unavailable",
  authorization: "forbidden",
  rate_limit: "resource_exhausted",
  not_found: "not_found",
  internal: "internal_error",
};

/** Chooses the tiered code of an error from its code, else its category; never from its message. */
export function toTieredCode(code: string | undefined, category: string | undefined): TieredErrorCode {
  const own = TIERED_ERROR_CODES.find((known) => known === code);
  if (own !== undefined) return own;
  if (isErrorCode(code)) return ERROR_CODES[code].tieredCode;
  return category !== undefined && Object.hasOwn(BY_CATEGORY, category)
    ? BY_CATEGORY[category as ErrorCategory]
    : "internal_error";
}

/** The category of the tool envelope for each tiered code. */
const CATEGORIES: Readonly<Record<TieredErrorCode, ErrorCategory>> = {
  invalid_argument: "validation",
  invalid_path: "validation",
  forbidden: "authorization",
  not_found: "not_found",
  timeout: "timeout",
  too_large: "validation",
  resource_exhausted: "rate_limit",
  not_implemented: "execution",
  upgrade_required: "authorization",
  dependency_unavailable: "network",
  internal_error: "internal",
};

/** Chooses the category of an error from its code, of whichever table it is. */
export function toCategory(code: string | undefined): ErrorCategory {
  if (isErrorCode(code)) return ERROR_CODES[code].category;
  const tiered = TIERED_ERROR_CODES.find((known) => known === code);
  return tiered === undefined ? "execution" : CATEGORIES[tiered];
}
