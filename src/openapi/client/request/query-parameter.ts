import type { ParameterPlan } from "../plan.ts";
import { escapeName, escapeReserved, escapeSeparator, escapeText } from "./escape.ts";
import { invalidInput } from "./invalid-input.ts";
import { checkSeparable, createShapeReader, isEmptyShape, joinShape, separatorOf } from "./parameter-text.ts";
import { isAbsent, refuseOpaque, scalarText, type ValueShape } from "./parameter-value.ts";

/** Adds escaped `name=value` pairs of one value. */
export type PairWriter = (value: unknown, pairs: string[]) => void;

/** Deepest object that is written with brackets. */
const DEEPEST = 32;

/** Makes what writes the values of a query parameter, or of a property of a form. */
export function createQueryWriter(parameter: ParameterPlan): PairWriter {
  const { key, name, style, allowReserved, contentType } = parameter;
  const encode = (text: string) =>
    allowReserved ? escapeReserved(text, key, "query") : escapeText(text, key);
  const label = escapeName(name);
  if (style === "deepObject" && contentType === undefined) {
    return (value, pairs) => writeDeep(value, label, { key, encode, pairs, depth: 0 });
  }
  const readShape = createShapeReader(parameter);
  const joined = separatorOf(parameter);
  const separator = escapeSeparator(joined ?? ",");
  return (value, pairs) => {
    // Text is what most values are.
    const shape: ValueShape =
      typeof value === "string" && contentType === undefined
        ? { kind: "scalar", text: value }
        : readShape(value);
    if (isEmptyShape(shape)) {
      if (parameter.allowEmpty) pairs.push(`${label}=`);
    } else if (joined === undefined && shape.kind !== "scalar") {
      writeExploded(shape, pairs, { label, encode });
    } else {
      // An escaped separator is not told from one inside of a part, and where reserved characters stay, nor is a comma.
      if (separator !== ",") checkSeparable(shape, joined ?? separator, key);
      if (allowReserved) checkSeparable(shape, ",", key);
      pairs.push(`${label}=${joinShape(shape, { separator, pairs: false, encode })}`);
    }
  };
}

/** One pair per item or member, the latter under their own names. */
export function writeExploded(
  shape: ValueShape,
  pairs: string[],
  { label, encode }: { readonly label: string; readonly encode: (text: string) => string },
): void {
  if (shape.kind === "list") for (const item of shape.items) pairs.push(`${label}=${encode(item)}`);
  if (shape.kind !== "members") return;
  for (const [name, text] of shape.members)
    pairs.push(`${encode(name).replaceAll("=", "%3D")}=${encode(text)}`);
}

interface DeepWalk {
  readonly key: string;
  readonly encode: (text: string) => string;
  readonly pairs: string[];
  readonly depth: number;
}

/**
 * Writes `a[b][c]=1`. OpenAPI does not say how lists nest: `a[]=1` is what most servers read, and items that are objects are
 * numbered, because nothing else keeps their members together.
 */
function writeDeep(value: unknown, label: string, walk: DeepWalk): void {
  if (isAbsent(value)) return;
  const text = scalarText(value, walk.key);
  if (text !== undefined) {
    walk.pairs.push(`${label}=${walk.encode(text)}`);
    return;
  }
  refuseOpaque(value, walk.key);
  if (walk.depth >= DEEPEST) throw invalidInput(walk.key, `is nested more than ${DEEPEST} levels deep`);
  const inside = { ...walk, depth: walk.depth + 1 };
  const isList = Array.isArray(value);
  const isFlat =
    isList && value.every((item) => isAbsent(item) || typeof item !== "object" || item instanceof Date);
  for (const [name, member] of Object.entries(value as object)) {
    const index = isFlat ? "" : escapeText(name, walk.key);
    writeDeep(member, `${label}%5B${index}%5D`, inside);
  }
}
