import { ERROR_CODES, isErrorCode } from "../core/errors/error-codes.ts";
import type { ResultError } from "../core/result/tool-result.ts";

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
