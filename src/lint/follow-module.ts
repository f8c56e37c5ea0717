import type { Scopes } from "./scopes.ts";
import {
  type FunctionNode,
  type Identifier,
  isFunction,
  isWrapper,
  type MemberExpression,
  type Node,
  unwrapped,
} from "./syntax.ts";

/** Bounds on how far a module object is followed; what lies beyond them is not reported. */
const FOLLOW_LIMITS = {
  /** Uses looked at in one file. */
  steps: 5_000,
  /** Objects, arrays, promises and functions around the module object. */
  depth: 8,
} as const;

/**
 * What must still be done to a value to reach the module object: `await` it, `call` it, or take a member (`.0`, `.key`).
 * An empty path is the module object itself.
 */
type Path = readonly string[];

/** Called for what was found on the way. */
export interface FollowEvents {
  /** A deprecated name is taken from the module object. */
  onMember(node: Node, name: string): void;
  /** The whole module object is exported again. */
  onReExport(node: Node): void;
}

interface Journey {
  readonly scopes: Scopes;
  readonly names: ReadonlySet<string>;
  readonly events: FollowEvents;
  readonly queue: (readonly [Node, Path])[];
  readonly seen: Map<object, Set<string>>;
}

/** Follows module objects through one file: variables, patterns, promises, objects and functions. */
export function createFollower(scopes: Scopes, names: ReadonlySet<string>, events: FollowEvents) {
  const journey: Journey = { scopes, names, events, queue: [], seen: new Map() };
  let steps = 0;
  const run = () => {
    for (let next = journey.queue.pop(); next !== undefined; next = journey.queue.pop()) {
      steps += 1;
      if (steps > FOLLOW_LIMITS.steps) return;
      followUse(journey, ...next);
    }
  };
  return {
    /** Follows an expression whose value is the module object, or a promise of it. */
    followValue(node: Node, isPromise: boolean): void {
      push(journey, node, isPromise ? ["await"] : []);
      run();
    },
    /** Follows a name bound to the module object. */
    followName(identifier: Identifier): void {
      bind(journey, identifier, []);
      run();
    },
  };
}

function isNew({ seen }: Journey, key: object, path: Path): boolean {
  const paths = seen.get(key) ?? new Set();
  const text = path.join("\n");
  if (paths.has(text) || path.length > FOLLOW_LIMITS.depth) return false;
  seen.set(key, paths.add(text));
  return true;
}

function push(journey: Journey, node: Node, path: Path): void {
  if (isNew(journey, node, path)) journey.queue.push([node, path]);
}

/** Looks at the one place an expression stands in, and goes on to whatever has its value next. */
function followUse(journey: Journey, node: Node, path: Path): void {
  const { parent } = node;
  if (hasValueOf(parent, node))
    push(journey, parent, parent.type === "AwaitExpression" ? awaited(path) : path);
  if (isFunction(parent)) {
    if (parent.body === node) followReturn(journey, parent, path);
    return;
  }
  switch (parent.type) {
    case "ReturnStatement":
      followReturn(journey, enclosingFunction(parent), path);
      break;
    case "VariableDeclarator":
      if (parent.init === node) bind(journey, parent.id, path);
      break;
    case "AssignmentPattern":
    case "AssignmentExpression":
      if (parent.right === node) bind(journey, parent.left, path);
      break;
    case "MemberExpression":
      if (parent.object === node) followMember(journey, parent, path);
      break;
    case "CallExpression":
      followCall(journey, node, path);
      break;
    default:
      followPart(journey, node, path);
  }
}

/** True when an expression evaluates to the one inside it, or may. */
function hasValueOf(outer: Node, inner: Node): boolean {
  if (isWrapper(outer)) return true;
  switch (outer.type) {
    case "AwaitExpression":
      return true;
    case "ConditionalExpression":
      return outer.test !== inner;
    case "LogicalExpression":
      return outer.operator !== "&&" || outer.right === inner;
    case "AssignmentExpression":
      return outer.right === inner;
    case "SequenceExpression":
      return outer.expressions.at(-1) === inner;
  }
  return false;
}

/** The places where a value becomes part of another, or leaves the file. */
function followPart(journey: Journey, node: Node, path: Path): void {
  const { parent } = node;
  switch (parent.type) {
    case "SpreadElement":
      if (parent.parent.type === "ObjectExpression") push(journey, parent.parent, path);
      break;
    case "ArrayExpression":
      push(journey, parent, [`.${parent.elements.indexOf(node)}`, ...path]);
      break;
    case "Property":
      if (parent.value !== node || parent.parent.type !== "ObjectExpression") break;
      push(journey, parent.parent, [`.${journey.scopes.keyOf(parent) ?? ""}`, ...path]);
      break;
    case "ExportSpecifier":
    case "ExportDefaultDeclaration":
    case "TSExportAssignment":
      if (path.length === 0) journey.events.onReExport(parent);
      break;
    case "TSQualifiedName":
      if (parent.left !== node || parent.parent.type !== "TSImportEqualsDeclaration") break;
      takeMember(journey, { node: parent.right, key: parent.right.name }, path);
  }
}

function followMember(journey: Journey, member: MemberExpression, path: Path): void {
  const key = journey.scopes.keyOf(member);
  if (key === undefined || takeMember(journey, { node: member.property, key }, path)) return;
  if (path[0] === `.${key}`) push(journey, member, path.slice(1));
  const call = member.parent;
  if (path[0] !== "await" || call.type !== "CallExpression" || call.callee !== member) return;
  if (key === "catch" || key === "finally") push(journey, call, path);
  const then = key === "then" && call.arguments[0] && journey.scopes.functionOf(call.arguments[0]);
  if (then && then.params[0] !== undefined) bind(journey, then.params[0], awaited(path));
}

/** Reports a deprecated name taken from the module object itself. */
function takeMember(
  { names, events }: Journey,
  { node, key }: { readonly node: Node; readonly key: string },
  path: Path,
): boolean {
  if (path.length > 0 || !names.has(key)) return false;
  events.onMember(node, key);
  return true;
}

/** A call of a function that returns the module object, or one that passes on what it was given. */
function followCall(journey: Journey, node: Node, path: Path): void {
  const { parent: call } = node;
  if (call.type !== "CallExpression") return;
  const [first = "", ...rest] = path;
  if (call.callee === node && first === "call") push(journey, call, rest);
  const callee = unwrapped(call.callee);
  if (callee.type !== "MemberExpression" || call.arguments[0] !== node) return;
  const method = journey.scopes.keyOf(callee);
  if (method === "then" && first === "call") push(journey, call, ["await", ...awaited(rest)]);
  if (callee.object.type !== "Identifier" || callee.object.name !== "Promise") return;
  if (method === "all") push(journey, call, ["await", first, ...awaited(rest)]);
  if (method === "resolve") push(journey, call, ["await", ...awaited(path)]);
}

function followReturn(journey: Journey, owner: FunctionNode | undefined, path: Path): void {
  if (owner === undefined || owner.generator) return;
  const returned = ["call", ...(owner.async ? ["await", ...awaited(path)] : path)];
  if (owner.type !== "FunctionDeclaration") push(journey, owner, returned);
  else if (owner.id) bind(journey, owner.id, returned);
}

/** Gives a name or a pattern the value that `path` describes. */
function bind(journey: Journey, target: Node, path: Path): void {
  switch (target.type) {
    case "Identifier":
      bindName(journey, target, path);
      break;
    case "AssignmentPattern":
      bind(journey, target.left, path);
      break;
    case "ObjectPattern":
      for (const property of target.properties) bindProperty(journey, property, path);
      break;
    case "ArrayPattern":
      for (const [index, element] of target.elements.entries()) {
        if (element !== null && path[0] === `.${index}`) bind(journey, element, path.slice(1));
      }
      break;
    case "MemberExpression":
      if (path.length === 0 && isCommonJsExport(target)) journey.events.onReExport(target);
  }
}

function bindName(journey: Journey, identifier: Identifier, path: Path): void {
  const variable = journey.scopes.variableOf(identifier);
  if (variable === undefined || !isNew(journey, variable, path)) return;
  for (const reference of variable.references) {
    if (reference.isRead()) push(journey, reference.identifier as Node, path);
  }
  const { parent } = identifier;
  if (path.length > 0 || parent.type !== "VariableDeclarator") return;
  if (parent.parent.parent.type === "ExportNamedDeclaration") journey.events.onReExport(identifier);
}

function bindProperty(journey: Journey, property: Node, path: Path): void {
  if (property.type === "RestElement") bind(journey, property.argument, path);
  if (property.type !== "Property" || property.value === null) return;
  const key = journey.scopes.keyOf(property);
  if (key === undefined || takeMember(journey, { node: property, key }, path)) return;
  if (path[0] === `.${key}`) bind(journey, property.value, path.slice(1));
}

/** True for `module.exports`, `exports` and members of them. */
function isCommonJsExport(node: Node): boolean {
  let root = node;
  while (root.type === "MemberExpression") {
    const { object, property } = root;
    if (object.type === "Identifier" && object.name === "exports") return true;
    if (object.type === "Identifier" && object.name === "module") {
      return property.type === "Identifier" && property.name === "exports";
    }
    root = object;
  }
  return false;
}

function awaited(path: Path): Path {
  return path[0] === "await" ? path.slice(1) : path;
}

function enclosingFunction(node: Node): FunctionNode | undefined {
  for (let outer: Node | null = node.parent; outer !== null; outer = outer.parent as Node | null) {
    if (isFunction(outer)) return outer;
  }
  return undefined;
}
