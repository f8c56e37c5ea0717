import type { ResultError } from "../../core/result/tool-result.ts";
import { toJsonText } from "../json-text.ts";

/** Renders an error for people: `❌ Validation error [CODE]: message`, then details and suggestion where there are any. */
export function renderToolError(error: ResultError): string {
  const { category = "execution", code, message, details, suggestedAction } = error;
  const lines = [`❌ ${titleOf(category)} error${code === undefined ? "" : ` [${code}]`}: ${message}`];
  if (details !== undefined)
    lines.push(`Details: ${typeof details === "string" ? details : toJsonText(details)}`);
  if (suggestedAction !== undefined) lines.push(`Suggestion: ${suggestedAction}`);
  return lines.join("\n");
}

/** `rate_limit` reads as `Rate limit`; a category nobody knows yet is treated the same way. */
function titleOf(category: string): string {
  const words = category.replaceAll("_", " ").trim();
  return words === "" ? "Unknown" : words.charAt(0).toUpperCase() + words.slice(1);
}
