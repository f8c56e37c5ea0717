import { TIERS } from "../../core/access/tier.ts";
import type { TieredErrorCode } from "../../core/errors/error-codes.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { Tier } from "../../core/operation/operation-types.ts";
import type { UpgradeHint } from "../../core/result/tool-result.ts";
import { FormatError, total } from "../format-error.ts";
import { parseJsonText } from "../json-text.ts";
import { isTextList, isUpgradeHints } from "../result-fields.ts";

/** The codes a tiered envelope defines; others are kept when read. */
export const TIERED_ERROR_CODES = [
  "invalid_argument",
  "invalid_path",
  "forbidden",
  "not_found",
  "timeout",
  "too_large",
  "resource_exhausted",
  "not_implemented",
  "upgrade_required",
  "dependency_unavailable",
  "internal_error",
] as const satisfies readonly TieredErrorCode[];

/** What every envelope of this version says it can do. */
export const ENVELOPE_CAPABILITY = "envelope-v1";

/** The fields of the envelope, in their order. */
export const TIERED_FIELDS: readonly string[] = [
  ...["tier", "tool_version", "tool_id", "request_id", "capabilities", "duration_ms"],
  ...["error", "upgrade_hints", "data"],
];

/** Lists capabilities, the one that every envelope has among them. */
export function withEnvelopeCapability(capabilities: readonly string[]): readonly string[] {
  return capabilities.includes(ENVELOPE_CAPABILITY) ? capabilities : [ENVELOPE_CAPABILITY, ...capabilities];
}

/** Why a tool of a tiered product failed. */
export interface TieredError {
  readonly error: string;
  readonly error_code: TieredErrorCode | (string & {});
  readonly error_details: Readonly<Record<string, unknown>> | null;
}

/** The tiered response envelope V1.0: nine fields, in this order, on success and on error. */
export interface TieredEnvelope<T = unknown> {
  readonly tier: Tier;
  /** The semantic version of the tool. */
  readonly tool_version: string;
  readonly tool_id: string;
  /** The caller's, or 32 hex digits. */
  readonly request_id: string;
  readonly capabilities: readonly string[];
  /** From a monotonic clock; only a community tool may leave it out. */
  readonly duration_ms?: number;
  readonly error: TieredError | null;
  readonly upgrade_hints: readonly UpgradeHint[];
  readonly data: T | null;
}

/** Reads a tiered envelope from JSON text or a value; anything else is a `bad_shape` or `bad_json` error. */
export function parseTieredEnvelope<T = unknown>(given: unknown): TieredEnvelope<T> {
  return total(() => {
    const value = typeof given === "string" ? parseJsonText(given) : given;
    const problem = tieredProblem(value);
    if (problem === undefined) return value as TieredEnvelope<T>;
    throw new FormatError("bad_shape", `Not a tiered envelope: ${problem}.`, { format: "tiered-envelope" });
  });
}

/** Tells whether a value is a tiered envelope; unknown fields and codes are fine. */
export function isTieredEnvelope(value: unknown): value is TieredEnvelope {
  return tieredProblem(value) === undefined;
}

/** Says what keeps a value from being a tiered envelope; a missing tier is a problem, never a higher one. */
function tieredProblem(value: unknown): string | undefined {
  if (!isPlainObject(value)) return "it is not an object";
  const tier = own(value, "tier");
  if (!TIERS.some((known) => known === tier)) return `"tier" must be one of ${TIERS.join(", ")}`;
  for (const key of ["tool_version", "tool_id", "request_id"]) {
    if (typeof own(value, key) !== "string") return `"${key}" must be text`;
  }
  if (!isTextList(own(value, "capabilities"))) return '"capabilities" must list texts';
  const duration = own(value, "duration_ms");
  const mayMiss = tier === "community" && duration === undefined;
  if (!mayMiss && !isDuration(duration)) return '"duration_ms" must be a number of milliseconds';
  if (!isTieredError(own(value, "error"))) return '"error" must be null, or hold "error" and "error_code"';
  if (!isUpgradeHints(own(value, "upgrade_hints")))
    return '"upgrade_hints" must list {feature, tier, reason}';
  return Object.hasOwn(value, "data") ? undefined : '"data" is missing';
}

function isDuration(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function isTieredError(error: unknown): boolean {
  if (error === null) return true;
  if (!isPlainObject(error)) return false;
  const details = own(error, "error_details") ?? null;
  return (
    typeof own(error, "error") === "string" &&
    typeof own(error, "error_code") === "string" &&
    (details === null || isPlainObject(details))
  );
}

function own(value: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}
