import {
  ERROR_CODES,
  type ErrorCategory,
  isErrorCode,
  type TieredErrorCode,
} from "../core/errors/error-codes.ts";
import { TIERED_ERROR_CODES } from "./tiered-envelope/tiered-envelope.ts";

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
