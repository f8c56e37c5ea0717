import { createHash } from "node:crypto";
import type { JsonValue } from "../../../core/json/json-value.ts";

/** The fields of a tool that a model sees. */
const SEEN_FIELDS = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"] as const;

/** What is approved of a tool: all that a model sees of it, as the server sent it. */
export type ToolDefinition = Readonly<Record<string, JsonValue>>;

/** Picks what is approved of a tool; `operation` is what it says of the operation behind it, where ids are kept. */
export function toDefinition(
  tool: Readonly<Record<string, unknown>>,
  operation?: Readonly<Record<string, unknown>>,
): ToolDefinition {
  const definition: Record<string, JsonValue> = {};
  for (const field of SEEN_FIELDS) {
    if (Object.hasOwn(tool, field) && tool[field] !== undefined) definition[field] = tool[field] as JsonValue;
  }
  if (operation !== undefined) definition["operation"] = operation as JsonValue;
  return definition;
}

/** Writes plain JSON so that equal values give equal text, with keys in the order of RFC 8785. */
export function canonicalJson(value: JsonValue): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const members = value as Readonly<Record<string, JsonValue>>;
  const keys = Object.keys(members)
    .filter((key) => members[key] !== undefined)
    .sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(members[key] as JsonValue)}`).join()}}`;
}

/** Gives the hash under which a definition is approved: `sha256-` and base64. */
export function hashDefinition(definition: ToolDefinition): string {
  return `sha256-${createHash("sha256").update(canonicalJson(definition), "utf8").digest("base64")}`;
}
