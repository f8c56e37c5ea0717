import { AllowedValues } from "./compare-values.ts";
import { evaluateArray } from "./evaluate-array.ts";
import { evaluateObject } from "./evaluate-object.ts";
import { evaluateUnevaluated } from "./evaluate-unevaluated.ts";
import { describeTypes, Evaluated, type Evaluation, plural, typeBits } from "./evaluation.ts";
import { countCodePoints, isMultipleOf } from "./measure-values.ts";
import type { SchemaIssue } from "./schema-issue.ts";
import type { NumberRules, SchemaNode, StringRules } from "./schema-node.ts";

/**
 * Checks `value` against `node`. With issues wanted it goes on after a failure, else it stops at the first.
 * `seen` takes note of the parts looked at, where a schema above asks for them.
 */
export function evaluate(
  node: SchemaNode,
  value: unknown,
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  run.step();
  if (node.constant !== undefined) return node.constant || run.fail(pointer, "nothing here", value);
  const { scope } = run;
  if (scope[scope.length - 1] === node.resource) return evaluateKeywords(node, value, run, pointer, seen);
  scope.push(node.resource);
  const passed = evaluateKeywords(node, value, run, pointer, seen);
  scope.pop();
  return passed;
}

function evaluateKeywords(
  node: SchemaNode,
  value: unknown,
  run: Evaluation,
  pointer: string,
  outer: Evaluated | undefined,
): boolean {
  const goOn = run.issues !== undefined;
  const asks = node.unevaluatedProperties !== undefined || node.unevaluatedItems !== undefined;
  const seen = asks ? new Evaluated() : outer;
  let passed = evaluateScalar(node, value, run, pointer);
  if (!passed && !goOn) return false;
  if (typeof value === "object" && value !== null) {
    passed = evaluateParts(node, value, run, pointer, seen) && passed;
    if (!passed && !goOn) return false;
  }
  if (node.isCompound) passed = evaluateCombinations(node, value, run, pointer, seen) && passed;
  if (!passed || !asks || seen === undefined) return passed;
  if (typeof value === "object" && value !== null) {
    run.descend();
    passed = evaluateUnevaluated(node, value, run, pointer, seen);
    run.ascend();
  }
  if (passed) outer?.merge(seen, run);
  return passed;
}

function evaluateParts(
  node: SchemaNode,
  value: object,
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  const { array, object } = node;
  let passed = true;
  if (Array.isArray(value)) {
    if (array === undefined) return true;
    run.descend();
    passed = evaluateArray(array, value, run, pointer, seen);
  } else {
    if (object === undefined) return true;
    run.descend();
    passed = evaluateObject(object, value, run, pointer, seen);
  }
  run.ascend();
  return passed;
}

function evaluateScalar(node: SchemaNode, value: unknown, run: Evaluation, pointer: string): boolean {
  if (node.types !== 0 && (node.types & typeBits(value)) === 0) {
    return run.fail(pointer, describeTypes(node.types), value);
  }
  if (node.values !== undefined) {
    node.allowed ??= new AllowedValues(node.values);
    if (!node.allowed.has(value, run)) {
      return run.fail(pointer, run.issues === undefined ? "" : allowedText(node, node.values), value);
    }
  }
  if (typeof value === "string") {
    return node.string === undefined || evaluateString(node.string, value, run, pointer);
  }
  if (node.number === undefined || typeof value !== "number" || !Number.isFinite(value)) return true;
  return evaluateNumber(node.number, value, run, pointer);
}

function evaluateString(rules: StringRules, value: string, run: Evaluation, pointer: string): boolean {
  const { minLength, maxLength, pattern } = rules;
  if (value.length < 2 * minLength && countCodePoints(value, run) < minLength) {
    return run.fail(pointer, `at least ${plural(minLength, "character")}`, value);
  }
  if (value.length > maxLength && countCodePoints(value, run) > maxLength) {
    return run.fail(pointer, `at most ${plural(maxLength, "character")}`, value);
  }
  if (pattern === undefined) return true;
  run.step(pattern.cost(value));
  if (pattern.test(value)) return true;
  return run.fail(pointer, `a match of the pattern ${pattern.source}`, value);
}

function evaluateNumber(rules: NumberRules, value: number, run: Evaluation, pointer: string): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = rules;
  if (minimum !== undefined && value < minimum) return run.fail(pointer, `at least ${minimum}`, value);
  if (maximum !== undefined && value > maximum) return run.fail(pointer, `at most ${maximum}`, value);
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) {
    return run.fail(pointer, `more than ${exclusiveMinimum}`, value);
  }
  if (exclusiveMaximum !== undefined && value >= exclusiveMaximum) {
    return run.fail(pointer, `less than ${exclusiveMaximum}`, value);
  }
  if (multipleOf === undefined || isMultipleOf(value, multipleOf, run)) return true;
  return run.fail(pointer, `a multiple of ${multipleOf}`, value);
}

function evaluateCombinations(
  node: SchemaNode,
  value: unknown,
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  const goOn = run.issues !== undefined;
  let passed = true;
  run.mayRepeat = true;
  if (node.ref !== undefined) {
    passed = evaluateReference(node.ref, value, run, pointer, seen);
    if (!passed && !goOn) return false;
  }
  if (node.dynamicRef !== undefined) {
    run.step(run.scope.length);
    passed = evaluate(dynamicTarget(node, run), value, run, pointer, seen) && passed;
    if (!passed && !goOn) return false;
  }
  if (node.allOf !== undefined) {
    for (const child of node.allOf) {
      passed = evaluate(child, value, run, pointer, seen) && passed;
      if (!passed && !goOn) return false;
    }
  }
  if (node.anyOf !== undefined) passed = evaluateAnyOf(node.anyOf, value, run, pointer, seen) && passed;
  if (!passed && !goOn) return false;
  if (node.oneOf !== undefined) passed = evaluateOneOf(node.oneOf, value, run, pointer, seen) && passed;
  if (!passed && !goOn) return false;
  if (node.not !== undefined && passesQuietly(node.not, value, run, undefined)) {
    passed = run.fail(pointer, "a value the schema does not rule out (not)", value);
  }
  if (node.condition === undefined || (!passed && !goOn)) return passed;
  return evaluateCondition(node, node.condition, value, run, pointer, seen) && passed;
}

/** What issues or looked-at parts depend on cannot be remembered, nor can what the dynamic scope may decide. */
function evaluateReference(
  target: SchemaNode,
  value: unknown,
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  if (run.issues !== undefined || seen !== undefined || run.scope.length > 1) {
    return evaluate(target, value, run, pointer, seen);
  }
  const known = run.answerOf(target, value);
  if (known !== undefined) {
    run.step();
    return known;
  }
  const passed = evaluate(target, value, run, pointer, seen);
  run.remember(target, value, passed);
  return passed;
}

/** The outermost resource on the way here that has the anchor decides. */
export function dynamicTarget(node: SchemaNode, run: Evaluation): SchemaNode {
  const reference = node.dynamicRef;
  if (reference === undefined) return node;
  for (const resource of run.scope) {
    const found = resource.dynamicNodes.get(reference.name);
    if (found !== undefined) return found;
  }
  return reference.target;
}

function allowedText(node: SchemaNode, values: readonly unknown[]): string {
  node.valuesText ??= describeAllowed(values);
  return node.valuesText;
}

function describeAllowed(values: readonly unknown[]): string {
  const shown = values.slice(0, 10).map((value) => (JSON.stringify(value) ?? "undefined").slice(0, 60));
  if (values.length > shown.length) shown.push("…");
  return shown.length === 1 ? `${shown[0]}` : `one of ${shown.join(", ")}`;
}

/** Checks without adding to the issues; what was looked at counts only on success. */
export function passesQuietly(
  node: SchemaNode,
  value: unknown,
  run: Evaluation,
  seen: Evaluated | undefined,
): boolean {
  const { issues } = run;
  run.issues = undefined;
  const own = seen === undefined ? undefined : new Evaluated();
  const passed = evaluate(node, value, run, "", own);
  run.issues = issues;
  if (passed && own !== undefined) seen?.merge(own, run);
  return passed;
}

function evaluateAnyOf(
  branches: readonly SchemaNode[],
  value: unknown,
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  let passed = false;
  for (const branch of branches) {
    if (!passesQuietly(branch, value, run, seen)) continue;
    passed = true;
    if (seen === undefined) break;
  }
  return passed || failBranches(branches, value, run, pointer);
}

function evaluateOneOf(
  branches: readonly SchemaNode[],
  value: unknown,
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  let matches = 0;
  for (const branch of branches) {
    if (passesQuietly(branch, value, run, seen) && ++matches > 1) {
      return run.fail(
        pointer,
        `a match for exactly one of ${branches.length} alternatives, not several`,
        value,
      );
    }
  }
  return matches === 1 || failBranches(branches, value, run, pointer);
}

/** Says that no alternative fits, and what the one that came closest lacks. */
function failBranches(
  branches: readonly SchemaNode[],
  value: unknown,
  run: Evaluation,
  pointer: string,
): false {
  const { issues } = run;
  if (issues === undefined) return false;
  run.fail(pointer, `a match for one of ${branches.length} alternatives`, value);
  let closest: SchemaIssue[] | undefined;
  for (const branch of branches) {
    if (!run.mayExplainBranch()) break;
    run.issues = [];
    evaluate(branch, value, run, pointer, undefined);
    if (closest === undefined || isCloser(run.issues, closest, pointer)) closest = run.issues;
  }
  run.issues = issues;
  if (closest !== undefined) issues.push(...closest);
  return false;
}

/** A branch that fails further inside the value fits better than one that fails at its door. */
function isCloser(a: readonly SchemaIssue[], b: readonly SchemaIssue[], pointer: string): boolean {
  const atDoor = (issues: readonly SchemaIssue[]) => issues.some((issue) => issue.pointer === pointer);
  if (atDoor(a) !== atDoor(b)) return atDoor(b);
  return a.length < b.length;
}

function evaluateCondition(
  node: SchemaNode,
  condition: SchemaNode,
  value: unknown,
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  const next = passesQuietly(condition, value, run, seen) ? node.consequence : node.alternative;
  return next === undefined || evaluate(next, value, run, pointer, seen);
}
