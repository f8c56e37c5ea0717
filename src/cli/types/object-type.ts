import type { ObjectRules, SchemaNode } from "../../core/schema/schema-node.ts";
import type { PartWriter } from "./schema-to-type.ts";
import { propertyKey } from "./type-names.ts";
import { atom, indent, type TypeText, toText, UNKNOWN, unionOf } from "./type-text.ts";

/** An index signature that would get longer says nothing. */
const MAX_INDEX = 160;

/** Properties written out; the rest are as good as not mentioned. */
const MAX_PROPERTIES = 2_000;

/** What every object has; the compiler takes these for the property where it is absent. */
const INHERITED = new Set(Object.getOwnPropertyNames(Object.prototype));

/** Tells whether a node says anything of the properties of objects that a type can say. */
export function saysProperties({ object }: SchemaNode): boolean {
  if (object === undefined) return false;
  const { properties, required, patterns, additional } = object;
  return properties.size > 0 || required.length > 0 || patterns.length > 0 || additional !== undefined;
}

interface Property {
  readonly name: string;
  readonly isRequired: boolean;
  readonly type: TypeText;
  readonly comment: string;
}

/** The type of the objects that a node lets through. */
export function objectType(node: SchemaNode, writer: PartWriter): TypeText {
  const { object } = node;
  if (object === undefined) return UNKNOWN_OBJECT;
  const properties = propertiesOf(object, writer);
  const index = indexType(node, object, properties, writer);
  if (properties.length === 0 && index === undefined) return EMPTY_OBJECT;
  if (properties.length === 0 && index !== undefined)
    return atom(`{ [key: string]: ${indent(toText(index))} }`);
  const lines = properties.map(({ name, isRequired, type, comment }) =>
    indent(`${comment}${propertyKey(name)}${isRequired ? "" : "?"}: ${toText(type)};`),
  );
  if (index !== undefined) lines.push(`[key: string]: ${indent(toText(index))};`);
  return atom(`{\n${lines.map((line) => `  ${line}\n`).join("")}}`);
}

const UNKNOWN_OBJECT = atom("{ [key: string]: unknown }");
const EMPTY_OBJECT = atom("{ [key: string]: never }");

function propertiesOf(object: ObjectRules, writer: PartWriter): readonly Property[] {
  const required = new Set(object.required);
  const named = [...object.properties].slice(0, MAX_PROPERTIES).map(([name, node]) => {
    const isRequired = required.has(name);
    const type = !isRequired && INHERITED.has(name) ? UNKNOWN : writer.typeOf(node);
    return { name, isRequired, type, comment: writer.comment(node) };
  });
  const others = [...required]
    .filter((name) => !object.properties.has(name))
    .slice(0, MAX_PROPERTIES)
    .map((name) => ({ name, isRequired: true, type: otherType(object, writer), comment: "" }));
  return [...named, ...others];
}

/** The type of a property that is required and not described. */
function otherType({ additional, patterns }: ObjectRules, writer: PartWriter): TypeText {
  return additional === undefined || patterns.length > 0 ? UNKNOWN : writer.typeOf(additional);
}

/** The type of all properties, those with names of their own included: the compiler wants it so. Nothing where there are no others. */
function indexType(
  node: SchemaNode,
  { properties, additional, patterns }: ObjectRules,
  named: readonly Property[],
  writer: PartWriter,
): TypeText | undefined {
  if (properties.size > MAX_PROPERTIES) return UNKNOWN;
  const rest = additional ?? (node.isCompound ? undefined : node.unevaluatedProperties);
  if (rest === undefined)
    return writer.closed && named.length > 0 && patterns.length === 0 ? undefined : UNKNOWN;
  if (rest.constant === false && patterns.length === 0) return undefined;
  const types = [rest, ...patterns.map(([, child]) => child)].map((child) => writer.typeOf(child));
  const hasOptional = named.some(({ isRequired }) => !isRequired);
  const all = unionOf([
    ...types,
    ...named.map(({ type }) => type),
    ...(hasOptional ? [atom("undefined")] : []),
  ]);
  const isLong = named.length > 0 && toText(all).length > MAX_INDEX;
  return isLong ? UNKNOWN : all;
}
