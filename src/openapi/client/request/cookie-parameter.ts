import type { ParameterPlan } from "../plan.ts";
import { escapeName, escapeSeparator, escapeText } from "./escape.ts";
import { invalidInput } from "./invalid-input.ts";
import { checkSeparable, createShapeReader, isEmptyShape, joinShape, separatorOf } from "./parameter-text.ts";
import { type PairWriter, writeExploded } from "./query-parameter.ts";

/** What RFC 6265 lets a cookie hold unquoted. */
const COOKIE_TEXT = /^[!#-+\--:<-[\]-~]*$/;

/**
 * Makes what writes the values of a cookie parameter: escaped in the style `form`, as they are in the style `cookie`, which refuses
 * what would need escaping. Parts that are exploded become cookies of their own: nothing reads the `&` of a query here.
 */
export function createCookieWriter(parameter: ParameterPlan): PairWriter {
  const { key, name, style, contentType } = parameter;
  const isRaw = style === "cookie" && contentType === undefined;
  const encode = (text: string) => (isRaw ? checkCookie(text, key) : escapeText(text, key));
  const readShape = createShapeReader(parameter);
  const label = escapeName(name);
  const joined = separatorOf(parameter);
  const separator = escapeSeparator(joined ?? ",");
  return (value, pairs) => {
    const shape = readShape(value);
    if (isEmptyShape(shape)) return;
    if (joined === undefined && shape.kind !== "scalar") writeExploded(shape, pairs, { label, encode });
    else {
      if (separator !== ",") checkSeparable(shape, joined ?? separator, key);
      pairs.push(`${label}=${joinShape(shape, { separator, pairs: false, encode })}`);
    }
  };
}

function checkCookie(text: string, key: string): string {
  if (COOKIE_TEXT.test(text)) return text;
  throw invalidInput(key, "holds characters that a cookie cannot hold");
}
