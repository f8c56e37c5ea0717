import { joinPointer } from "../json/json-pointer.ts";
import { setOwn } from "../json/json-value.ts";
import { refuseFunctions, refuseInstance } from "./any-schema.ts";
import { isRecord } from "./compare-values.ts";
import { isSchema, type JsonSchema } from "./json-schema.ts";
import type { SchemaLimits } from "./limits.ts";
import { SchemaError } from "./schema-issue.ts";

interface Snapshot {
  readonly limits: SchemaLimits;
  readonly open: Set<object>;
  length: number;
  /** The deepest level so far. */
  deepest: number;
}

/** Copies that were made: they are frozen all through, so that no other is made of them. */
const copies = new WeakMap<object, Pick<Snapshot, "length" | "deepest">>();

/** Copies a schema into frozen plain JSON, so that later changes to the original cannot reach what was vetted; parts that are such copies stay. */
export function snapshotSchema(schema: unknown, limits: SchemaLimits): JsonSchema {
  if (!isSchema(schema)) {
    throw new SchemaError(
      `A schema must be an object or a boolean, not ${describe(schema)}; use Type from waybill, a JSON Schema, or a Standard Schema that gives its JSON Schema.`,
    );
  }
  const state: Snapshot = { limits, open: new Set(), length: 0, deepest: 0 };
  const copied = copy(schema, "", 0, state) as JsonSchema;
  if (typeof copied === "object" && copied !== schema) {
    copies.set(copied, { length: state.length, deepest: state.deepest });
  }
  return copied;
}

function describe(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : typeof value;
}

function copy(value: unknown, pointer: string, depth: number, state: Snapshot): unknown {
  if (typeof value === "object" && value !== null) return copyContainer(value, pointer, depth, state);
  grow(state, typeof value === "string" ? value.length + 2 : 5);
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new SchemaError(`A schema holds JSON only, not ${nameOf(value)}.`, pointer);
}

function nameOf(value: unknown): string {
  return typeof value === "number" || value === undefined ? String(value) : `a ${typeof value}`;
}

function copyContainer(value: object, pointer: string, depth: number, state: Snapshot): unknown {
  const known = copies.get(value);
  state.deepest = Math.max(state.deepest, depth + (known?.deepest ?? 0));
  if (state.deepest > state.limits.schemaDepth) {
    throw new SchemaError(`The schema is nested deeper than ${state.limits.schemaDepth} levels.`);
  }
  if (known !== undefined) {
    grow(state, known.length);
    return value;
  }
  if (state.open.has(value)) {
    throw new SchemaError("The schema object contains itself; use $ref for recursion.", pointer);
  }
  state.open.add(value);
  grow(state, 2);
  const result = Array.isArray(value)
    ? Array.from(value, (item, i) => copy(item, joinPointer(pointer, i), depth + 1, state))
    : copyObject(value, pointer, depth, state);
  state.open.delete(value);
  return Object.freeze(result);
}

function copyObject(value: object, pointer: string, depth: number, state: Snapshot): object {
  refuseFunctions(value, pointer);
  if (!isRecord(value)) {
    throw new SchemaError(
      `A schema holds JSON only, not a ${value.constructor?.name ?? "special object"}.`,
      pointer,
    );
  }
  refuseInstance(value, pointer);
  const source = value;
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(source)) {
    const entry = source[key];
    if (entry === undefined) continue;
    grow(state, key.length + 4);
    const copied = copy(entry, joinPointer(pointer, key), depth + 1, state);
    setOwn(result, key, copied);
  }
  return result;
}

function grow(state: Snapshot, length: number): void {
  state.length += length;
  if (state.length > state.limits.schemaLength) {
    throw new SchemaError(`The schema is longer than ${state.limits.schemaLength} characters.`);
  }
}
