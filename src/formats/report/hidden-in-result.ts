import { isPlainObject } from "../../core/json/json-value.ts";
import { cleanText, describeFindings, type TextFinding } from "../../core/text/clean-text.ts";
import type { Oddity } from "../codec.ts";
import type { DecodedToolResult } from "../decode-tool-result.ts";

/** What hides in the text for people, and in the texts of the data. */
export function hiddenIn({
  text,
  data,
  obtained,
}: Pick<DecodedToolResult, "text" | "data" | "obtained">): readonly Oddity[] {
  const odd: Oddity[] = [];
  const inText = cleanText(text).findings;
  if (inText.length > 0) odd.push({ code: "hidden_in_text", message: hiding("The text", inText) });
  // Without structured data, the data is the same text once more.
  const inData = obtained === "content" ? [] : findingsIn(data);
  if (inData.length > 0) odd.push({ code: "hidden_in_data", message: hiding("The data", inData) });
  return odd;
}

function hiding(what: string, findings: readonly TextFinding[]): string {
  return `${what} holds characters that people do not see or terminals act on: ${describeFindings(findings)}.`;
}

function findingsIn(data: unknown): readonly TextFinding[] {
  const counts = new Map<TextFinding["kind"], number>();
  const left: unknown[] = [data];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next === "string") {
      for (const { kind, count } of cleanText(next).findings)
        counts.set(kind, (counts.get(kind) ?? 0) + count);
    } else if (Array.isArray(next)) for (const item of next) left.push(item);
    else if (isPlainObject(next)) for (const [key, member] of Object.entries(next)) left.push(key, member);
  }
  return Array.from(counts, ([kind, count]) => ({ kind, count }));
}
