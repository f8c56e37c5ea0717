import { isPlainObject } from "../json/json-value.ts";
import { issueText, type SchemaIssue } from "../schema/schema-issue.ts";
import { type CallToolResult, RESULT_META_KEY, textBlock, textOf } from "./tool-result.ts";

/** How many differences the text names; `_meta` has all of them. */
const SHOWN_ISSUES = 10;

const NO_STRUCTURE: SchemaIssue = { pointer: "", expected: "structured content", found: "none" };

/**
 * Writes a successful result that misses the schema its tool announces so that MCP clients hand it on: as an error result that says
 * that the tool ran and how its answer differs, with the data as text. Clients of the SDKs throw structured content away that misses
 * the schema, and everything else with it; it rides in `_meta`, from where `withoutMissedSchema` restores the result.
 */
export function withMissedSchema(
  result: CallToolResult,
  data: unknown,
  violations: readonly SchemaIssue[],
): CallToolResult {
  const { structuredContent, ...rest } = result;
  const issues = violations.length > 0 ? violations : [NO_STRUCTURE];
  const shown = data ?? structuredContent;
  const isShown = shown === undefined || isShownIn(result.content, shown);
  const added = [textBlock(sayMissed(issues)), ...(isShown ? [] : [textBlock(JSON.stringify(shown))])];
  const known = result._meta?.[RESULT_META_KEY];
  const facts = {
    ...(isPlainObject(known) && known),
    outcome: "ok",
    violations: issues,
    missed: { blocks: added.length, ...(structuredContent !== undefined && { structuredContent }) },
  };
  return {
    ...rest,
    content: [...added, ...result.content],
    isError: true,
    _meta: { ...result._meta, [RESULT_META_KEY]: facts },
  };
}

/**
 * The result that `withMissedSchema` wrote; nothing for any other. `_meta` alone turns no error into a success: what it restores must
 * miss the announced schema indeed, and its data must be what the text shows.
 */
export function withoutMissedSchema(
  result: Readonly<Record<string, unknown>>,
  misses: (structured: unknown) => boolean,
): Readonly<Record<string, unknown>> | undefined {
  const { isError, content, _meta: meta, ...rest } = result;
  const facts = isPlainObject(meta) ? meta[RESULT_META_KEY] : undefined;
  if (isError !== true || !Array.isArray(content) || !isPlainObject(meta) || !isPlainObject(facts)) return;
  const { outcome, missed, ...others } = facts;
  if (outcome !== "ok" || !isPlainObject(missed)) return;
  const { blocks, structuredContent = rest["structuredContent"] } = missed;
  if (blocks !== 1 && blocks !== 2) return;
  // Data that was too long to send has been read from where it is stored.
  const isFetched = rest["structuredContent"] !== undefined;
  if (structuredContent !== undefined) {
    if (!misses(structuredContent)) return;
    if (!isFetched && !partsOf(structuredContent).some((part) => isShownIn(content, part))) return;
  }
  return {
    ...rest,
    ...(structuredContent !== undefined && { structuredContent }),
    content: content.slice(blocks),
    _meta: { ...meta, [RESULT_META_KEY]: others },
  };
}

/** What of structured content is data: all of it, or what an envelope or the wrapper for 2025 clients holds. */
function partsOf(structured: unknown): readonly unknown[] {
  if (!isPlainObject(structured)) return [structured];
  return [structured, structured["data"], structured["result"]].filter((part) => part !== undefined);
}

function isShownIn(content: readonly unknown[], data: unknown): boolean {
  const json = JSON.stringify(data);
  return content.some((block) => {
    const text = textOf(block);
    return text !== undefined && (text === data || text.includes(json));
  });
}

function sayMissed(issues: readonly SchemaIssue[]): string {
  const lines = issues.slice(0, SHOWN_ISSUES).map((issue) => `- ${issueText(issue, "the result itself")}`);
  const left = issues.length - lines.length;
  return [
    "The tool ran, and its answer does not match the output schema it is listed with:",
    ...lines,
    ...(left > 0 ? [`- and ${left} more`] : []),
  ].join("\n");
}
