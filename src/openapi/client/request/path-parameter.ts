import type { ParameterPlan } from "../plan.ts";
import { escapeName, escapeReserved, escapeSeparator, escapeText } from "./escape.ts";
import { invalidInput } from "./invalid-input.ts";
import { checkSeparable, createShapeReader, isEmptyShape, joinShape } from "./parameter-text.ts";
import type { ValueShape } from "./parameter-value.ts";

/** Makes what writes the values of a path parameter: never a `/`, and never nothing. */
export function createPathWriter(parameter: ParameterPlan): (value: unknown) => string {
  const { key, name, style, explode, allowReserved, separator = "," } = parameter;
  const readShape = createShapeReader(parameter);
  const encode = (text: string) =>
    allowReserved ? escapeReserved(text, key, "path") : escapeText(text, key);
  const label = escapeName(name);
  const write = (shape: ValueShape): string => {
    if (style === "matrix") return writeMatrix(shape, { label, explode, encode });
    if (style !== "label") {
      if (separator !== ",") checkSeparable(shape, separator, key);
      return joinShape(shape, { separator: escapeSeparator(separator), pairs: explode, encode });
    }
    return `.${joinShape(shape, { separator: explode ? "." : ",", pairs: explode, encode })}`;
  };
  return (value) => {
    const shape = readShape(value);
    const text = isEmptyShape(shape) ? "" : write(shape);
    if (text === "") throw invalidInput(key, "is empty, which a path cannot hold");
    return text;
  };
}

function writeMatrix(
  shape: ValueShape,
  way: { readonly label: string; readonly explode: boolean; readonly encode: (text: string) => string },
): string {
  const { label, explode, encode } = way;
  const pair = (name: string, text: string) => (text === "" ? `;${name}` : `;${name}=${text}`);
  if (explode && shape.kind === "list") return shape.items.map((item) => pair(label, encode(item))).join("");
  if (explode && shape.kind === "members") {
    return shape.members.map(([name, text]) => pair(encode(name), encode(text))).join("");
  }
  return pair(label, joinShape(shape, { separator: ",", pairs: false, encode }));
}
