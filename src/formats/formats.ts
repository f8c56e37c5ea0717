import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import type { CallToolResult } from "../core/result/call-tool-result.ts";
import type { FormatName } from "../core/result/tool-result.ts";
import type { Codec } from "./codec.ts";
import { plainCodec } from "./plain/plain-codec.ts";
import { responseEnvelopeCodec } from "./response-envelope/response-envelope-codec.ts";
import { statusEnvelopeCodec } from "./status-envelope/status-envelope-codec.ts";
import { tieredEnvelopeCodec } from "./tiered-envelope/tiered-envelope-codec.ts";
import { toolEnvelopeCodec } from "./tool-envelope/tool-envelope-codec.ts";

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
export function codecOf<F extends FormatName>(name: F): CodecOf<F> {
  if (Object.hasOwn(FORMATS, name)) return FORMATS[name] as unknown as CodecOf<F>;
  throw new TypeError(`There is no format "${String(name)}"; there are ${Object.keys(FORMATS).join(", ")}.`);
}
