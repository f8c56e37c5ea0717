import type { ObtainedFrom } from "../core/envelope/response-meta.ts";
import type { FormatName, ToolResult } from "../core/result/tool-result.ts";
import { isFormatError, total } from "./format-error.ts";
import { applyResidual, differences } from "./residual.ts";
import type { EnvelopeBlockOptions } from "./tool-envelope/envelope-block.ts";

/** Something a reader noticed: a code for programs, a sentence for people. */
export interface Oddity {
  readonly code: string;
  readonly message: string;
}

/** How results are read; see `EnvelopeBlockOptions` for each. */
export type ReadOptions = EnvelopeBlockOptions;

/** A result as one format reads it. */
export interface Decoded {
  readonly result: ToolResult;
  /** How the data was found. */
  readonly obtained: ObtainedFrom;
  /** What a well-behaved writer would not have written. */
  readonly odd: readonly Oddity[];
}

/** One format: writes the canonical result, reads it back, and says what writing loses. */
export interface Codec<Carrier> {
  readonly name: FormatName;
  /** Writes a result; what the format has no place for is left out. */
  encode(result: ToolResult): Carrier;
  /** Reads a result, its residual included; anything that is not of this format throws a `FormatError`. */
  decode(carrier: unknown, options?: ReadOptions): Decoded;
  /** JSON pointers into the canonical result: what reads differently once it has been written. */
  losses(result: ToolResult): readonly string[];
}

/** The two directions of a format, as it defines them itself. */
export interface Format<Carrier> {
  readonly name: FormatName;
  write(result: ToolResult): Carrier;
  /** The residual is handed on as it came. */
  read(carrier: unknown, options: ReadOptions): Decoded & { readonly residual: unknown };
}

/** Makes a codec of a format: losses are what a round trip shows, so that they cannot be told wrong. */
export function createCodec<Carrier>(format: Format<Carrier>): Codec<Carrier> {
  const { name, read } = format;
  return {
    name,
    encode: (result) => total(() => writeFaithfully(format, result)),
    decode: (carrier, options = {}) =>
      total(() => {
        const { result, obtained, odd, residual } = read(carrier, options);
        if (residual === undefined) return { result, obtained, odd };
        const applied = applyResidual(result, residual);
        return { result: applied.result, obtained, odd: [...odd, ...applied.odd] };
      }),
    losses: (result) => total(() => differences(result, read(writeFaithfully(format, result), {}).result)),
  };
}

/**
 * Writes a result the unusual way it once came, if it came so. What is unusual may have been said by anybody, so it never
 * changes whether the result failed, nor makes it unreadable.
 */
function writeFaithfully<Carrier>({ name, write, read }: Format<Carrier>, result: ToolResult): Carrier {
  if (result.extra?.[name] === undefined) return write(result);
  try {
    const written = write(result);
    if (read(written, {}).result.isError === result.isError) return written;
  } catch (error) {
    if (!isFormatError(error)) throw error;
  }
  const { [name]: _, ...extra } = result.extra;
  return write({ ...result, extra });
}
