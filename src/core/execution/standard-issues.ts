import type { StandardSchemaV1 } from "@standard-schema/spec";
import { joinPointer } from "../json/json-pointer.ts";
import { clipPointer, describeValue } from "../schema/evaluation.ts";
import { MAX_ISSUES } from "../schema/limits.ts";
import type { SchemaIssue } from "../schema/schema-issue.ts";

const MAX_MESSAGE = 500;

/** Puts what a Standard Schema found into the words of every other schema. */
export function toSchemaIssues(issues: readonly StandardSchemaV1.Issue[], value: unknown): SchemaIssue[] {
  const found = issues.map(({ message, path = [] }) => {
    const keys = path.map((segment) => (typeof segment === "object" ? segment.key : segment));
    const pointer = clipPointer(keys.reduce(pointTo, ""));
    const expected = String(message).slice(0, MAX_MESSAGE);
    return { pointer, expected, found: describeValue(readPath(value, keys)) };
  });
  return found.sort((a, b) => a.pointer.length - b.pointer.length).slice(0, MAX_ISSUES);
}

function pointTo(pointer: string, key: PropertyKey): string {
  return joinPointer(pointer, String(key));
}

function readPath(value: unknown, keys: readonly PropertyKey[]): unknown {
  let current = value;
  for (const key of keys) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) return undefined;
    current = Reflect.get(current, key);
  }
  return current;
}
