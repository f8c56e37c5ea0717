import { joinPointer } from "../json/json-pointer.ts";
import { counted } from "../text/nearest-name.ts";
import {
  AllowedValues,
  countCodePoints,
  hasDuplicates,
  isMultipleOf,
  type WorkMeter,
} from "./compare-values.ts";
import {
  type AllowedChoice,
  type Budget,
  describeTypes,
  Evaluated,
  Evaluation,
  LARGE,
  STEPS_IN_LARGE,
  typeBits,
} from "./evaluation.ts";
import { Normalization, normalizeAt } from "./normalize.ts";
import type { Matcher } from "./pattern.ts";
import { REQUIRED, type SchemaIssue } from "./schema-issue.ts";
import type { ArrayRules, NumberRules, ObjectRules, SchemaNode, StringRules } from "./schema-node.ts";

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
    const isMet = node.allowed.has(value, run);
    if (run.issues !== undefined) run.choices?.set(pointer, { values: node.values, isMet });
    if (!isMet) {
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
    return run.fail(pointer, `at least ${counted(minLength, "character")}`, value);
  }
  if (value.length > maxLength && countCodePoints(value, run) > maxLength) {
    return run.fail(pointer, `at most ${counted(maxLength, "character")}`, value);
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
  const { choices } = run;
  const explained: ExplainedBranch[] = [];
  for (const branch of branches) {
    if (!run.mayExplainBranch()) break;
    run.issues = [];
    run.choices = new Map();
    evaluate(branch, value, run, pointer, undefined);
    explained.push({ issues: run.issues, choices: run.choices });
  }
  run.issues = issues;
  run.choices = choices;
  issues.push(...closestIssues(explained, pointer, explained.length === branches.length));
  return false;
}

/** What an alternative lacks. */
interface ExplainedBranch {
  readonly issues: readonly SchemaIssue[];
  readonly choices: ReadonlyMap<string, AllowedChoice>;
}

/**
 * What the alternative that comes closest lacks. Where a member has values of its own in each of them, it tells which one is meant: if
 * its value is in none, that alone is wrong.
 */
function closestIssues(
  explained: readonly ExplainedBranch[],
  pointer: string,
  isWhole: boolean,
): readonly SchemaIssue[] {
  let meant = explained;
  for (const tag of tagsOf(explained, pointer)) {
    const fitting = meant.filter(({ choices }) => choices.get(tag)?.isMet);
    if (fitting.length > 0) meant = fitting;
    else if (isWhole) {
      const all = explained.flatMap(({ choices }) => choices.get(tag)?.values ?? []);
      const wrong = explained[0]?.issues.find((issue) => issue.pointer === tag);
      if (wrong !== undefined) return [{ ...wrong, expected: describeAllowed([...new Set(all)]) }];
    }
  }
  let closest: readonly SchemaIssue[] = [];
  for (const [at, { issues }] of meant.entries())
    if (at === 0 || isCloser(issues, closest, pointer)) closest = issues;
  return closest;
}

/** Members whose values every alternative limits. */
function tagsOf(explained: readonly ExplainedBranch[], pointer: string): readonly string[] {
  const [first, ...others] = explained;
  if (first === undefined || others.length === 0) return [];
  return [...first.choices.keys()].filter(
    (place) =>
      place.lastIndexOf("/") === pointer.length &&
      place.length > pointer.length &&
      others.every(({ choices }) => choices.has(place)),
  );
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

/** Checks an array's items; counts them as looked at in `seen`. */
function evaluateArray(
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
  if (value.length < minItems) return run.fail(pointer, `at least ${counted(minItems, "item")}`, value);
  if (value.length > maxItems) return run.fail(pointer, `at most ${counted(maxItems, "item")}`, value);
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
    return run.fail(pointer, `at least ${counted(minContains, "item")} matching "contains"`, value);
  }
  if (matches > maxContains) {
    return run.fail(pointer, `at most ${counted(maxContains, "item")} matching "contains"`, value);
  }
  return true;
}

type Properties = Readonly<Record<string, unknown>>;

/** Reads an own property; one that is `undefined` counts as absent, as it does in JSON. */
export function ownValue(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? (value as Properties)[key] : undefined;
}

/** Checks an object's properties; counts them as looked at in `seen`. */
function evaluateObject(
  rules: ObjectRules,
  value: object,
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  const goOn = run.issues !== undefined;
  let passed = evaluatePresence(rules, value, run, pointer);
  if (!passed && !goOn) return false;
  passed = evaluateNamed(rules, value, run, pointer, seen) && passed;
  if (!passed && !goOn) return false;
  if (looksAtKeys(rules, seen)) passed = evaluateByKey(rules, value, run, pointer, seen) && passed;
  run.step(rules.dependentSchemas.length >> 2);
  for (const [key, child] of rules.dependentSchemas) {
    if (!passed && !goOn) return false;
    if (ownValue(value, key) !== undefined) passed = evaluate(child, value, run, pointer, seen) && passed;
  }
  return passed;
}

/** Properties looked for that count as one step of work, whether they are there or not. */
export const KEYS_PER_STEP = 8;

/** Properties of a schema that are looked for one by one; of more, those that the value has are. */
const FEW_PROPERTIES = 64;

function evaluateNamed(
  rules: ObjectRules,
  value: object,
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  const goOn = run.issues !== undefined;
  const { steps, children } = rules;
  const isFew = rules.keys.length <= FEW_PROPERTIES;
  const keys = isFew ? rules.keys : run.keysOf(value);
  if (isFew && keys.length >= KEYS_PER_STEP) run.step(Math.floor(keys.length / KEYS_PER_STEP));
  let passed = true;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    const child = isFew ? children[i] : rules.properties.get(key);
    const part = isFew ? ownValue(value, key) : (value as Properties)[key];
    if (child === undefined || part === undefined) continue;
    seen?.properties.add(key);
    const at = goOn ? (isFew ? pointer + steps[i] : joinPointer(pointer, key)) : "";
    passed = evaluate(child, part, run, at, undefined) && passed;
    if (!passed && !goOn) return false;
  }
  return passed;
}

/** A schema that lets any other property in has nothing to say of names, unless somebody asks which were looked at. */
function looksAtKeys(rules: ObjectRules, seen: Evaluated | undefined): boolean {
  if (rules.patterns.length > 0 || rules.names !== undefined) return true;
  const { additional } = rules;
  return additional !== undefined && (seen !== undefined || !passesAll(additional));
}

/** Tells whether a node passes any value. */
export function passesAll(node: SchemaNode): boolean {
  return node.constant ?? node.isEmpty;
}

function evaluatePresence(rules: ObjectRules, value: object, run: Evaluation, pointer: string): boolean {
  let passed = true;
  for (const key of rules.required) {
    if (ownValue(value, key) !== undefined) continue;
    if (run.issues === undefined) return false;
    passed = run.fail(joinPointer(pointer, key), REQUIRED, undefined);
  }
  run.step(rules.dependentRequired.length >> 2);
  for (const [key, needed] of rules.dependentRequired) {
    if (ownValue(value, key) === undefined) continue;
    run.step(needed.length);
    for (const name of needed) {
      if (ownValue(value, name) !== undefined) continue;
      passed = run.fail(joinPointer(pointer, name), `a property, because "${key}" is there`, undefined);
    }
  }
  if (rules.minProperties === 0 && rules.maxProperties === Number.POSITIVE_INFINITY) return passed;
  const count = run.keysOf(value).length;
  if (count < rules.minProperties) {
    return run.fail(pointer, `at least ${counted(rules.minProperties, "property", "properties")}`, value);
  }
  if (count > rules.maxProperties) {
    return run.fail(pointer, `at most ${counted(rules.maxProperties, "property", "properties")}`, value);
  }
  return passed;
}

function evaluateByKey(
  rules: ObjectRules,
  value: object,
  run: Evaluation,
  pointer: string,
  seen: Evaluated | undefined,
): boolean {
  const { names, patterns, additional, properties } = rules;
  let passed = true;
  const keys = run.keysOf(value);
  if (seen !== undefined) run.step((keys.length < LARGE ? 2 : STEPS_IN_LARGE) * keys.length);
  for (const key of keys) {
    const part = (value as Properties)[key];
    const at = run.issues === undefined ? "" : joinPointer(pointer, key);
    if (names !== undefined && !passesQuietly(names, key, run, undefined)) {
      passed = run.fail(at, "a property name the schema allows", part);
    }
    const matching = patterns.filter(([pattern]) => matches(pattern, key, run));
    for (const [, child] of matching) passed = evaluate(child, part, run, at, undefined) && passed;
    if (matching.length > 0) {
      run.mayRepeat = true;
      seen?.properties.add(key);
    } else if (additional !== undefined && !properties.has(key)) {
      seen?.properties.add(key);
      passed = evaluateAdditional(additional, part, run, at) && passed;
    }
    if (!passed && run.issues === undefined) return false;
  }
  return passed;
}

/** Tells whether a pattern matches the name of a property, and counts what it takes. */
export function matches(pattern: Matcher, key: string, meter: WorkMeter): boolean {
  meter.step(1 + pattern.cost(key));
  return pattern.test(key);
}

/** Checks a part that only a catch-all schema speaks of; `false` there means the property should not exist. */
function evaluateAdditional(child: SchemaNode, part: unknown, run: Evaluation, at: string): boolean {
  if (child.constant === false) return run.fail(at, "absent", part);
  return evaluate(child, part, run, at, undefined);
}

/** Checks the parts that no other keyword looked at, and counts them as looked at. */
function evaluateUnevaluated(
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

/** The two questions asked of every value, `depth` levels down from where the check began. */
export interface Predicates {
  isValid(value: unknown, depth: number): boolean;
  /** Valid, and nothing to strip, fill or convert. */
  isClean(value: unknown, depth: number): boolean;
  /** Steps of work that neither counts, because no check takes them more than once. @default 0 */
  readonly uncounted?: number;
  /** Whether code leaves part of the work to the interpreter. @default false */
  readonly handsOver?: boolean;
}

/** Begins an evaluation whose outermost resource is that of `root`. */
export function startEvaluation(root: SchemaNode, budget: Budget, collect: boolean): Evaluation {
  const run = new Evaluation(budget, collect);
  run.scope.push(root.resource);
  return run;
}

/** Answers by walking the nodes: needs no code generation, and knows every keyword. */
export function interpretedPredicates(root: SchemaNode, budget: Budget, at: SchemaNode = root): Predicates {
  const isValid = (value: unknown, depth: number): boolean => {
    budget.depth -= depth;
    const passed = evaluate(at, value, startEvaluation(root, budget, false), "", undefined);
    budget.depth += depth;
    return passed;
  };
  const isClean = (value: unknown, depth: number): boolean => {
    if (!isValid(value, depth)) return false;
    budget.depth -= depth;
    const pass = new Normalization(startEvaluation(root, budget, false), { shape: true });
    const isSame = value === undefined || Object.is(normalizeAt([at], value, "", pass), value);
    budget.depth += depth;
    return isSame;
  };
  return { isValid, isClean };
}
