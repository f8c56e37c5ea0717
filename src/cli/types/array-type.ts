import type { SchemaNode } from "../../core/schema/schema-node.ts";
import type { PartWriter } from "./schema-to-type.ts";
import { arrayOf, atom, indent, type TypeText, toText, UNKNOWN } from "./type-text.ts";

/** Places of a tuple written out. */
const MAX_PLACES = 100;

/** Tells whether a node says anything of the items of lists that a type can say. */
export function saysItems({ array }: SchemaNode): boolean {
  return array !== undefined && (array.prefix.length > 0 || array.items !== undefined);
}

/** The type of the lists that a node lets through. */
export function arrayType({ array }: SchemaNode, writer: PartWriter): TypeText {
  if (array === undefined) return arrayOf(UNKNOWN);
  const { prefix, items, minItems, maxItems } = array;
  const rest = items === undefined ? UNKNOWN : writer.typeOf(items);
  if (prefix.length === 0) return arrayOf(rest);
  if (prefix.length > MAX_PLACES) return arrayOf(UNKNOWN);
  const places = prefix.slice(0, Math.min(prefix.length, maxItems)).map((node, place) => {
    const text = toText(writer.typeOf(node));
    return place < minItems ? text : `(${text})?`;
  });
  const isClosed = items?.constant === false || maxItems <= prefix.length;
  if (!isClosed) places.push(`...${toText(arrayOf(rest))}`);
  return atom(`[${indent(places.join(", "))}]`);
}
