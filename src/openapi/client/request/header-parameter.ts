import { isFramingHeader, isToken } from "../header-rules.ts";
import type { ParameterPlan } from "../plan.ts";
import { checkHeaderInput } from "./check-headers.ts";
import { invalidInput, notCallable, shown } from "./invalid-input.ts";
import { checkSeparable, createShapeReader, isEmptyShape, joinShape } from "./parameter-text.ts";

/** Makes what writes the values of a header parameter; nothing where a list is empty. */
export function createHeaderWriter(parameter: ParameterPlan): (value: unknown) => string | undefined {
  const { key, name, explode, separator = "," } = parameter;
  if (!isToken(name)) {
    return () => {
      throw notCallable(`The parameter ${shown(key)} cannot be sent: its name is not that of a header.`);
    };
  }
  if (isFramingHeader(name.toLowerCase())) {
    return () => {
      throw invalidInput(key, "is a header that the transport writes by itself, and cannot be given");
    };
  }
  const readShape = createShapeReader(parameter);
  return (value) => {
    const shape = readShape(value);
    if (isEmptyShape(shape)) return undefined;
    checkSeparable(shape, separator, key);
    const text = joinShape(shape, { separator, pairs: explode, encode: (part) => part });
    return checkHeaderInput(text, key);
  };
}

/** Tells whether a header parameter can be given at all. */
export function isSendableHeader({ in: place, name }: ParameterPlan): boolean {
  return place !== "header" || (isToken(name) && !isFramingHeader(name.toLowerCase()));
}
