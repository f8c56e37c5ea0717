import type { MCPContentBlock } from "../../core/envelope/content-block.ts";
import { toJsonTextOrNone } from "../../core/json/json-value.ts";
import { layOutResult } from "../../core/result/human-text.ts";
import { type CallToolResult, type ToolResult, textOf } from "../../core/result/tool-result.ts";
import { type Carrier, isUnusual, readCarrier, unusualParts, writeCarrier } from "../carrier.ts";
import { createCodec, type Decoded, type Oddity } from "../codec.ts";
import { writeFormatJson } from "../format-error.ts";

/** MCP's own result: the data as structured content, and its JSON as text unless there is something better to read. */
export const plainCodec = createCodec<CallToolResult>({
  name: "mcp",

  write(result) {
    const hasData = result.data !== undefined && result.extra?.mcp?.["textOnly"] !== true;
    return writeCarrier("mcp", result, {
      content: contentOf(result),
      ...(hasData && { structured: { value: result.data } }),
      flag: flagOf(result.isError),
    });
  },

  read(value) {
    const carrier = readCarrier(value);
    return { ...readPlain(carrier), residual: carrier.residual };
  },
});

function contentOf(result: ToolResult): readonly MCPContentBlock[] {
  if (result.content === undefined) return derivedContent(result);
  const showsData = result.extra?.mcp?.["showsData"] === true && result.data !== undefined;
  return layOutResult(result, showsData ? writeFormatJson(result.data) : undefined);
}

/** Reads a result that no other format claims; field by field, because most results are read here. */
export function readPlain(carrier: Carrier): Decoded {
  const isError = carrier.flag === true;
  const result: { -readonly [K in keyof ToolResult]: ToolResult[K] } = { isError };
  if (carrier.hasStructured) result.data = carrier.structured;
  if (carrier.hasContent && !isDerivedContent(carrier.content, result)) {
    result.content = carrier.content as readonly MCPContentBlock[];
  }
  if (carrier.meta !== undefined) result._meta = carrier.meta;
  if (isUnusual(carrier, flagOf(isError))) {
    result.extra = { mcp: unusualParts(carrier, flagOf(isError)) };
  }
  return { result, obtained: carrier.hasStructured ? "structured-content" : "content", odd: NOTHING_ODD };
}

const NOTHING_ODD: readonly Oddity[] = Object.freeze([]);

/** What people read when nobody wrote them a text: what the result says, and its data as JSON. */
export function derivedContent(result: ToolResult): readonly MCPContentBlock[] {
  const { content: _, ...bare } = result;
  return layOutResult(bare, showsData(result) ? writeFormatJson(result.data) : undefined);
}

/** An error that says why shows no `null` beside it. */
function showsData(result: ToolResult): boolean {
  const { data, isError } = result;
  return data !== undefined && !(data === null && isError && saysMore(result));
}

/** Tells whether blocks are just what `derivedContent` makes. */
export function isDerivedContent(content: readonly unknown[], result: ToolResult): boolean {
  const hasData = showsData(result);
  // Most results say nothing of themselves: their text is the data and nothing else.
  if (!saysMore(result) && content.length !== (hasData ? 1 : 0)) return false;
  const data = hasData ? toJsonTextOrNone(result.data) : undefined;
  if (hasData && data === undefined) return false;
  const { content: _, ...bare } = result;
  const derived = layOutResult(bare, data);
  return (
    content.length === derived.length && derived.every((block, i) => isTextBlock(content[i], textOf(block)))
  );
}

function saysMore({ error, summary, details, nextSteps }: ToolResult): boolean {
  return error !== undefined || summary !== undefined || details !== undefined || nextSteps !== undefined;
}

/** A block with annotations is more than its text. */
function isTextBlock(block: unknown, text: string | undefined): boolean {
  return text !== undefined && textOf(block) === text && Object.keys(block as object).length === 2;
}

function flagOf(isError: boolean): true | undefined {
  return isError ? true : undefined;
}
