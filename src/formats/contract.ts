import type { MCPContentBlock } from "../core/envelope/content-block.ts";
import { parseJsonTextOrNone, toJsonTextOrNone } from "../core/json/json-text.ts";
import { textOf } from "../core/result/call-tool-result.ts";
import type { Carrier } from "./carrier.ts";
import type { ReadOptions } from "./codec.ts";
import { ENVELOPE_LIMITS } from "./tool-envelope/envelope-block.ts";

/** A value that may be an envelope, and where it stood. */
export interface Contract {
  readonly value: unknown;
  readonly obtained: "structured-content" | "contract-json";
}

/** Finds where an envelope may stand: the structured content or, without any, the JSON of the first text block. */
export function findContract(carrier: Carrier, options: ReadOptions): Contract | undefined {
  if (carrier.hasStructured) return { value: carrier.structured, obtained: "structured-content" };
  const text = textOf(carrier.content[0]);
  const { maxBytes = ENVELOPE_LIMITS.bytes } = options;
  if (text === undefined || !text.startsWith("{") || text.length > maxBytes) return undefined;
  const value = parseJsonTextOrNone(text);
  return value === undefined ? undefined : { value, obtained: "contract-json" };
}

/** Tells whether a block is exactly the compact JSON of a value. */
export function isJsonOf(block: unknown, value: unknown): block is MCPContentBlock {
  const text = textOf(block);
  // A block with annotations is more than the JSON.
  return text !== undefined && Object.keys(block as object).length === 2 && text === toJsonTextOrNone(value);
}
