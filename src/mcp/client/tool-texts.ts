import { isPlainObject } from "../../core/json/json-value.ts";
import { cleanText, describeFindings, type TextFinding } from "../../core/text/clean-text.ts";
import { findHidden } from "../../core/text/find-hidden.ts";

/** The texts of a tool as people see them, and what hides in all it says. */
export interface ToolTexts {
  readonly title: string | undefined;
  readonly description: string;
  /** The texts as they came, of those that were cleaned. */
  readonly original: Readonly<Record<string, string>>;
  /** By field; the schemas count as one each. */
  readonly findings: Readonly<Record<string, readonly TextFinding[]>>;
  /** One sentence for each field with findings. */
  readonly notes: readonly string[];
}

const SCHEMAS = ["inputSchema", "outputSchema"] as const;

/**
 * Cleans the texts people see; the title of the annotations stands in for one that is missing, as the protocol wants. Schemas have
 * to stay as they are, or arguments would miss them: what hides there is found and said.
 */
export function cleanTexts(tool: Readonly<Record<string, unknown>>): ToolTexts {
  const hints = isPlainObject(tool["annotations"]) ? tool["annotations"] : {};
  const original: Record<string, string> = {};
  const findings: Record<string, readonly TextFinding[]> = {};
  const notes: string[] = [];
  const report = (field: string, found: readonly TextFinding[], rest: string): void => {
    if (found.length === 0) return;
    findings[field] = found;
    notes.push(`Its ${field} holds hidden characters (${describeFindings(found)}); ${rest}.`);
  };
  const clean = (field: string, text: unknown): string | undefined => {
    if (typeof text !== "string") return undefined;
    const cleaned = cleanText(text);
    if (cleaned.text !== text) original[field] = text;
    report(field, cleaned.findings, "they are not shown");
    return cleaned.text;
  };
  clean("name", tool["name"]);
  const title = clean("title", tool["title"]);
  const fallback = clean("annotations.title", hints["title"]);
  const description = clean("description", tool["description"]) ?? "";
  for (const field of SCHEMAS) report(field, findHidden(tool[field]), "it is used as it came");
  return { title: title ?? fallback, description, original, findings, notes };
}
