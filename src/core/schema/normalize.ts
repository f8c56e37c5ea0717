import { joinPointer } from "../json/json-pointer.ts";
import { setOwn } from "../json/json-value.ts";
import { cloneJson, isEqual, isRecord } from "./compare-values.ts";
import { dynamicTarget, matches, ownValue, passesQuietly } from "./evaluate.ts";
import { clipPointer, type Evaluation, typeBits } from "./evaluation.ts";
import { MAX_REPORTED_CHANGES } from "./limits.ts";
import type { NormalizationReport } from "./schema-issue.ts";
import { agreedDefault, defaultOf, type ObjectRules, type SchemaNode, TYPE_BITS } from "./schema-node.ts";

/** Filling in one part of a default is this much dearer than checking a part. */
const FILL_COST = 10;

/** Which changes a normalisation may make. */
export interface NormalizeMode {
  /** Strip what no schema names, and bring values to their declared type. */
  readonly shape: boolean;
}

/** What trying one alternative on one value came to; `undefined` when it does not fit. */
export type Attempt = { readonly value: unknown } | undefined;

/** One pass of normalising: its mode, the evaluation whose limits it shares, and the report so far. */
export class Normalization {
  readonly run: Evaluation;
  readonly mode: NormalizeMode;
  /** Attempts already made, so that alternatives inside alternatives are not tried over and over. */
  readonly attempts: Map<SchemaNode, Map<unknown, Attempt>>;
  readonly stripped: string[] = [];
  readonly defaulted: string[] = [];
  readonly converted: string[] = [];
  #omitted = 0;

  constructor(run: Evaluation, mode: NormalizeMode, attempts: Normalization["attempts"] = new Map()) {
    this.run = run;
    this.mode = mode;
    this.attempts = attempts;
  }

  note(list: string[], pointer: string): void {
    const total = this.stripped.length + this.defaulted.length + this.converted.length;
    if (total < MAX_REPORTED_CHANGES) list.push(clipPointer(pointer));
    else this.#omitted++;
  }

  report(): NormalizationReport {
    const { stripped, defaulted, converted } = this;
    const report = { stripped, defaulted, converted };
    return this.#omitted === 0 ? report : { ...report, omitted: this.#omitted };
  }
}

/** Normalises a value against all the nodes that hold at its place; the same object when nothing changes. */
export function normalizeAt(
  nodes: readonly SchemaNode[],
  value: unknown,
  pointer: string,
  pass: Normalization,
): unknown {
  pass.run.step(nodes.length);
  const filled = value === undefined ? agreedDefault(nodes, pass.run) : undefined;
  if (filled !== undefined) {
    pass.run.step(FILL_COST * filled.parts);
    pass.note(pass.defaulted, pointer);
  }
  const given = filled === undefined ? value : cloneJson(filled.value);
  return normalizeParts(nodes, given, pointer, pass);
}

function normalizeParts(
  nodes: readonly SchemaNode[],
  value: unknown,
  pointer: string,
  pass: Normalization,
): unknown {
  const [only] = nodes;
  const isAlone = nodes.length === 1 && only !== undefined && typeof value === "object" && value !== null;
  if (isAlone && pass.run.isUnchanged(only, value)) return value;
  const result = normalizeContent(nodes, value, pointer, pass);
  if (isAlone && result === value) pass.run.rememberUnchanged(only, value);
  return result;
}

function normalizeContent(
  nodes: readonly SchemaNode[],
  value: unknown,
  pointer: string,
  pass: Normalization,
): unknown {
  let applicable = applicableNodes(nodes, value, pass);
  const changed = pass.mode.shape ? convertAt(applicable, value) : undefined;
  if (changed !== undefined) {
    pass.note(pass.converted, pointer);
    applicable = applicableNodes(nodes, changed.value, pass);
  }
  const current = changed === undefined ? value : changed.value;
  if (typeof current !== "object" || current === null) return current;
  if (!looksInside(applicable, current)) return current;
  pass.run.descend();
  const result = Array.isArray(current)
    ? normalizeItems(applicable, current, pointer, pass)
    : normalizeProperties(applicable, current as Record<string, unknown>, pointer, pass);
  pass.run.ascend();
  return result;
}

/** Tells whether any of the nodes says something about the parts of this value. */
function looksInside(nodes: readonly SchemaNode[], value: object): boolean {
  if (Array.isArray(value)) return nodes.some((node) => node.array ?? node.unevaluatedItems);
  return isRecord(value) && nodes.some((node) => node.object ?? node.unevaluatedProperties);
}

function convertAt(nodes: readonly SchemaNode[], value: unknown): { readonly value: unknown } | undefined {
  const allowed = commonTypes(nodes.map((node) => node.types));
  return (allowed & typeBits(value)) === 0 ? convert(value, allowed) : undefined;
}

function normalizeItems(
  nodes: readonly SchemaNode[],
  items: readonly unknown[],
  pointer: string,
  pass: Normalization,
): unknown {
  let result: unknown[] | undefined;
  for (let i = 0; i < items.length; i++) {
    const children = itemNodes(nodes, i, pass.run);
    if (children.length === 0 || items[i] === undefined) continue;
    const item = normalizeAt(children, items[i], joinPointer(pointer, i), pass);
    if (Object.is(item, items[i])) continue;
    result ??= [...items];
    result[i] = item;
  }
  return result ?? items;
}

function normalizeProperties(
  nodes: readonly SchemaNode[],
  value: Record<string, unknown>,
  pointer: string,
  pass: Normalization,
): unknown {
  const entries: [string, unknown][] = [];
  let changed = false;
  const closed = pass.mode.shape && isClosed(nodes);
  for (const key of Object.keys(value)) {
    const part = value[key];
    const at = joinPointer(pointer, key);
    const children = childNodes(nodes, key, pass.run);
    if (closed && !isNamed(nodes, key, pass.run)) {
      pass.note(pass.stripped, at);
      changed = true;
      continue;
    }
    const next = part === undefined || children.length === 0 ? part : normalizeAt(children, part, at, pass);
    changed ||= !Object.is(next, part);
    entries.push([key, next]);
  }
  const added = missingDefaults(nodes, value, pointer, pass);
  if (!changed && added.length === 0) return value;
  const replaced = new Set(added.map(([key]) => key));
  const result: Record<string, unknown> = {};
  for (const [key, part] of entries) if (!replaced.has(key)) setOwn(result, key, part);
  for (const [key, part] of added) setOwn(result, key, part);
  return result;
}

/** Properties that are absent, with the default that one schema declares or all agree on. */
function missingDefaults(
  nodes: readonly SchemaNode[],
  value: Record<string, unknown>,
  pointer: string,
  pass: Normalization,
): [string, unknown][] {
  const added: [string, unknown][] = [];
  for (const key of defaultedKeys(nodes, pass.run)) {
    if (ownValue(value, key) !== undefined) continue;
    const children = childNodes(nodes, key, pass.run);
    if (agreedDefault(children, pass.run) === undefined) continue;
    added.push([key, normalizeAt(children, undefined, joinPointer(pointer, key), pass)]);
  }
  return added;
}

/** The properties that may have a default: those whose own schema has one, or all where a schema for any property has. */
function defaultedKeys(nodes: readonly SchemaNode[], run: Evaluation): Iterable<string> {
  for (const { object } of nodes) run.step(object === undefined ? 0 : object.patterns.length >> 2);
  const any = nodes.some(hasDefaultForAny);
  const lists = nodes.map(({ object }) =>
    object === undefined ? [] : any ? object.keys : defaultedOf(object),
  );
  const [only] = lists;
  run.step(lists.reduce((sum, list) => sum + list.length, 0));
  return lists.length === 1 && only !== undefined ? only : new Set(lists.flat());
}

function defaultedOf(object: ObjectRules): readonly string[] {
  object.defaulted ??= object.keys.filter(
    (_, i) => defaultOf(object.children[i] as SchemaNode) !== undefined,
  );
  return object.defaulted;
}

/** Tells whether a property that the node does not name can have a default. */
function hasDefaultForAny({ object, unevaluatedProperties }: SchemaNode): boolean {
  const rest = [
    object?.additional,
    unevaluatedProperties,
    ...(object?.patterns.map(([, child]) => child) ?? []),
  ];
  return rest.some((child) => child !== undefined && defaultOf(child) !== undefined);
}

/** Closed objects lose what nothing names: some schema has `properties`, and none lets others in. */
function isClosed(nodes: readonly SchemaNode[]): boolean {
  return nodes.some((node) => node.object?.named) && !nodes.some(isOpen);
}

function isOpen(node: SchemaNode): boolean {
  if (node.dynamicRef !== undefined && node.dynamicRef.settled === undefined) return true;
  return [node.object?.additional, node.unevaluatedProperties].some(
    (rest) => rest !== undefined && rest.constant !== false,
  );
}

function isNamed(nodes: readonly SchemaNode[], key: string, run: Evaluation): boolean {
  return nodes.some(
    ({ object }) =>
      object?.properties.has(key) || object?.patterns.some(([pattern]) => matches(pattern, key, run)),
  );
}

/** Following a reference to normalise is this much dearer than following it to check. */
const STEP_COST = 10;

/**
 * Collects every node that holds for a value: those given, what they refer to, and of their alternatives the ones
 * the value fits (or, when it fits none as it is, the one that normalising makes it fit).
 */
function applicableNodes(
  nodes: readonly SchemaNode[],
  value: unknown,
  pass: Normalization,
): readonly SchemaNode[] {
  if (nodes.length === 1 && nodes[0] !== undefined && isSimple(nodes[0])) return nodes;
  const found = new Set<SchemaNode>();
  const add = (node: SchemaNode) => {
    pass.run.step();
    if (found.has(node)) return;
    found.add(node);
    for (const child of applyingChildren(node, value, pass)) add(child);
  };
  for (const node of nodes) add(node);
  return [...found];
}

function isSimple(node: SchemaNode): boolean {
  return (
    node.ref === undefined &&
    node.dynamicRef === undefined &&
    node.allOf === undefined &&
    node.anyOf === undefined &&
    node.oneOf === undefined &&
    node.condition === undefined &&
    (node.object === undefined || node.object.dependentSchemas.length === 0)
  );
}

function applyingChildren(node: SchemaNode, value: unknown, pass: Normalization): SchemaNode[] {
  const children: SchemaNode[] = [...(node.allOf ?? [])];
  if (node.ref !== undefined) {
    pass.run.step(STEP_COST);
    children.push(node.ref);
  }
  if (node.dynamicRef !== undefined) {
    pass.run.step(STEP_COST);
    children.push(dynamicTarget(node, pass.run));
  }
  if (node.anyOf !== undefined) children.push(...fittingBranches(node.anyOf, value, pass));
  if (node.oneOf !== undefined) children.push(...fittingBranches(node.oneOf, value, pass));
  if (node.condition !== undefined) {
    const holds = passesQuietly(node.condition, value, pass.run, undefined);
    if (holds) children.push(node.condition);
    const next = holds ? node.consequence : node.alternative;
    if (next !== undefined) children.push(next);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return children;
  const dependent = node.object?.dependentSchemas ?? [];
  pass.run.step(dependent.length >> 2);
  for (const [key, child] of dependent) {
    if (ownValue(value, key) !== undefined) children.push(child);
  }
  return children;
}

function fittingBranches(branches: readonly SchemaNode[], value: unknown, pass: Normalization): SchemaNode[] {
  const fitting = branches.filter((branch) => passesQuietly(branch, value, pass.run, undefined));
  return fitting.length > 0 ? fitting : branchesByNormalizing(branches, value, pass);
}

/** Alternatives that normalising leads to count only if they all lead to the same value: no guessing. */
function branchesByNormalizing(
  branches: readonly SchemaNode[],
  value: unknown,
  pass: Normalization,
): SchemaNode[] {
  const fitting: SchemaNode[] = [];
  let result: unknown;
  for (const branch of branches) {
    const attempt = tryBranch(branch, value, pass);
    if (attempt === undefined) continue;
    if (fitting.length > 0 && !isEqual(attempt.value, result, pass.run)) return [];
    fitting.push(branch);
    result = attempt.value;
  }
  return fitting;
}

function tryBranch(branch: SchemaNode, value: unknown, pass: Normalization): Attempt {
  let known = pass.attempts.get(branch);
  if (known === undefined) {
    known = new Map();
    pass.attempts.set(branch, known);
  }
  if (known.has(value)) return known.get(value);
  pass.run.step(STEP_COST);
  const result = normalizeAt([branch], value, "", new Normalization(pass.run, pass.mode, pass.attempts));
  const attempt = passesQuietly(branch, result, pass.run, undefined) ? { value: result } : undefined;
  known.set(value, attempt);
  return attempt;
}

/** The nodes that hold for one property of an object that `nodes` hold for. */
function childNodes(nodes: readonly SchemaNode[], key: string, run: Evaluation): SchemaNode[] {
  run.step(nodes.length);
  const children: SchemaNode[] = [];
  for (const { object } of nodes) {
    if (object === undefined) continue;
    const before = children.length;
    const named = object.properties.get(key);
    if (named !== undefined) children.push(named);
    for (const [pattern, child] of object.patterns) if (matches(pattern, key, run)) children.push(child);
    if (children.length === before && object.additional !== undefined) children.push(object.additional);
  }
  if (children.length > 0) return children;
  return nodes.flatMap((node) => node.unevaluatedProperties ?? []);
}

/** The nodes that hold for one item of an array that `nodes` hold for. */
function itemNodes(nodes: readonly SchemaNode[], index: number, run: Evaluation): SchemaNode[] {
  run.step(nodes.length);
  const children: SchemaNode[] = [];
  for (const { array } of nodes) {
    const child = array?.prefix[index] ?? array?.items;
    if (child !== undefined) children.push(child);
  }
  if (children.length > 0) return children;
  return nodes.flatMap((node) => node.unevaluatedItems ?? []);
}

/** Brings a value to one of the allowed types when exactly one loses nothing; undefined when none or several do. */
function convert(value: unknown, allowed: number): { readonly value: unknown } | undefined {
  const results = new Set<unknown>();
  for (const candidate of candidates(value)) {
    if ((typeBits(candidate) & allowed) !== 0) results.add(candidate);
  }
  if (results.size !== 1) return undefined;
  const [only] = results;
  return { value: only };
}

/** Every other way to write the value that can be turned back into it. */
function candidates(value: unknown): unknown[] {
  switch (typeof value) {
    case "string":
      return fromString(value);
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0) ? [String(value)] : [];
    case "boolean":
      return [String(value)];
    case "bigint":
      return Number.isSafeInteger(Number(value)) ? [Number(value), String(value)] : [String(value)];
    case "object":
      return fromDate(value);
    default:
      return [];
  }
}

function fromString(text: string): unknown[] {
  if (text === "true") return [true];
  if (text === "false") return [false];
  const number = Number(text);
  return Number.isFinite(number) && String(number) === text ? [number] : [];
}

function fromDate(value: object | null): unknown[] {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) return [];
  return [value.toISOString()];
}

/** The types that every one of the given masks allows; all of them when no mask says anything. */
function commonTypes(masks: readonly number[]): number {
  let common = -1;
  for (const mask of masks) {
    if (mask !== 0) common &= (mask & TYPE_BITS.number) !== 0 ? mask | TYPE_BITS.integer : mask;
  }
  return common;
}
