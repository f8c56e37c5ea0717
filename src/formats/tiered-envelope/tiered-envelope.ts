import { TIERS } from "../../core/access/tier.ts";
import type { AuthoredResult } from "../../core/envelope/envelope.ts";
import type { TieredErrorCode } from "../../core/errors/error-codes.ts";
import { randomId } from "../../core/execution/call-context.ts";
import { isPlainObject, ownMember } from "../../core/json/json-value.ts";
import type { ParsedBy, Tier } from "../../core/operation/operation-types.ts";
import type { UpgradeHint } from "../../core/result/tool-result.ts";
import type { AnySchema } from "../../core/schema/any-schema.ts";
import { didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import { markResult } from "../authored.ts";
import { isEmpty } from "../carrier.ts";
import type { Decoded } from "../codec.ts";
import { createEnvelopeSchema, type EnvelopeSchema, type EnvelopeShape } from "../envelope-schema.ts";
import { FormatError, parseFormatJson, total } from "../format-error.ts";
import { isTextList, isUpgradeHints } from "../result-fields.ts";
import { tieredEnvelopeCodec } from "./tiered-envelope-codec.ts";

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
    const value = typeof given === "string" ? parseFormatJson(given) : given;
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
  const tier = ownMember(value, "tier");
  if (!TIERS.some((known) => known === tier)) return `"tier" must be one of ${TIERS.join(", ")}`;
  for (const key of ["tool_version", "tool_id", "request_id"]) {
    if (typeof ownMember(value, key) !== "string") return `"${key}" must be text`;
  }
  if (!isTextList(ownMember(value, "capabilities"))) return '"capabilities" must list texts';
  const duration = ownMember(value, "duration_ms");
  const mayMiss = tier === "community" && duration === undefined;
  if (!mayMiss && !isDuration(duration)) return '"duration_ms" must be a number of milliseconds';
  if (!isTieredError(ownMember(value, "error")))
    return '"error" must be null, or hold "error" and "error_code"';
  if (!isUpgradeHints(ownMember(value, "upgrade_hints")))
    return '"upgrade_hints" must list {feature, tier, reason}';
  return Object.hasOwn(value, "data") ? undefined : '"data" is missing';
}

function isDuration(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function isTieredError(error: unknown): boolean {
  if (error === null) return true;
  if (!isPlainObject(error)) return false;
  const details = ownMember(error, "error_details") ?? null;
  return (
    typeof ownMember(error, "error") === "string" &&
    typeof ownMember(error, "error_code") === "string" &&
    (details === null || isPlainObject(details))
  );
}

const TEXT = { type: "string" };
const HINT = {
  type: "object",
  properties: { feature: TEXT, tier: TEXT, reason: TEXT },
  required: ["feature", "tier", "reason"],
};
const ERROR = {
  type: ["object", "null"],
  properties: { error: TEXT, error_code: TEXT, error_details: { type: ["object", "null"] } },
  required: ["error", "error_code"],
};

const SHAPE: EnvelopeShape = {
  fields: {
    type: "object",
    properties: {
      tier: { enum: TIERS },
      tool_version: TEXT,
      tool_id: TEXT,
      request_id: TEXT,
      capabilities: { type: "array", items: TEXT },
      duration_ms: { type: "number", minimum: 0 },
      error: ERROR,
      upgrade_hints: { type: "array", items: HINT },
    },
    required: [
      "tier",
      "tool_version",
      "tool_id",
      "request_id",
      "capabilities",
      "error",
      "upgrade_hints",
      "data",
    ],
  },
  failed: { properties: { error: { type: "object" } } },
  isFailed: ({ error }) => error !== null,
};

/** Declares a whole tiered envelope as a tool's `outputSchema`, from the schema of its data; errors are admitted. */
export function createTieredEnvelopeSchema<S extends AnySchema>(
  schema: S,
): EnvelopeSchema<TieredEnvelope<ParsedBy<S>>, S> {
  return createEnvelopeSchema(schema, SHAPE);
}

/** What `tieredEnvelope` is told; everything may be left out. */
export interface TieredFields<T = unknown> {
  /** @default null */
  readonly data?: T | null | undefined;
  /** @default null; `error_details` is null where it is left out */
  readonly error?:
    | (Omit<NonNullable<TieredEnvelope["error"]>, "error_details"> &
        Partial<Pick<NonNullable<TieredEnvelope["error"]>, "error_details">>)
    | null
    | undefined;
  /** `envelope-v1` is among them in any case. @default none */
  readonly capabilities?: readonly string[] | undefined;
  /** @default none */
  readonly upgrade_hints?: TieredEnvelope["upgrade_hints"] | undefined;
  /** Told by the call where an operation returns the envelope. @default "community" */
  readonly tier?: TieredEnvelope["tier"] | undefined;
  /** Told by the operation where one returns the envelope. @default "0.0.0" */
  readonly tool_version?: string | undefined;
  /** Told by the call where an operation returns the envelope. @default "unknown" */
  readonly tool_id?: string | undefined;
  /** Told by the call where an operation returns the envelope. @default 32 random hex digits */
  readonly request_id?: string | undefined;
  /** Told by the call where an operation returns the envelope. @default 0 */
  readonly duration_ms?: number | undefined;
}

/**
 * Makes a tiered envelope, its nine fields in their order. A handler may return it: its error is the operation's, its data is checked
 * like any other, and tier, tool, request and duration are those of the call.
 */
export function tieredEnvelope<T = null>(
  fields: TieredFields<T> = {},
): TieredEnvelope<T> & AuthoredResult<T> {
  assertKnownMember(fields);
  const { capabilities = [], error, data, upgrade_hints = [] } = fields;
  const { tier = TIERS[0], tool_version = "0.0.0", tool_id = "unknown", duration_ms = 0 } = fields;
  const { request_id = randomId() } = fields;
  const envelope: TieredEnvelope<T> = {
    tier,
    tool_version,
    tool_id,
    request_id,
    capabilities: withEnvelopeCapability(capabilities),
    duration_ms,
    error:
      error === undefined || error === null ? null : { ...error, error_details: error.error_details ?? null },
    upgrade_hints,
    data: data ?? null,
  };
  // Says which field is wrong, and how.
  parseTieredEnvelope(envelope);
  return markResult(envelope, () => readAuthored(envelope));
}

/** Reads an envelope that no tool result carries yet: how its text is laid out is for the server. */
function readAuthored(envelope: TieredEnvelope): Decoded {
  const { result, ...decoded } = tieredEnvelopeCodec.decode({
    content: [],
    structuredContent: envelope,
    ...(envelope.error !== null && { isError: true }),
  });
  const { extra, ...bare } = result;
  const { verbatim: _, ...fields } = extra?.[tieredEnvelopeCodec.name] ?? {};
  const kept = isEmpty(fields) ? bare : { ...bare, extra: { [tieredEnvelopeCodec.name]: fields } };
  return { ...decoded, result: kept };
}

function assertKnownMember(fields: object): void {
  if (!isPlainObject(fields))
    throw new TypeError("tieredEnvelope() takes an object with the envelope's fields.");
  const unknown = Object.keys(fields).find((name) => !TIERED_FIELDS.includes(name));
  if (unknown === undefined) return;
  const hint = didYouMean(
    nearestName(unknown, TIERED_FIELDS),
    `; its fields are ${TIERED_FIELDS.join(", ")}.`,
  );
  throw new TypeError(`A tiered envelope has no field "${unknown.slice(0, 80)}"${hint}`);
}
