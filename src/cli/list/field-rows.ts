import { isObject, type JsonSchema, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { memberSchemas, membersOf, partsOf, typesOf } from "../call/input-schema.ts";
import { toSafeJson } from "../terminal/json-output.ts";

/** One field of an input or output, fit for a table. */
export interface FieldRow {
  /** With dots for members and `[]` for items. */
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly default: string;
  readonly description: string;
}

const MOST_ROWS = 200;
const MOST_LEVELS = 4;

/** The fields of a value that a schema describes, nested ones after what holds them. */
export function fieldRows(root: JsonSchema): readonly FieldRow[] {
  const rows: FieldRow[] = [];
  const visit = (parts: readonly JsonSchemaObject[], prefix: string, level: number): void => {
    const { names, required } = membersOf(parts);
    for (const name of names) {
      if (rows.length >= MOST_ROWS) return;
      const members = memberSchemas(parts, name, root) as JsonSchemaObject[];
      const path = `${prefix}${name}`;
      rows.push(rowOf(path, members, required.has(name), root));
      if (level >= MOST_LEVELS) continue;
      visit(members, `${path}.`, level + 1);
      const items = itemParts(members, root);
      if (items.length > 0) visit(items, `${path}[].`, level + 1);
    }
  };
  const top = partsOf(root, root);
  visit(top, "", 0);
  const items = itemParts(top, root);
  if (items.length > 0) visit(items, "[].", 0);
  return rows;
}

function itemParts(parts: readonly JsonSchemaObject[], root: JsonSchema): readonly JsonSchemaObject[] {
  return parts.flatMap(({ items }) => (isObject(items) ? partsOf(items, root) : []));
}

function rowOf(
  name: string,
  parts: readonly JsonSchemaObject[],
  required: boolean,
  root: JsonSchema,
): FieldRow {
  const described = parts.find(({ description }) => typeof description === "string");
  const defaulted = parts.find((part) => Object.hasOwn(part, "default"));
  return {
    name,
    type: typeText(parts, root),
    required,
    default: defaulted === undefined ? "" : toSafeJson(defaulted["default"]),
    description: typeof described?.["description"] === "string" ? described["description"] : "",
  };
}

/** Words for what values a schema takes. */
export function typeText(parts: readonly JsonSchemaObject[], root: JsonSchema): string {
  const listed = parts.flatMap((part) => {
    const { enum: values } = part;
    if (Object.hasOwn(part, "const")) return [part["const"]];
    return Array.isArray(values) ? values : [];
  });
  if (listed.length > 0) {
    const shown = listed.slice(0, 8).map((value) => (typeof value === "string" ? value : toSafeJson(value)));
    return shown.join(" | ") + (listed.length > 8 ? " | …" : "");
  }
  const types = [...typesOf(parts)];
  if (types.length === 0) return "any";
  return types.map((type) => oneType(type, parts, root)).join(" | ");
}

function oneType(type: string, parts: readonly JsonSchemaObject[], root: JsonSchema): string {
  if (type === "array") {
    const items = itemParts(parts, root);
    return items.length === 0 ? "array" : `${[...typesOf(items)].join("|") || "any"}[]`;
  }
  const bounds = boundsText(type, parts);
  const format = parts.find((part) => typeof part["format"] === "string")?.["format"];
  const kind = type === "string" && typeof format === "string" ? `string (${format})` : type;
  return bounds === "" ? kind : `${kind} ${bounds}`;
}

function boundsText(type: string, parts: readonly JsonSchemaObject[]): string {
  if (type !== "number" && type !== "integer") return "";
  const least = numberAt(parts, "minimum");
  const most = numberAt(parts, "maximum");
  if (least !== undefined && most !== undefined) return `${least}–${most}`;
  return least !== undefined ? `≥ ${least}` : most !== undefined ? `≤ ${most}` : "";
}

function numberAt(parts: readonly JsonSchemaObject[], word: string): number | undefined {
  const found = parts.find((part) => typeof part[word] === "number")?.[word];
  return typeof found === "number" ? found : undefined;
}
