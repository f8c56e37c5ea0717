interface Shape<Type extends string> {
  readonly type: Type;
  readonly parent: Node;
}

/** An identifier. */
export interface Identifier extends Shape<"Identifier"> {
  readonly name: string;
}

/** A function in any of its three forms. */
export interface FunctionNode
  extends Shape<"FunctionDeclaration" | "FunctionExpression" | "ArrowFunctionExpression"> {
  readonly id?: Identifier | null;
  readonly params: readonly Node[];
  readonly body: Node;
  readonly async: boolean;
  readonly generator: boolean;
}

/** `object.property` or `object[property]`. */
export interface MemberExpression extends Shape<"MemberExpression"> {
  readonly object: Node;
  readonly property: Node;
  readonly computed: boolean;
}

/** A call. */
export interface CallExpression extends Shape<"CallExpression"> {
  readonly callee: Node;
  readonly arguments: readonly Node[];
}

/** An object literal or an object pattern. */
export interface ObjectNode extends Shape<"ObjectExpression" | "ObjectPattern"> {
  readonly properties: readonly Node[];
}

/** A member of an object literal, an object pattern or a class. */
export interface PropertyNode extends Shape<"Property" | "MethodDefinition" | "PropertyDefinition"> {
  readonly key: Node;
  readonly value: Node | null;
  readonly computed: boolean;
}

interface Kinds {
  readonly importKind?: "type" | "value" | null;
  readonly exportKind?: "type" | "value" | null;
}

/** `import … from "source"`. */
export interface ImportDeclaration extends Shape<"ImportDeclaration">, Kinds {
  readonly source: Node;
  readonly specifiers: readonly Node[];
}

/** `export { … } from "source"` and its relatives. */
export interface ExportDeclaration
  extends Shape<"ExportNamedDeclaration" | "ExportAllDeclaration" | "ExportDefaultDeclaration">,
    Kinds {
  readonly source?: Node | null;
  readonly specifiers?: readonly Node[];
}

/** `import f = require("source")` or `import g = f.g`, TypeScript only. */
export interface ImportEquals extends Shape<"TSImportEqualsDeclaration">, Kinds {
  readonly id: Identifier;
  readonly moduleReference: Node;
}

/** Nodes around an expression that leave its value as it is. */
export interface Wrapper
  extends Shape<
    | "ChainExpression"
    | "ParenthesizedExpression"
    | "TSAsExpression"
    | "TSInstantiationExpression"
    | "TSNonNullExpression"
    | "TSSatisfiesExpression"
    | "TSTypeAssertion"
  > {
  readonly expression: Node;
}

/** The nodes the rule looks at; any other type falls through its switches. */
export type Node =
  | Identifier
  | FunctionNode
  | MemberExpression
  | CallExpression
  | ObjectNode
  | PropertyNode
  | ImportDeclaration
  | ExportDeclaration
  | ImportEquals
  | Wrapper
  | (Shape<"Literal"> & { readonly value: unknown })
  | (Shape<"TemplateLiteral"> & {
      readonly quasis: readonly { readonly value: { readonly cooked?: string | null } }[];
    })
  | (Shape<"ImportExpression"> & { readonly source: Node })
  | (Shape<"AwaitExpression" | "SpreadElement" | "RestElement"> & { readonly argument: Node })
  | (Shape<"ReturnStatement"> & { readonly argument: Node | null })
  | (Shape<"ConditionalExpression"> & {
      readonly test: Node;
      readonly consequent: Node;
      readonly alternate: Node;
    })
  | (Shape<"LogicalExpression" | "AssignmentExpression"> & {
      readonly left: Node;
      readonly right: Node;
      readonly operator: string;
    })
  | (Shape<"AssignmentPattern"> & { readonly left: Node; readonly right: Node })
  | (Shape<"SequenceExpression"> & { readonly expressions: readonly Node[] })
  | (Shape<"ArrayExpression" | "ArrayPattern"> & { readonly elements: readonly (Node | null)[] })
  | (Shape<"VariableDeclarator"> & { readonly id: Node; readonly init: Node | null })
  | (Shape<"VariableDeclaration"> & { readonly kind: string })
  | (Shape<"ImportSpecifier"> & Kinds & { readonly imported: Node; readonly local: Identifier })
  | (Shape<"ImportNamespaceSpecifier" | "ImportDefaultSpecifier"> & { readonly local: Identifier })
  | (Shape<"ExportSpecifier"> & Kinds & { readonly local: Node })
  | (Shape<"TSExternalModuleReference" | "TSExportAssignment"> & { readonly expression: Node })
  | (Shape<"TSQualifiedName"> & { readonly left: Node; readonly right: Identifier });

/** True for the three forms of a function. */
export function isFunction(node: Node): node is FunctionNode {
  switch (node.type) {
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      return true;
  }
  return false;
}

/** True for nodes that only stand around an expression: parentheses, casts, optional chains. */
export function isWrapper(node: Node): node is Wrapper {
  switch (node.type) {
    case "ChainExpression":
    case "ParenthesizedExpression":
    case "TSAsExpression":
    case "TSInstantiationExpression":
    case "TSNonNullExpression":
    case "TSSatisfiesExpression":
    case "TSTypeAssertion":
      return true;
  }
  return false;
}

/** Takes parentheses, casts and optional chains off an expression. */
export function unwrapped(node: Node): Node {
  let inner = node;
  while (isWrapper(inner)) inner = inner.expression;
  return inner;
}
