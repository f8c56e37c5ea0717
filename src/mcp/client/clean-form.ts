import { isPlainObject, setOwn } from "../../core/json/json-value.ts";
import { cleanText } from "../../core/text/clean-text.ts";

/** What of a form people read; all else is what programs compare. */
const SHOWN = new Set(["title", "description"]);
/** What holds values or patterns, in which nothing is a text for people. */
const VALUES = new Set(["const", "enum", "default", "examples", "pattern", "required"]);

/** Copies the schema of a form with the texts that people see cleaned; names and values of fields stay as they are. */
export function cleanForm(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) setOwn(copy, key, cleanMember(key, value));
  return copy;
}

function cleanMember(key: string, value: unknown): unknown {
  if (typeof value === "string") return SHOWN.has(key) ? cleanText(value).text : value;
  if (VALUES.has(key)) return value;
  if (key === "enumNames" && Array.isArray(value)) {
    return value.map((name: unknown) => (typeof name === "string" ? cleanText(name).text : name));
  }
  if (key === "properties" && isPlainObject(value)) return cleanFields(value);
  if (Array.isArray(value))
    return value.map((item: unknown) => (isPlainObject(item) ? cleanForm(item) : item));
  return isPlainObject(value) ? cleanForm(value) : value;
}

/** Fields may have any name, `default` too. */
function cleanFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    setOwn(copy, name, isPlainObject(field) ? cleanForm(field) : field);
  }
  return copy;
}
