import { isMarkedEnvelope, isResponseEnvelope, mcpEnvelope } from "../core/envelope/envelope.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import type { CallToolResult, FormatName, ToolResult } from "../core/result/tool-result.ts";
import { putResidual } from "./carrier.ts";
import type { Codec, ReadOptions } from "./codec.ts";
import { detect } from "./decode-tool-result.ts";
import { FormatError, total } from "./format-error.ts";
import { plainCodec } from "./plain/plain-codec.ts";
import { toResidual } from "./residual.ts";
import { responseEnvelopeCodec } from "./response-envelope/response-envelope-codec.ts";
import { statusEnvelopeCodec } from "./status-envelope/status-envelope-codec.ts";
import { tieredEnvelopeCodec } from "./tiered-envelope/tiered-envelope-codec.ts";
import { toolEnvelopeCodec } from "./tool-envelope/tool-envelope-codec.ts";

/** What a format writes: a tool result, or an envelope. */
export type CarrierOf<F extends FormatName> = F extends "response-envelope"
  ? ResponseEnvelope
  : CallToolResult;

/** How a result is read and written anew. */
export interface TranscodeOptions extends ReadOptions {
  /** The format it is in, for one that more than one fits. @default the one found */
  readonly from?: FormatName | undefined;
  /** Keeps what the target cannot hold in `_meta`, so that it comes back exactly. @default true */
  readonly residual?: boolean | undefined;
}

/**
 * Writes a result in another format. What that format has no place for travels in `_meta["dev.waybill/result"]`, and is
 * back in its place when the result is transcoded again.
 */
export function transcode<F extends FormatName>(
  value: unknown,
  to: F,
  options: TranscodeOptions = {},
): CarrierOf<F> {
  // Before anything is read: a misspelt name is a mistake of the caller's, not of the result.
  codecOf(to);
  if (options.from !== undefined) codecOf(options.from);
  return total(() => encodeResult(readResult(value, options), to, options));
}

/** Writes a canonical result in a format, with what the format cannot hold beside it. */
export function encodeResult<F extends FormatName>(
  result: ToolResult,
  to: F,
  { residual = true }: Pick<TranscodeOptions, "residual"> = {},
): CarrierOf<F> {
  const codec: CodecOf<FormatName> = codecOf(to);
  if (!residual) return codec.encode(result) as CarrierOf<F>;
  return encodeWithLosses(result, to, () => codec.losses(result));
}

/** The same for callers that find out from what was written what the format's `losses` says: that costs more than writing it. */
export function encodeWithLosses<F extends FormatName>(
  result: ToolResult,
  to: F,
  lossesOf: (carrier: unknown) => readonly string[],
): CarrierOf<F> {
  const codec: CodecOf<FormatName> = codecOf(to);
  const carrier = codec.encode(result);
  const losses = lossesOf(carrier);
  if (losses.length === 0 && isFoundAs(carrier, to)) return carrier as CarrierOf<F>;
  return withResidual(carrier, { ...toResidual(to, result, losses) }) as CarrierOf<F>;
}

function readResult(value: unknown, { from, ...options }: TranscodeOptions): ToolResult {
  if (from !== undefined) return codecOf(from).decode(value, options).result;
  const found = detect(value, options);
  if ("decoded" in found) return found.decoded.result;
  const names = found.candidates.map(({ format }) => format).join(" or ");
  throw new FormatError("ambiguous", `The result can be read as ${names}; say which with the option from.`);
}

/** Data that looks like another format would be taken for it on the way back. */
function isFoundAs(carrier: CallToolResult | ResponseEnvelope, to: FormatName): boolean {
  const found = detect(carrier, {});
  return "format" in found && found.format === to;
}

function withResidual(
  carrier: CallToolResult | ResponseEnvelope,
  residual: Readonly<Record<string, unknown>>,
): CallToolResult | ResponseEnvelope {
  if (!isResponseEnvelope(carrier)) {
    const result = carrier as CallToolResult;
    return { ...result, _meta: putResidual(result._meta, residual) };
  }
  const { data, meta } = carrier;
  // The other sources are only written where they lose nothing.
  if (meta.source !== "mcp") return carrier;
  const written = mcpEnvelope(data, { ...meta, _meta: putResidual(meta._meta, residual) });
  return isMarkedEnvelope(carrier) ? written : { ...written };
}

/** The codec of each format, all of one shape. */
export const FORMATS = {
  "tool-envelope": toolEnvelopeCodec,
  "tiered-envelope": tieredEnvelopeCodec,
  "status-envelope": statusEnvelopeCodec,
  mcp: plainCodec,
  "response-envelope": responseEnvelopeCodec,
} as const satisfies Record<FormatName, unknown>;

/** The codec of a format whose name is known only at run time. */
export type CodecOf<F extends FormatName> = F extends "response-envelope"
  ? Codec<ResponseEnvelope>
  : Codec<CallToolResult>;

/** Looks a codec up; a name that is none throws at once. */
function codecOf<F extends FormatName>(name: F): CodecOf<F> {
  if (Object.hasOwn(FORMATS, name)) return FORMATS[name] as unknown as CodecOf<F>;
  throw new TypeError(`There is no format "${String(name)}"; there are ${Object.keys(FORMATS).join(", ")}.`);
}
