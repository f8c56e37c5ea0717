import type { SaidFacts } from "../../core/envelope/response-meta.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { asJson } from "../../core/json/as-json.ts";
import { isTooDeep } from "../../core/json/json-depth.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { RESULT_META_KEY, textOf } from "../../core/result/call-tool-result.ts";
import { fromWire } from "../../core/wire/wire.ts";
import { bytesPlaceOf, MOST_BYTES_BLOCKS, toBytesBlock } from "../bytes-block.ts";
import type { McpConnection, McpRequestOptions } from "./mcp-connection.ts";

/** How the whole of a result that was cut is fetched. */
export interface WholeFetching {
  /** The exact name of the tool, for messages. */
  readonly tool: string;
  readonly request: Pick<McpRequestOptions, "signal" | "timeoutMs">;
  /** Hears of a whole that cannot be had; never throws. */
  warn(message: string, cause?: unknown): void;
}

/** The data of a result that was cut, as JSON. */
export interface WholeData {
  readonly data: unknown;
  /** Where the result said that it is. */
  readonly uri: string;
}

/** A result, and the whole data of an envelope in it that was cut. */
export interface WholeResult {
  readonly result: unknown;
  readonly whole?: WholeData;
}

/** The longest address that is asked for. */
const URI_LENGTH = 8_192;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Gives a result that Waybill cut to a preview its data back, read from where the result says the whole is: as structured content, or
 * apart where the result is an envelope. What cannot be read any more leaves the result as it came, and is a warning.
 */
export async function withWhole(
  connection: McpConnection,
  result: unknown,
  { tool, request, warn }: WholeFetching,
): Promise<WholeResult> {
  const facts = factsOf(result);
  if (facts === undefined) return { result };
  const { stored, storedWire, storedAs, cuts: _, omittedCuts: __, preview: ___, ...others } = facts;
  const uri = storedWire ?? stored;
  if (typeof uri !== "string" || uri.length > URI_LENGTH) return { result };
  try {
    const value = readJson(await connection.request("resources/read", { uri }, request));
    const isWire = storedWire !== undefined;
    const data = isWire ? asJson(fromWire(value)) : storedAs === "envelope" ? dataOf(value) : value;
    const given = result as Fields;
    const meta = given["_meta"] as Fields;
    const _meta = { ...meta, [RESULT_META_KEY]: { ...others, ...(isWire && { wire: value }) } };
    if (storedAs !== undefined) {
      return { result: { ...given, _meta }, whole: { data, uri: String(stored) } };
    }
    const structuredContent = others["wrapsResult"] === true ? { result: data } : data;
    return { result: { ...given, structuredContent, _meta } };
  } catch (cause) {
    if (isCallError(cause) && cause.code === "ABORTED") throw cause;
    const name = JSON.stringify(tool.slice(0, 200));
    warn(`The tool ${name} sent a preview, and the whole cannot be read: the preview is the data.`, cause);
    return { result };
  }
}

/** Reads the bytes that a result links to because they were too long to send; what cannot be read stays a link, and is a warning. */
export async function withStoredBytes(
  connection: McpConnection,
  result: unknown,
  { tool, request, warn }: WholeFetching,
): Promise<unknown> {
  const content = isPlainObject(result) ? result["content"] : undefined;
  const isStored = (block: unknown): boolean =>
    isPlainObject(block) && block["type"] === "resource_link" && bytesPlaceOf(block) !== undefined;
  if (!Array.isArray(content) || !content.some(isStored)) return result;
  const blocks: unknown[] = [];
  let left = MOST_BYTES_BLOCKS;
  for (const block of content) {
    const uri = isStored(block) && left-- > 0 ? block.uri : undefined;
    if (typeof uri !== "string" || uri.length > URI_LENGTH) {
      blocks.push(block);
      continue;
    }
    try {
      const { contents } = await connection.request("resources/read", { uri }, request);
      const [first]: readonly unknown[] = Array.isArray(contents) ? contents : [];
      const { blob, mimeType } = isPlainObject(first) ? first : {};
      if (typeof blob !== "string") throw new CallError("OUTPUT_INVALID", "What was stored are no bytes.");
      blocks.push(
        toBytesBlock(
          { uri, blob, mimeType: typeof mimeType === "string" ? mimeType : undefined },
          block._meta,
        ),
      );
    } catch (cause) {
      if (isCallError(cause) && cause.code === "ABORTED") throw cause;
      const name = JSON.stringify(tool.slice(0, 200));
      warn(`The tool ${name} sent a link to bytes that cannot be read: the link is in their place.`, cause);
      blocks.push(block);
    }
  }
  return { ...(result as Fields), content: blocks };
}

/** What a result says of itself, without what it said of being cut. */
export function withoutCut(said: SaidFacts | undefined, { uri }: WholeData): SaidFacts | undefined {
  if (said === undefined) return undefined;
  const { truncated: _, nextSteps = [], content = [], ...others } = said;
  const steps = nextSteps.filter((step) => !step.includes(uri));
  const blocks = content.filter(
    (block) =>
      !(block.type === "resource_link" && block.uri === uri) && !textOf(block)?.startsWith(`Read ${uri} `),
  );
  return {
    ...others,
    ...(steps.length > 0 && { nextSteps: steps }),
    ...(blocks.length > 0 && { content: blocks }),
  };
}

/** Puts whole data into an envelope that fills the structured content, where it has its one place; a tool envelope is in the text. */
export function withWholeData(structured: unknown, { data }: WholeData): unknown {
  return isPlainObject(structured) && Object.hasOwn(structured, "data")
    ? { ...structured, data }
    : structured;
}

function dataOf(value: unknown): unknown {
  if (isPlainObject(value) && Object.hasOwn(value, "data")) return value["data"];
  throw new CallError("OUTPUT_INVALID", "What was stored is no envelope.");
}

function factsOf(result: unknown): Fields | undefined {
  const meta = isPlainObject(result) ? result["_meta"] : undefined;
  const facts =
    isPlainObject(meta) && Object.hasOwn(meta, RESULT_META_KEY) ? meta[RESULT_META_KEY] : undefined;
  return isPlainObject(facts) ? facts : undefined;
}

function readJson({ contents }: Fields): unknown {
  const [first]: readonly unknown[] = Array.isArray(contents) ? contents : [];
  const text = isPlainObject(first) ? first["text"] : undefined;
  if (typeof text !== "string") throw new CallError("OUTPUT_INVALID", "What was stored is no text.");
  const value: unknown = JSON.parse(text);
  if (isTooDeep(text, value, undefined)) {
    throw new CallError("OUTPUT_INVALID", "What was stored is nested too deeply.");
  }
  return value;
}
