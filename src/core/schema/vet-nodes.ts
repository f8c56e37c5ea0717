import type { SchemaLimits } from "./limits.ts";
import { SchemaError } from "./schema-issue.ts";
import { inPlaceChildren, partChildren, type SchemaNode } from "./schema-node.ts";

/** What looking at one value by a node takes. */
export interface NodeCost {
  /** Subschemas that look at the value itself. */
  readonly cost: number;
  /** How deep references and combinations go before a part of the value is looked at. */
  readonly depth: number;
}

/**
 * Refuses references that loop without consuming input, and schemas that fan out beyond bounds over one value. Gives what each
 * node costs. Nodes of which `knownCost` tells were vetted before, and so was all that they lead to.
 */
export function vetNodes(
  root: SchemaNode,
  limits: SchemaLimits,
  knownCost: (node: SchemaNode) => NodeCost | undefined = () => undefined,
): ReadonlyMap<SchemaNode, NodeCost> {
  const costs = new Map<SchemaNode, NodeCost>();
  const nodes = new Set([root]);
  for (const node of nodes) {
    const known = knownCost(node);
    if (known !== undefined) costs.set(node, known);
    else for (const child of neighbours(node)) nodes.add(child);
  }
  for (const node of nodes) measure(node, costs, limits);
  return costs;
}

/** Every node that evaluation can reach from `root`, each once. */
export function reachable(root: SchemaNode): Set<SchemaNode> {
  const nodes = new Set([root]);
  for (const node of nodes) {
    for (const child of neighbours(node)) nodes.add(child);
  }
  return nodes;
}

/** The nodes that evaluation can go on to from a node. */
export function neighbours(node: SchemaNode): SchemaNode[] {
  const children = [...inPlaceChildren(node), ...partChildren(node), ...node.resource.dynamicNodes.values()];
  if (node.dynamicRef !== undefined) children.push(node.dynamicRef.target);
  return children;
}

/** Walks depth first with a stack of its own; `open` holds the nodes on the way down. */
function measure(start: SchemaNode, costs: Map<SchemaNode, NodeCost>, limits: SchemaLimits): void {
  const stack = [start];
  const open = new Set<SchemaNode>();
  for (let node = stack.at(-1); node !== undefined; node = stack.at(-1)) {
    if (costs.has(node)) {
      stack.pop();
      continue;
    }
    const children = sameValueChildren(node);
    const unknown = children.filter((child) => !costs.has(child));
    if (unknown.length === 0) {
      costs.set(node, total(node, children, costs, limits));
      open.delete(node);
      stack.pop();
      continue;
    }
    open.add(node);
    const looping = unknown.find((child) => open.has(child));
    if (looping !== undefined) {
      throw new SchemaError("The schema refers to itself without consuming any input.", looping.pointer);
    }
    stack.push(...unknown);
  }
}

/** A `$dynamicRef` counts when it can lead to one place only; where it has a choice, evaluation bounds it. */
function sameValueChildren(node: SchemaNode): SchemaNode[] {
  const children = inPlaceChildren(node);
  if (node.dynamicRef?.settled !== undefined) children.push(node.dynamicRef.settled);
  return children;
}

function total(
  node: SchemaNode,
  children: readonly SchemaNode[],
  costs: ReadonlyMap<SchemaNode, NodeCost>,
  limits: SchemaLimits,
): NodeCost {
  let cost = 1;
  let depth = 0;
  for (const child of children) {
    const known = costs.get(child);
    cost += known?.cost ?? 0;
    depth = Math.max(depth, known?.depth ?? 0);
  }
  if (cost > limits.expansion) {
    throw new SchemaError(
      `The schema applies more than ${limits.expansion} subschemas to one value.`,
      node.pointer,
    );
  }
  if (depth >= limits.schemaDepth) {
    throw new SchemaError(
      `References and combinations are nested deeper than ${limits.schemaDepth} levels.`,
      node.pointer,
    );
  }
  return { cost, depth: depth + 1 };
}
