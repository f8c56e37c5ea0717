import { isEqual } from "./compare-values.ts";
import { dynamicTarget, passesQuietly } from "./evaluate.ts";
import { matches, ownValue } from "./evaluate-object.ts";
import type { Evaluation } from "./evaluation.ts";
import { type Attempt, Normalization, normalizeAt } from "./normalize.ts";
import type { SchemaNode } from "./schema-node.ts";

/** Following a reference to normalise is this much dearer than following it to check. */
const STEP_COST = 10;

/**
 * Collects every node that holds for a value: those given, what they refer to, and of their alternatives the ones
 * the value fits (or, when it fits none as it is, the one that normalising makes it fit).
 */
export function applicableNodes(
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
export function childNodes(nodes: readonly SchemaNode[], key: string, run: Evaluation): SchemaNode[] {
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
export function itemNodes(nodes: readonly SchemaNode[], index: number, run: Evaluation): SchemaNode[] {
  run.step(nodes.length);
  const children: SchemaNode[] = [];
  for (const { array } of nodes) {
    const child = array?.prefix[index] ?? array?.items;
    if (child !== undefined) children.push(child);
  }
  if (children.length > 0) return children;
  return nodes.flatMap((node) => node.unevaluatedItems ?? []);
}
