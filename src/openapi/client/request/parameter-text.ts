import { mediaKindOf, parseSendableType } from "../../media-types.ts";
import type { ParameterPlan } from "../plan.ts";
import { invalidInput } from "./invalid-input.ts";
import { asciiJsonOf } from "./json-input.ts";
import { memberText, shapeOf, type ValueShape } from "./parameter-value.ts";

/** Takes the value of a parameter apart. */
type ReadShape = (value: unknown) => ValueShape;

/** Makes what takes values of a parameter apart: by themselves, or as one text of the media type it is described by. */
export function createShapeReader({ key, contentType }: ParameterPlan): ReadShape {
  if (contentType === undefined) return (value) => shapeOf(value, key);
  const kind = mediaKindOf(parseSendableType(contentType)?.essence ?? contentType);
  const asJson = kind === "json" || kind === "range";
  return (value) => ({ kind: "scalar", text: asJson ? asciiJsonOf(value, key) : memberText(value, key) });
}

/** Writes a value between separators; each text is escaped, each pair is `name=value` where names and values stay together. */
export function joinShape(
  shape: ValueShape,
  options: { readonly separator: string; readonly pairs: boolean; readonly encode: (text: string) => string },
): string {
  const { separator, pairs, encode } = options;
  switch (shape.kind) {
    case "scalar":
      return encode(shape.text);
    case "list":
      return shape.items.map(encode).join(separator);
    case "members": {
      const between = pairs ? "=" : separator;
      return shape.members.map(([name, text]) => encode(name) + between + encode(text)).join(separator);
    }
  }
}

/** Tells whether a list or an object has nothing in it, which no style writes. */
export function isEmptyShape(shape: ValueShape): boolean {
  if (shape.kind === "scalar") return false;
  return shape.kind === "list" ? shape.items.length === 0 : shape.members.length === 0;
}

/** What stands between the parts of a style that is written as one value. */
const SEPARATORS: Readonly<Record<string, string>> = { spaceDelimited: " ", pipeDelimited: "|" };

/** What joins the parts of a value into one; nothing where each is written by itself. */
export function separatorOf(way: {
  readonly style: ParameterPlan["style"];
  readonly explode: boolean;
  readonly separator?: string | undefined;
}): string | undefined {
  if (way.separator !== undefined) return way.separator;
  return way.explode ? undefined : (SEPARATORS[way.style] ?? ",");
}

/** Refuses parts that hold what separates them: they would be read as more parts than there are. */
export function checkSeparable(shape: ValueShape, separator: string, key: string): void {
  if (shape.kind === "scalar") return;
  const texts = shape.kind === "list" ? shape.items : shape.members.flat();
  if (texts.some((text) => text.includes(separator))) {
    throw invalidInput(key, `holds a part with ${JSON.stringify(separator)}, which separates its parts`);
  }
}
