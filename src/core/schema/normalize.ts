import { joinPointer } from "../json/json-pointer.ts";
import { setOwn } from "../json/json-value.ts";
import { applicableNodes, childNodes, itemNodes } from "./applicable-nodes.ts";
import { cloneJson, isRecord } from "./compare-values.ts";
import { commonTypes, convert } from "./convert.ts";
import { matches, ownValue } from "./evaluate-object.ts";
import { clipPointer, type Evaluation, typeBits } from "./evaluation.ts";
import { MAX_REPORTED_CHANGES } from "./limits.ts";
import type { NormalizationReport } from "./schema-issue.ts";
import { agreedDefault, defaultOf, type ObjectRules, type SchemaNode } from "./schema-node.ts";

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
