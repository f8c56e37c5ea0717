import { joinPointer } from "../json/json-pointer.ts";
import { hasDuplicates } from "./compare-values.ts";
import { evaluate, passesQuietly } from "./evaluate.ts";
import { type Evaluated, type Evaluation, LARGE, plural, STEPS_IN_LARGE } from "./evaluation.ts";
import type { ArrayRules } from "./schema-node.ts";

/** Checks an array's items; counts them as looked at in `seen`. */
export function evaluateArray(
  rules: ArrayRules,
  value: readonly unknown[],
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  const goOn = run.issues !== undefined;
  let passed = evaluateSize(rules, value, run, pointer);
  if (!passed && !goOn) return false;
  const { prefix, items } = rules;
  const end = items === undefined ? Math.min(prefix.length, value.length) : value.length;
  for (let i = 0; i < end; i++) {
    const child = prefix[i] ?? items;
    if (child === undefined) break;
    passed = evaluate(child, value[i], run, goOn ? joinPointer(pointer, i) : "", undefined) && passed;
    if (!passed && !goOn) return false;
  }
  if (seen !== undefined) {
    seen.items = Math.max(seen.items, end);
    seen.allItems ||= items !== undefined;
  }
  return evaluateContains(rules, value, run, pointer, seen) && passed;
}

function evaluateSize(
  rules: ArrayRules,
  value: readonly unknown[],
  run: Evaluation,
  pointer: string,
): boolean {
  const { minItems, maxItems, unique } = rules;
  if (value.length < minItems) return run.fail(pointer, `at least ${plural(minItems, "item")}`, value);
  if (value.length > maxItems) return run.fail(pointer, `at most ${plural(maxItems, "item")}`, value);
  if (unique && hasDuplicates(value, run)) return run.fail(pointer, "items that all differ", value);
  return true;
}

function evaluateContains(
  rules: ArrayRules,
  value: readonly unknown[],
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  const { contains, minContains, maxContains } = rules;
  if (contains === undefined) return true;
  // Further matches matter to a bound on them, and to those who ask which items were looked at.
  const enough =
    seen === undefined && maxContains === Number.POSITIVE_INFINITY ? minContains : maxContains + 1;
  let matches = 0;
  for (let i = 0; i < value.length && matches < enough; i++) {
    if (!passesQuietly(contains, value[i], run, undefined)) continue;
    matches++;
    if (seen === undefined) continue;
    if (matches > LARGE) run.step(STEPS_IN_LARGE);
    seen.singleItems.add(i);
  }
  if (matches < minContains) {
    return run.fail(pointer, `at least ${plural(minContains, "item")} matching "contains"`, value);
  }
  if (matches > maxContains) {
    return run.fail(pointer, `at most ${plural(maxContains, "item")} matching "contains"`, value);
  }
  return true;
}
