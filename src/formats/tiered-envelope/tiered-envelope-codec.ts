import type { MCPContentBlock } from "../../core/envelope/content-block.ts";
import { randomId } from "../../core/execution/call-context.ts";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { isSemanticVersion } from "../../core/operation/semantic-version.ts";
import { adviceText, linksFrom, textsIn } from "../../core/result/human-text.ts";
import {
  type CallToolResult,
  type ResultError,
  type ToolResult,
  textBlock,
  textOf,
} from "../../core/result/tool-result.ts";
import { isEqual } from "../../core/schema/compare-values.ts";
import {
  type Carrier,
  type Contract,
  findContract,
  isEmpty,
  isJsonOf,
  readCarrier,
  unusualParts,
  withUnknown,
  writeCarrier,
} from "../carrier.ts";
import { createCodec, type Decoded, type Oddity } from "../codec.ts";
import { FormatError, writeFormatJson } from "../format-error.ts";
import { toTieredCode } from "../retry-advice.ts";
import {
  ENVELOPE_CAPABILITY,
  isTieredEnvelope,
  TIERED_FIELDS,
  type TieredEnvelope,
  type TieredError,
  withEnvelopeCapability,
} from "./tiered-envelope.ts";

const NAME = "tiered-envelope";

/** The tiered response envelope: as structured content, and its JSON as the first text block. */
export const tieredEnvelopeCodec = createCodec<CallToolResult>({
  name: NAME,

  write(result) {
    const extra = result.extra?.[NAME] ?? {};
    const envelope = toTieredEnvelope(result);
    const human = result.content ?? [];
    const links = linksFrom(human);
    // The format has no field for it.
    const advice = adviceText(result.error ?? {}, textsIn(human));
    const laidOut = [
      textBlock(writeFormatJson(envelope)),
      ...human.slice(0, links),
      ...(advice === undefined ? [] : [textBlock(advice)]),
      ...human.slice(links),
    ];
    return writeCarrier(NAME, result, {
      content: extra["verbatim"] === true ? human : laidOut,
      ...(extra["inText"] !== true && { structured: { value: envelope } }),
      flag: result.isError ? true : undefined,
    });
  },

  read(value, options) {
    const carrier = readCarrier(value);
    const contract = findContract(carrier, options);
    if (contract === undefined || !isTieredEnvelope(contract.value)) {
      throw new FormatError("bad_shape", "The result holds no tiered envelope.", { format: NAME });
    }
    return { ...readTieredEnvelope(carrier, contract), residual: carrier.residual };
  },
});

/** Writes the nine fields; what the result does not say gets the lowest tier and the emptiest value. */
function toTieredEnvelope(result: ToolResult): TieredEnvelope {
  const { tier = "community", tool = "unknown", toolVersion, requestId = randomId(), durationMs } = result;
  const extra = result.extra?.[NAME] ?? {};
  const envelope: TieredEnvelope = {
    tier,
    tool_version: isSemanticVersion(toolVersion) ? toolVersion : "0.0.0",
    tool_id: tool,
    request_id: requestId,
    capabilities: withEnvelopeCapability(result.capabilities ?? []),
    ...(extra["omitsDuration"] !== true && { duration_ms: durationMs ?? 0 }),
    error: result.isError ? toTieredError(result, extra) : null,
    upgrade_hints: result.upgradeHints ?? [],
    data: result.data ?? null,
  };
  return withUnknown(envelope, extra["envelope"]);
}

type Extra = Readonly<Record<string, unknown>>;

function toTieredError(result: ToolResult, extra: Extra): TieredError {
  const { message = result.summary ?? "The tool failed.", code, category, details } = result.error ?? {};
  const kept = extra["errorCode"];
  const known = {
    error: message,
    error_code: typeof kept === "string" && kept === code ? kept : toTieredCode(code, category),
    ...(extra["omitsDetails"] !== true && { error_details: toDetails(details) }),
  };
  return withUnknown(known, result.error?.extra) as TieredError;
}

function toDetails(details: unknown): Readonly<Record<string, unknown>> | null {
  if (details === undefined || details === null) return null;
  return isPlainObject(details) ? details : { details };
}

/** Reads a result whose tiered envelope has been found. */
export function readTieredEnvelope(carrier: Carrier, { value, obtained }: Contract): Decoded {
  const envelope = value as TieredEnvelope;
  const { error } = envelope;
  const isError = error !== null || carrier.flag === true;
  const extra: Record<string, unknown> = {
    ...unusualParts(carrier, isError ? true : undefined),
    ...(obtained === "contract-json" && { inText: true }),
    ...unusualFields(envelope),
  };
  const bare: ToolResult = {
    isError,
    data: envelope.data,
    ...(error !== null && { error: toResultError(error) }),
    tool: envelope.tool_id,
    toolVersion: envelope.tool_version,
    requestId: envelope.request_id,
    ...(envelope.duration_ms !== undefined && { durationMs: envelope.duration_ms }),
    tier: envelope.tier,
    capabilities: envelope.capabilities,
    upgradeHints: envelope.upgrade_hints,
    ...(carrier.meta && { _meta: carrier.meta }),
  };
  const rewritten = toTieredEnvelope({ ...bare, extra: { [NAME]: extra } });
  // Spaced otherwise, or with its fields in another order, the text is kept as it stands, unless it would no longer be true.
  const isStale = !isEqual(rewritten, envelope) && isEqual(jsonOf(carrier.content[0]), envelope);
  const isDerived = isStale || isJsonOf(carrier.content[0], rewritten);
  if (!isDerived) extra["verbatim"] = true;
  const content = (isDerived ? carrier.content.slice(1) : carrier.content) as readonly MCPContentBlock[];
  const result: ToolResult = {
    ...bare,
    ...(content.length > 0 && { content }),
    ...(!isEmpty(extra) && { extra: { [NAME]: extra } }),
  };
  return { result, obtained, odd: oddities(carrier, envelope) };
}

function jsonOf(block: unknown): unknown {
  const text = textOf(block);
  return text === undefined ? undefined : parseJsonTextOrNone(text);
}

/** What `toTieredEnvelope` would write otherwise. */
function unusualFields(envelope: TieredEnvelope): Extra {
  const { duration_ms, error } = envelope;
  const unknown = Object.entries(envelope).filter(([key]) => !TIERED_FIELDS.includes(key));
  const code = error?.error_code;
  return {
    ...(unknown.length > 0 && { envelope: Object.fromEntries(unknown) }),
    ...(duration_ms === undefined && { omitsDuration: true }),
    ...(code !== undefined && toTieredCode(code, undefined) !== code && { errorCode: code }),
    ...(error !== null && error.error_details === undefined && { omitsDetails: true }),
  };
}

function toResultError(given: TieredError): ResultError {
  const { error, error_code, error_details, ...extra } = given as TieredError & Record<string, unknown>;
  return {
    message: error,
    code: error_code,
    ...(error_details !== null && error_details !== undefined && { details: error_details }),
    ...(!isEmpty(extra) && { extra }),
  };
}

function oddities(carrier: Carrier, { capabilities, error }: TieredEnvelope): readonly Oddity[] {
  const odd: Oddity[] = [];
  if ((carrier.flag === true) !== (error !== null)) {
    odd.push({ code: "flag_mismatch", message: "isError and the envelope's error do not agree." });
  }
  if (!capabilities.includes(ENVELOPE_CAPABILITY)) {
    odd.push({
      code: "missing_capability",
      message: `The capabilities do not hold "${ENVELOPE_CAPABILITY}".`,
    });
  }
  return odd;
}
