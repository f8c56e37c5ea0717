import { isObject } from "../../../core/schema/json-schema.ts";
import { findReference } from "../../../core/schema/schema-view.ts";
import type { JsonSchemaView } from "../../protocol.ts";
import { ownOf } from "../form/form-json.ts";

/** An input as it may be kept, and whether something was left out. */
export interface KeptInput {
  readonly value: unknown;
  readonly isPartial: boolean;
}

const MOST_DEPTH = 60;
const MOST_SCHEMAS = 300;

/** Stands for a value that must not be kept. */
const LEFT_OUT = Symbol("left out");

const SECRET_NAME =
  /pass(?:word|wd|phrase|code)|secret|token|api[-_ ]?key|private[-_ ]?key|credential|authorization|bearer|cookie/i;
const OPEN_NAME = /page|next|cursor|continuation/i;

/**
 * Leaves out what a schema calls secret (`writeOnly`, `format: "password"`) and what has the name of one; nothing is
 * returned where the whole input is. Wherever it cannot be told which part of a schema applies, all of them do.
 */
export function withoutSecrets(schema: JsonSchemaView | undefined, value: unknown): KeptInput | undefined {
  const walk = new SecretWalk(schema);
  const kept = walk.visit(value, schema === undefined ? [] : [schema], 0);
  return kept === LEFT_OUT ? undefined : { value: kept, isPartial: walk.isPartial };
}

class SecretWalk {
  readonly #root: JsonSchemaView | undefined;
  isPartial = false;

  constructor(root: JsonSchemaView | undefined) {
    this.#root = root;
  }

  visit(value: unknown, schemas: readonly unknown[], depth: number): unknown {
    const all = this.#applying(schemas);
    if (all === undefined || depth > MOST_DEPTH || all.some(isSecret)) return LEFT_OUT;
    if (Array.isArray(value)) {
      const kept = value.map((item, index) => this.visit(item, schemasBelow(all, index), depth + 1));
      // A list without one of its items would be another list.
      return kept.includes(LEFT_OUT) ? LEFT_OUT : kept;
    }
    if (!isObject(value)) return value;
    const kept: Record<string, unknown> = Object.create(null);
    for (const [name, member] of Object.entries(value)) {
      const left = hasSecretName(name, member)
        ? LEFT_OUT
        : this.visit(member, schemasBelow(all, name), depth + 1);
      if (left === LEFT_OUT) this.isPartial = true;
      else kept[name] = left;
    }
    return kept;
  }

  /** The schemas and all they refer to; nothing where that cannot be known. */
  #applying(schemas: readonly unknown[]): readonly JsonSchemaView[] | undefined {
    const found = new Set<JsonSchemaView>();
    const open = [...schemas];
    while (open.length > 0) {
      const schema = open.pop();
      if (!isObject(schema) || found.has(schema)) continue;
      found.add(schema);
      if (found.size > MOST_SCHEMAS) return undefined;
      for (const word of ["$ref", "$dynamicRef", "$recursiveRef"]) {
        const reference = ownOf(schema, word);
        if (reference === undefined) continue;
        const target = typeof reference === "string" ? findReference(reference, this.#root) : undefined;
        if (target === undefined) return undefined;
        open.push(target);
      }
      for (const word of ["if", "then", "else"]) open.push(ownOf(schema, word));
      for (const word of ["allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"])
        open.push(...valuesOf(schema, word));
    }
    return [...found];
  }
}

function isSecret(schema: JsonSchemaView): boolean {
  return ownOf(schema, "writeOnly") === true || ownOf(schema, "format") === "password";
}

/** Numbers and switches are no secrets, whatever they are called. */
function hasSecretName(name: string, value: unknown): boolean {
  return /string|object/.test(typeof value) && SECRET_NAME.test(name) && !OPEN_NAME.test(name);
}

const NAMED = ["properties", "prefixItems", "items"];
const OTHERS = [
  "items",
  "additionalItems",
  "unevaluatedItems",
  "contains",
  "additionalProperties",
  "unevaluatedProperties",
];

/** What may be said of a member or an item. Patterns come with the schema and are not run: each of them is taken to match. */
function schemasBelow(schemas: readonly JsonSchemaView[], key: string | number): readonly unknown[] {
  return schemas.flatMap((schema) => [
    ...NAMED.map((word) => ownOf(ownOf(schema, word), String(key))),
    ...OTHERS.map((word) => ownOf(schema, word)),
    ...valuesOf(schema, "patternProperties"),
  ]);
}

function valuesOf(schema: JsonSchemaView, word: string): readonly unknown[] {
  return Object.values(ownOf(schema, word) ?? {}).slice(0, MOST_SCHEMAS + 1);
}
