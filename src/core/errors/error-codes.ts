/** The nine categories of a tool envelope's error payload. */
export type ErrorCategory =
  | "validation"
  | "execution"
  | "timeout"
  | "model"
  | "network"
  | "authorization"
  | "rate_limit"
  | "not_found"
  | "internal";

/** The eleven codes of the tiered response envelope. */
export type TieredErrorCode =
  | "invalid_argument"
  | "invalid_path"
  | "forbidden"
  | "not_found"
  | "timeout"
  | "too_large"
  | "resource_exhausted"
  | "not_implemented"
  | "upgrade_required"
  | "dependency_unavailable"
  | "internal_error";

/** What each edge makes of a failure. */
export interface ErrorTraits {
  readonly httpStatus: number;
  /** The `type` of the RFC 9457 problem. */
  readonly problemType: string;
  /** The `title` of the problem: the same for every occurrence. */
  readonly title: string;
  readonly category: ErrorCategory;
  readonly tieredCode: TieredErrorCode;
  /** How an MCP server answers: a result with `isError`, or a JSON-RPC error as the protocol asks for unknown tools. */
  readonly mcpAnswer: "error-result" | "protocol-error";
  readonly callEvent: "call.error" | "call.aborted";
  /** The same input may work later. */
  readonly retryable: boolean;
  /** The caller can fix the input. */
  readonly correctable: boolean;
  /** The sentence for people when the thrower gives none. */
  readonly message: string;
}

const PROBLEMS = "https://waybill.dev/problems";

/** Most failures reach an MCP client as an error result and a bus as `call.error`. */
const ANSWERED = { mcpAnswer: "error-result", callEvent: "call.error" } as const;

/** Every failure a caller can meet, and what each edge turns it into. A new row is all a new code needs. */
export const ERROR_CODES = {
  OPERATION_NOT_FOUND: {
    ...ANSWERED,
    httpStatus: 404,
    problemType: `${PROBLEMS}/operation-not-found`,
    title: "Operation not found",
    category: "not_found",
    tieredCode: "not_found",
    mcpAnswer: "protocol-error",
    retryable: false,
    correctable: false,
    message: "There is no such operation.",
  },
  ACCESS_DENIED: {
    ...ANSWERED,
    httpStatus: 403,
    problemType: `${PROBLEMS}/access-denied`,
    title: "Access denied",
    category: "authorization",
    tieredCode: "forbidden",
    retryable: false,
    correctable: false,
    message: "The caller may not run this operation.",
  },
  VALIDATION_ERROR: {
    ...ANSWERED,
    httpStatus: 400,
    problemType: `${PROBLEMS}/validation-error`,
    title: "Invalid input",
    category: "validation",
    tieredCode: "invalid_argument",
    retryable: false,
    correctable: true,
    message: "The input does not match what the operation declares.",
  },
  TIMEOUT: {
    ...ANSWERED,
    httpStatus: 504,
    problemType: `${PROBLEMS}/timeout`,
    title: "Timed out",
    category: "timeout",
    tieredCode: "timeout",
    retryable: true,
    correctable: false,
    message: "The operation did not finish in time.",
  },
  // Nobody waits for the answer any more, so nothing should retry on its own; 499 is what proxies log for it.
  ABORTED: {
    ...ANSWERED,
    httpStatus: 499,
    problemType: `${PROBLEMS}/aborted`,
    title: "Aborted",
    category: "execution",
    tieredCode: "internal_error",
    callEvent: "call.aborted",
    retryable: false,
    correctable: false,
    message: "The call was aborted before it finished.",
  },
  EXECUTION_ERROR: {
    ...ANSWERED,
    httpStatus: 500,
    problemType: `${PROBLEMS}/execution-error`,
    title: "Execution failed",
    category: "execution",
    tieredCode: "internal_error",
    retryable: false,
    correctable: false,
    message: "The operation failed unexpectedly.",
  },
  UNKNOWN_ERROR: {
    ...ANSWERED,
    httpStatus: 500,
    problemType: `${PROBLEMS}/unknown-error`,
    title: "Unknown error",
    category: "internal",
    tieredCode: "internal_error",
    retryable: false,
    correctable: false,
    message: "The call failed for an unknown reason.",
  },
  UNAUTHENTICATED: {
    ...ANSWERED,
    httpStatus: 401,
    problemType: `${PROBLEMS}/unauthenticated`,
    title: "Not authenticated",
    category: "authorization",
    tieredCode: "forbidden",
    retryable: false,
    correctable: false,
    message: "The call needs an authenticated caller.",
  },
  NOT_FOUND: {
    ...ANSWERED,
    httpStatus: 404,
    problemType: `${PROBLEMS}/not-found`,
    title: "Not found",
    category: "not_found",
    tieredCode: "not_found",
    retryable: false,
    correctable: true,
    message: "What the input refers to does not exist.",
  },
  RATE_LIMITED: {
    ...ANSWERED,
    httpStatus: 429,
    problemType: `${PROBLEMS}/rate-limited`,
    title: "Rate limited",
    category: "rate_limit",
    tieredCode: "resource_exhausted",
    retryable: true,
    correctable: false,
    message: "Too many calls in a short time; wait before the next one.",
  },
  TOO_LARGE: {
    ...ANSWERED,
    httpStatus: 413,
    problemType: `${PROBLEMS}/too-large`,
    title: "Too large",
    category: "validation",
    tieredCode: "too_large",
    retryable: false,
    correctable: true,
    message: "What was sent or asked for is larger than allowed.",
  },
  RESOURCE_EXHAUSTED: {
    ...ANSWERED,
    httpStatus: 503,
    problemType: `${PROBLEMS}/resource-exhausted`,
    title: "Resource exhausted",
    category: "rate_limit",
    tieredCode: "resource_exhausted",
    retryable: true,
    correctable: false,
    message: "A quota or resource is used up; try again later.",
  },
  NOT_IMPLEMENTED: {
    ...ANSWERED,
    httpStatus: 501,
    problemType: `${PROBLEMS}/not-implemented`,
    title: "Not implemented",
    category: "execution",
    tieredCode: "not_implemented",
    retryable: false,
    correctable: false,
    message: "The operation does not support this.",
  },
  // 402 rather than 426, which asks for another protocol, or 403, which no higher tier would lift.
  UPGRADE_REQUIRED: {
    ...ANSWERED,
    httpStatus: 402,
    problemType: `${PROBLEMS}/upgrade-required`,
    title: "Upgrade required",
    category: "authorization",
    tieredCode: "upgrade_required",
    retryable: false,
    correctable: false,
    message: "This needs a higher tier than the caller has.",
  },
  UNAVAILABLE: {
    ...ANSWERED,
    httpStatus: 503,
    problemType: `${PROBLEMS}/unavailable`,
    title: "Unavailable",
    category: "network",
    tieredCode: "dependency_unavailable",
    retryable: true,
    correctable: false,
    message: "What the operation depends on cannot be reached; try again later.",
  },
  NO_RESPONDER: {
    ...ANSWERED,
    httpStatus: 503,
    problemType: `${PROBLEMS}/no-responder`,
    title: "No responder",
    category: "network",
    tieredCode: "dependency_unavailable",
    retryable: true,
    correctable: false,
    message: "Nobody on the bus answers this operation right now; try again later.",
  },
  // 500 rather than 502: the operation did run, and clients retry a 502 by themselves.
  OUTPUT_INVALID: {
    ...ANSWERED,
    httpStatus: 500,
    problemType: `${PROBLEMS}/output-invalid`,
    title: "Invalid output",
    category: "internal",
    tieredCode: "internal_error",
    retryable: false,
    correctable: false,
    message: "The result does not match what the operation declares.",
  },
  WITHHELD: {
    ...ANSWERED,
    httpStatus: 502,
    problemType: `${PROBLEMS}/withheld`,
    title: "Result withheld",
    category: "authorization",
    tieredCode: "forbidden",
    retryable: false,
    correctable: false,
    message: "The operation has run, and its result is withheld.",
  },
  // Not 401 or 403, which clients take as final: the same call runs once somebody has said yes.
  APPROVAL_REQUIRED: {
    ...ANSWERED,
    httpStatus: 428,
    problemType: `${PROBLEMS}/approval-required`,
    title: "Approval required",
    category: "authorization",
    tieredCode: "forbidden",
    retryable: true,
    correctable: false,
    message: "A person has to approve this call first; make the same call again after that.",
  },
  APPROVAL_DENIED: {
    ...ANSWERED,
    httpStatus: 403,
    problemType: `${PROBLEMS}/approval-denied`,
    title: "Approval denied",
    category: "authorization",
    tieredCode: "forbidden",
    retryable: false,
    correctable: false,
    message: "A person was asked about this call and denied it.",
  },
  DEFINITION_CHANGED: {
    ...ANSWERED,
    httpStatus: 409,
    problemType: `${PROBLEMS}/definition-changed`,
    title: "Definition changed",
    category: "authorization",
    tieredCode: "forbidden",
    retryable: false,
    correctable: false,
    message: "The operation is no longer the one that was approved; approve it again.",
  },
  CONFLICT: {
    ...ANSWERED,
    httpStatus: 409,
    problemType: `${PROBLEMS}/conflict`,
    title: "Conflict",
    category: "validation",
    tieredCode: "invalid_argument",
    retryable: false,
    correctable: true,
    message: "The input conflicts with the current state; read it again and adjust.",
  },
} as const satisfies Record<string, ErrorTraits>;

/** A code of the one table. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** True for the codes of the table alone; `"constructor"` is not one. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(ERROR_CODES, value);
}

/** Looks a code up; one the table does not hold is a declared domain code and behaves as `EXECUTION_ERROR`. */
export function errorTraits(code: string): ErrorTraits {
  return isErrorCode(code) ? ERROR_CODES[code] : ERROR_CODES.EXECUTION_ERROR;
}
