import { TIERS } from "../../core/access/tier.ts";
import type { AuthoredResult } from "../../core/envelope/envelope.ts";
import { randomId } from "../../core/execution/request-id.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import { markResult } from "../authored.ts";
import { isEmpty } from "../carrier.ts";
import type { Decoded } from "../codec.ts";
import {
  parseTieredEnvelope,
  TIERED_FIELDS,
  type TieredEnvelope,
  withEnvelopeCapability,
} from "./tiered-envelope.ts";
import { tieredEnvelopeCodec } from "./tiered-envelope-codec.ts";

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
  assertKnown(fields);
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

/** Reads an envelope that no tool result carries yet: how its text is laid out is for whoever serves it. */
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

function assertKnown(fields: object): void {
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
