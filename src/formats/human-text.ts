import { textOf } from "../core/result/call-tool-result.ts";
import type { ToolResult } from "../core/result/tool-result.ts";
import { renderToolError } from "./tool-envelope/render-error.ts";

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

/** What people are told when nobody wrote them a text: derived from the error, or from summary, details and next steps. */
export function describeResult(result: ToolResult): string[] {
  const { error, status, summary, details = [], nextSteps = [], isError } = result;
  const texts: string[] = [];
  if (summary !== undefined) texts.push(headline(status ?? (isError ? "error" : "ok"), summary));
  else if (error !== undefined) texts.push(renderToolError(error));
  texts.push(...details.filter((detail) => !isBlank(detail)));
  if (nextSteps.length > 0) texts.push(nextStepsText(nextSteps));
  return texts;
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
