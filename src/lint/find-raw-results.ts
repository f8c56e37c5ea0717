import type { SyntaxNode } from "./rule-types.ts";
import type { Scopes } from "./scopes.ts";
import {
  type CallExpression,
  type FunctionNode,
  type Node,
  type ObjectNode,
  type PropertyNode,
  unwrapped,
} from "./syntax.ts";

/** Calls whose function arguments answer tool calls. */
const REGISTRARS = new Set(["registerTool", "tool", "addTool", "setRequestHandler"]);

/** Properties and methods that answer tool calls. */
const HANDLER_KEYS = new Set(["handler", "execute", "run"]);

/** Finds tool results with text blocks written by hand, where a handler returns them. */
export function findRawResults(scopes: Scopes, onRawResult: (node: Node) => void) {
  const handlers = new Set<FunctionNode>();
  const { returns, listeners } = collectReturns();
  const addHandler = (value: Node | null) => {
    const found = value === null ? undefined : scopes.functionOf(value);
    if (found !== undefined) handlers.add(found);
  };
  const onProperty = (node: SyntaxNode) => {
    const property = node as PropertyNode;
    if (HANDLER_KEYS.has(scopes.keyOf(property) ?? "")) addHandler(property.value);
  };
  return {
    ...listeners,
    Property: onProperty,
    MethodDefinition: onProperty,
    PropertyDefinition: onProperty,
    CallExpression: (node: SyntaxNode) => {
      const call = node as CallExpression;
      if (REGISTRARS.has(lastName(scopes, call.callee) ?? "")) call.arguments.forEach(addHandler);
    },
    "Program:exit": () => {
      for (const handler of handlers) {
        for (const result of rawResults(scopes, handler, returns.get(handler) ?? [])) onRawResult(result);
      }
    },
  };
}

/** Collects what each function of a file returns, leaving out the functions inside it. */
function collectReturns() {
  const returns = new Map<FunctionNode, Node[]>();
  const open: FunctionNode[] = [];
  const enter = (node: SyntaxNode) => {
    const entered = node as FunctionNode;
    open.push(entered);
    returns.set(entered, entered.body.type === ("BlockStatement" as string) ? [] : [entered.body]);
  };
  const leave = () => {
    open.pop();
  };
  const listeners = {
    FunctionDeclaration: enter,
    FunctionExpression: enter,
    ArrowFunctionExpression: enter,
    "FunctionDeclaration:exit": leave,
    "FunctionExpression:exit": leave,
    "ArrowFunctionExpression:exit": leave,
    ReturnStatement: (node: SyntaxNode) => {
      const { argument } = node as Node & { type: "ReturnStatement" };
      const owner = open.at(-1);
      if (argument !== null && owner !== undefined) returns.get(owner)?.push(argument);
    },
  };
  return { returns, listeners };
}

function lastName(scopes: Scopes, callee: Node): string | undefined {
  const bare = unwrapped(callee);
  if (bare.type === "Identifier") return bare.name;
  return bare.type === "MemberExpression" ? scopes.keyOf(bare) : undefined;
}

/** The object literals a function returns that are tool results with a text block. */
function rawResults(scopes: Scopes, owner: FunctionNode, returned: readonly Node[]): Set<Node> {
  const found = new Set<Node>();
  const seen = new Set<Node>();
  const queue = [...returned];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const node = unwrapped(next);
    if (seen.has(node)) continue;
    seen.add(node);
    if (node.type === "ObjectExpression" && isTextResult(scopes, owner, node)) found.add(node);
    queue.push(...possibleValues(scopes, owner, node));
  }
  return found;
}

/** The expressions one of which an expression evaluates to, one step further in. */
function possibleValues(scopes: Scopes, owner: FunctionNode, node: Node): readonly Node[] {
  switch (node.type) {
    case "ConditionalExpression":
      return [node.consequent, node.alternate];
    case "LogicalExpression":
      return [node.left, node.right];
    case "SequenceExpression":
      return node.expressions.slice(-1);
    case "AwaitExpression":
      return [node.argument];
    case "Identifier": {
      const constant = scopes.constantOf(node);
      return constant?.owner === owner ? [constant.init] : [];
    }
    case "CallExpression": {
      const callee = unwrapped(node.callee);
      if (callee.type !== "MemberExpression" || scopes.keyOf(callee) !== "resolve") return [];
      const isPromise = callee.object.type === "Identifier" && callee.object.name === "Promise";
      return isPromise ? node.arguments.slice(0, 1) : [];
    }
  }
  return [];
}

/** True for `{ content: [{ type: "text" … }] }`; with a `role` it is a chat message instead. */
function isTextResult(scopes: Scopes, owner: FunctionNode, { properties }: ObjectNode): boolean {
  let hasText = false;
  for (const property of properties) {
    if (property.type !== "Property" || property.value === null) continue;
    const key = scopes.keyOf(property);
    if (key === "role") return false;
    if (key === "content") hasText = hasTextBlock(scopes, constantIn(scopes, owner, property.value));
  }
  return hasText;
}

function hasTextBlock(scopes: Scopes, content: Node): boolean {
  if (content.type !== "ArrayExpression") return false;
  return content.elements.some((element) => {
    const block = element && unwrapped(element);
    if (block?.type !== "ObjectExpression") return false;
    return block.properties.some(
      (property) =>
        property.type === "Property" &&
        scopes.keyOf(property) === "type" &&
        scopes.textOf(property.value) === "text",
    );
  });
}

function constantIn(scopes: Scopes, owner: FunctionNode, node: Node): Node {
  const bare = unwrapped(node);
  if (bare.type !== "Identifier") return bare;
  const constant = scopes.constantOf(bare);
  return constant?.owner === owner ? unwrapped(constant.init) : bare;
}
