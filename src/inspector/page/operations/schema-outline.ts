import type { JsonSchemaView } from "../../protocol.ts";
import { findReference, flattenSchema } from "../form/flatten-schema.ts";
import { isObject, type JsonObject, listIn, membersIn, ownOf } from "../form/json-value.ts";
import { schemaNotes, schemaType } from "./schema-words.ts";

/** One place of a schema, as people read it. */
export interface OutlineRow {
  readonly depth: number;
  /** Empty for the schema itself. */
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly notes: readonly string[];
  readonly description: string;
}

interface Child {
  readonly name: string;
  readonly schema: unknown;
  readonly isRequired?: boolean;
}

interface Place extends Child {
  readonly depth: number;
  /** Where references led to on the way here; the same place again is a circle. */
  readonly passed: readonly unknown[];
}

const MOST_DEPTH = 12;

/** Reads a schema as an outline: what stands where, of which type, and what else is asked of it; at most so many rows. */
export function schemaOutline(schema: JsonSchemaView, most: number): readonly OutlineRow[] {
  const rows: OutlineRow[] = [];
  const open: Place[] = [{ name: "", schema, depth: 0, passed: [schema] }];
  for (let place = open.pop(); place !== undefined && rows.length < most; place = open.pop()) {
    const { name, depth, passed, isRequired = false } = place;
    const reference = ownOf(place.schema, "$ref");
    const target = typeof reference === "string" ? findReference(reference, schema) : place;
    const isEnd = target === undefined || passed.includes(target);
    const flat = flattenSchema(place.schema, schema);
    const notes = [...schemaNotes(flat?.keywords)];
    let below = flat === undefined || isEnd ? [] : childrenOf(flat.keywords, flat.choices, most);
    if (isEnd) notes.push(`see ${String(reference)}`);
    if (depth >= MOST_DEPTH && below.length > 0) {
      notes.push("deeper levels are in the JSON");
      below = [];
    }
    const type = flat?.choices.length ? "one of several forms" : schemaType(flat?.keywords);
    rows.push({ depth, name, type, isRequired, notes, description: textOf(flat?.keywords, name) });
    for (const child of below.reverse())
      open.push({ ...child, depth: depth + 1, passed: [...passed, target] });
  }
  return rows;
}

function childrenOf(keywords: JsonObject, choices: readonly (readonly unknown[])[], most: number): Child[] {
  const required = new Set([ownOf(keywords, "required")].flat());
  const others = ownOf(keywords, "additionalProperties");
  const items = ownOf(keywords, "items");
  const first = ownOf(keywords, "prefixItems") ?? items;
  const tuple = listIn(first);
  return [
    ...entriesOf(keywords, "properties", most).map(([name, schema]) => ({
      name,
      schema,
      isRequired: required.has(name),
    })),
    ...entriesOf(keywords, "patternProperties", most).map(([name, schema]) => ({
      name: `names like ${name}`,
      schema,
    })),
    ...(isObject(others) ? [{ name: "any other name", schema: others }] : []),
    ...tuple.slice(0, most).map((schema, index) => ({ name: `item ${index + 1}`, schema })),
    ...(isObject(items) ? [{ name: "each item", schema: items }] : []),
    ...choices.flatMap((variants) => variants.slice(0, most).map(toVariant)),
  ];
}

function toVariant(schema: unknown, index: number): Child {
  const title = ownOf(schema, "title");
  return { name: `one of · ${typeof title === "string" ? title : index + 1}`, schema };
}

function entriesOf(keywords: JsonObject, name: string, most: number): readonly [string, unknown][] {
  return Object.entries(membersIn(ownOf(keywords, name))).slice(0, most);
}

/** The description, or the title where that is all there is and the name does not say it. */
function textOf(keywords: JsonObject = {}, name: string): string {
  const [title, description] = [ownOf(keywords, "title"), ownOf(keywords, "description")];
  if (typeof description === "string" && description !== "") return description;
  return typeof title === "string" && !name.endsWith(title) ? title : "";
}
