import type { MCPContentBlock } from "../envelope/content-block.ts";
import { ERROR_CODES, isErrorCode } from "../errors/error-codes.ts";
import { toJsonTextOrNone } from "../json/json-value.ts";
import type { AnyOperation, ErrorDeclaration } from "../operation/operation-types.ts";
import { type ResultError, type ToolResult, textBlock, textOf } from "./tool-result.ts";

/** The emoji of each status, with the space after it. */
const EMOJI = { ok: "✅ ", error: "❌ ", info: "ℹ️ ", warn: "⚠️ " } as const;

/** The one-line headline of a status and its summary. */
export function headline(status: keyof typeof EMOJI, summary: string): string {
  return EMOJI[status] + summary;
}

/** The block of next steps, for hosts that show nothing but text. */
export function nextStepsText(steps: readonly string[]): string {
  return `Next steps:\n${steps.map((step) => `- ${step}`).join("\n")}`;
}

/** Tells whether a text shows anything at all. */
export function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** Renders an error for people: `❌ Validation error [CODE]: message`, then details, suggestion and next tool where there are any. */
export function renderToolError(error: ResultError): string {
  const { code, message, details, suggestedAction, nextTool } = error;
  const { category = isErrorCode(code) ? ERROR_CODES[code].category : "execution" } = error;
  const lines = [`❌ ${titleOf(category)} error${code === undefined ? "" : ` [${code}]`}: ${message}`];
  const shown = typeof details === "string" ? details : toJsonTextOrNone(details);
  if (details !== undefined && shown !== undefined) lines.push(`Details: ${shown}`);
  if (suggestedAction !== undefined) lines.push(`Suggestion: ${suggestedAction}`);
  if (nextTool !== undefined) lines.push(`Next tool: ${nextTool}`);
  return lines.join("\n");
}

/** What an error advises, for people, as far as none of these texts says it: a text of somebody's own may leave it out. */
export function adviceText(
  { suggestedAction, nextTool }: Partial<ResultError>,
  texts: readonly string[],
): string | undefined {
  const lines: string[] = [];
  if (suggestedAction !== undefined && !texts.some((text) => text.includes(suggestedAction))) {
    lines.push(`Suggestion: ${suggestedAction}`);
  }
  if (nextTool !== undefined && !texts.some((text) => isToolNamed(text, nextTool))) {
    lines.push(`Next tool: ${nextTool}`);
  }
  return lines.length > 0 ? lines.join("\n") : undefined;
}

/** Tells whether a text names a tool: part of a word is no name, and neither is a plain word that nothing marks as one. */
function isToolNamed(text: string, tool: string): boolean {
  if (tool === "") return true;
  for (let at = text.indexOf(tool); at >= 0; at = text.indexOf(tool, at + 1)) {
    const [before, after] = [text.slice(Math.max(0, at - 20), at), text.slice(at + tool.length)];
    if (
      /[\p{L}\p{N}_]$|[\p{L}\p{N}_][./-]$/u.test(before) ||
      /^[\p{L}\p{N}_]|^[./-][\p{L}\p{N}_]/u.test(after)
    )
      continue;
    if (!/^\p{L}+$/u.test(tool) || /(?:[`"'“]|\b(?:[Cc]all|[Tt]ool:?) )$/u.test(before)) return true;
  }
  return false;
}

/** The texts among blocks. */
export function textsIn(blocks: readonly unknown[]): readonly string[] {
  return blocks.map(textOf).filter((text) => text !== undefined);
}

/** The sentence for an error that brought none: what its operation declares about the code, or what the table says. */
export function sentenceOf(code: string | undefined, operation: AnyOperation | undefined): string {
  const declared = code === undefined ? undefined : declarationOf(code, operation);
  return (
    declared?.description ??
    (isErrorCode(code) ? ERROR_CODES[code].message : "The operation reported an error.")
  );
}

/** What an operation declares about a code, in either of the two ways to declare errors. */
export function declarationOf(
  code: string,
  operation: AnyOperation | undefined,
): Omit<ErrorDeclaration, "code"> | undefined {
  const errors = operation?.errors ?? [];
  if (Array.isArray(errors)) return errors.find((declared: ErrorDeclaration) => declared.code === code);
  const byCode = errors as Readonly<Record<string, Omit<ErrorDeclaration, "code">>>;
  return Object.hasOwn(byCode, code) ? byCode[code] : undefined;
}

/** `rate_limit` reads as `Rate limit`; a category nobody knows yet is treated the same way. */
function titleOf(category: string): string {
  const words = category.replaceAll("_", " ").trim();
  return words === "" ? "Unknown" : words.charAt(0).toUpperCase() + words.slice(1);
}

/** What a result says for people, apart from its content: what comes first, and what comes last. */
export interface HumanTexts {
  /** The headline or the error, then the details. */
  readonly lead: readonly string[];
  /** What a text of somebody's own leaves out of the error's advice, and the next steps, a text each. */
  readonly end: readonly string[];
}

/** Says for people what the fields of a result say: error, summary, details, next steps. */
export function humanTexts(result: ToolResult): HumanTexts {
  const { error, status, summary, details = [], nextSteps = [], isError, content = [] } = result;
  const lead: string[] = [];
  const texts = textsIn(content);
  const isTold = texts.length > 0;
  if (summary !== undefined && (isTold || summary !== error?.message)) {
    // A helper takes an error of any status, and nobody is to read it as a success.
    lead.push(headline(isError ? "error" : (status ?? "ok"), summary));
  }
  // A text that somebody wrote for people says why already.
  if (error !== undefined && !isTold) lead.push(renderToolError(error));
  lead.push(...details.filter((detail) => !isBlank(detail)));
  const steps = nextSteps.filter((step) => !isBlank(step));
  const advice = error !== undefined && isTold ? adviceText(error, [...texts, ...steps]) : undefined;
  return {
    lead,
    end: [...(advice === undefined ? [] : [advice]), ...(steps.length > 0 ? [nextStepsText(steps)] : [])],
  };
}

/** What people are told when nobody wrote them a text: derived from the error, or from summary, details and next steps. */
export function describeResult(result: ToolResult): string[] {
  const { lead, end } = humanTexts(result);
  return [...lead, ...end];
}

/**
 * Puts blocks in their order: what a result says of itself, its content, its next steps, and the links that end the content. `data` is
 * shown where nothing in the content is text.
 */
export function layOutResult(result: ToolResult, data?: string): readonly MCPContentBlock[] {
  const { content = [] } = result;
  const { lead, end } = humanTexts(result);
  const isShown = data !== undefined && !content.some((block) => block.type === "text");
  const links = linksFrom(content);
  return [
    ...lead.map(textBlock),
    ...(isShown ? [textBlock(data)] : []),
    ...content.slice(0, links),
    ...end.map(textBlock),
    ...content.slice(links),
  ];
}

/** The blocks that are more than the data as text. */
export function blocksBesideData(
  blocks: readonly MCPContentBlock[],
  data: unknown,
): readonly MCPContentBlock[] {
  const texts = new Set([typeof data === "string" ? data : undefined, toJsonTextOrNone(data)]);
  return blocks.filter((block) => block.type !== "text" || !texts.has(block.text));
}

/** Where the links begin that end a list of blocks. */
export function linksFrom(blocks: readonly MCPContentBlock[]): number {
  let first = blocks.length;
  while (first > 0 && blocks[first - 1]?.type === "resource_link") first -= 1;
  return first;
}

/** The text blocks of a result, joined: what a host that shows only text shows. */
export function joinText(blocks: readonly unknown[]): string {
  let joined: string | undefined;
  for (let i = 0; i < blocks.length; i++) {
    const text = textOf(blocks[i]);
    if (text !== undefined) joined = joined === undefined ? text : `${joined}\n\n${text}`;
  }
  return joined ?? "";
}
