import { joinPointer } from "../json/json-pointer.ts";
import type { WorkMeter } from "./compare-values.ts";
import { evaluate, passesQuietly } from "./evaluate.ts";
import { type Evaluated, type Evaluation, LARGE, plural, STEPS_IN_LARGE } from "./evaluation.ts";
import type { Matcher } from "./pattern.ts";
import type { ObjectRules, SchemaNode } from "./schema-node.ts";

type Properties = Readonly<Record<string, unknown>>;

/** Reads an own property; one that is `undefined` counts as absent, as it does in JSON. */
export function ownValue(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? (value as Properties)[key] : undefined;
}

/** Checks an object's properties; counts them as looked at in `seen`. */
export function evaluateObject(
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
    passed = run.fail(joinPointer(pointer, key), "a required property", undefined);
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
    return run.fail(pointer, `at least ${plural(rules.minProperties, "property", "properties")}`, value);
  }
  if (count > rules.maxProperties) {
    return run.fail(pointer, `at most ${plural(rules.maxProperties, "property", "properties")}`, value);
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
export function evaluateAdditional(child: SchemaNode, part: unknown, run: Evaluation, at: string): boolean {
  if (child.constant === false) return run.fail(at, "no property of this name", part);
  return evaluate(child, part, run, at, undefined);
}
