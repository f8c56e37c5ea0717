import { joinPointer } from "../json/json-pointer.ts";
import { evaluate } from "./evaluate.ts";
import { evaluateAdditional } from "./evaluate-object.ts";
import type { Evaluated, Evaluation } from "./evaluation.ts";
import type { SchemaNode } from "./schema-node.ts";

/** Checks the parts that no other keyword looked at, and counts them as looked at. */
export function evaluateUnevaluated(
  node: SchemaNode,
  value: object,
  run: Evaluation,
  pointer: string,
  seen: Evaluated,
): boolean {
  if (Array.isArray(value)) {
    return (
      node.unevaluatedItems === undefined || evaluateItems(node.unevaluatedItems, value, run, pointer, seen)
    );
  }
  const rest = node.unevaluatedProperties;
  if (rest === undefined || seen.allProperties) return true;
  let passed = true;
  for (const key of run.keysOf(value)) {
    if (seen.properties.has(key)) continue;
    const part = (value as Record<string, unknown>)[key];
    passed = evaluateAdditional(rest, part, run, joinPointer(pointer, key)) && passed;
  }
  seen.allProperties = true;
  return passed;
}

function evaluateItems(
  rest: SchemaNode,
  value: readonly unknown[],
  run: Evaluation,
  pointer: string,
  seen: Evaluated,
): boolean {
  if (seen.allItems) return true;
  let passed = true;
  run.step((value.length - seen.items) >> 2);
  for (let i = seen.items; i < value.length; i++) {
    if (seen.singleItems.has(i)) continue;
    passed = evaluate(rest, value[i], run, joinPointer(pointer, i), undefined) && passed;
  }
  seen.allItems = true;
  return passed;
}
