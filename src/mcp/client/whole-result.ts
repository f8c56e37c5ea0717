import { CallError, isCallError } from "../../core/errors/errors.ts";
import { asJson } from "../../core/json/as-json.ts";
import { isTooDeep } from "../../core/json/json-depth.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { RESULT_META_KEY } from "../../core/result/call-tool-result.ts";
import { fromWire } from "../../core/wire/wire.ts";
import type { McpConnection, McpRequestOptions } from "./mcp-connection.ts";

/** How the whole of a result that was cut is fetched. */
export interface WholeFetching {
  /** The exact name of the tool, for messages. */
  readonly tool: string;
  readonly request: Pick<McpRequestOptions, "signal" | "timeoutMs">;
  /** Hears of a whole that cannot be had; never throws. */
  warn(message: string, cause?: unknown): void;
}

/** The longest address that is asked for. */
const URI_LENGTH = 8_192;

/**
 * Gives a result that Waybill cut to a preview its data back, as structured content, read from where the result says the whole is.
 * What cannot be read any more leaves the result as it came, and is a warning.
 */
export async function withWhole(
  connection: McpConnection,
  result: unknown,
  { tool, request, warn }: WholeFetching,
): Promise<unknown> {
  const facts = factsOf(result);
  if (facts === undefined) return result;
  const { stored, storedWire, ...others } = facts;
  const uri = storedWire ?? stored;
  if (typeof uri !== "string" || uri.length > URI_LENGTH) return result;
  try {
    const value = readJson(await connection.request("resources/read", { uri }, request));
    const isWire = storedWire !== undefined;
    const structuredContent = isWire ? asJson(fromWire(value)) : value;
    const given = result as Readonly<Record<string, unknown>>;
    const meta = given["_meta"] as Readonly<Record<string, unknown>>;
    const _meta = { ...meta, [RESULT_META_KEY]: { ...others, ...(isWire && { wire: value }) } };
    return { ...given, structuredContent, _meta };
  } catch (cause) {
    if (isCallError(cause) && cause.code === "ABORTED") throw cause;
    const name = JSON.stringify(tool.slice(0, 200));
    warn(`The tool ${name} sent a preview, and the whole cannot be read: the preview is the data.`, cause);
    return result;
  }
}

function factsOf(result: unknown): Readonly<Record<string, unknown>> | undefined {
  const meta = isPlainObject(result) ? result["_meta"] : undefined;
  const facts =
    isPlainObject(meta) && Object.hasOwn(meta, RESULT_META_KEY) ? meta[RESULT_META_KEY] : undefined;
  return isPlainObject(facts) ? facts : undefined;
}

function readJson({ contents }: Readonly<Record<string, unknown>>): unknown {
  const [first]: readonly unknown[] = Array.isArray(contents) ? contents : [];
  const text = isPlainObject(first) ? first["text"] : undefined;
  if (typeof text !== "string") throw new CallError("OUTPUT_INVALID", "What was stored is no text.");
  const value: unknown = JSON.parse(text);
  if (isTooDeep(text, value, undefined)) {
    throw new CallError("OUTPUT_INVALID", "What was stored is nested too deeply.");
  }
  return value;
}
