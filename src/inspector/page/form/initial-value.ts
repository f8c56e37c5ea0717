import type { Field } from "./field.ts";
import { readSchema } from "./read-schema.ts";

/** Values that are made up for one input at most: schemas may ask for any number. */
const MOST = 2_000;

/** Makes the input that a form starts with: what is required and what has a default, as far as the schema knows it. */
export function initialValue(schema: unknown, root: unknown = schema): unknown {
  // What is being made around a place; a schema that requires itself never ends.
  const around = new Set<Field>();
  let made = 0;
  const make = (part: unknown): unknown => {
    const field = readSchema(part, root);
    if (field.default !== undefined) return field.default.value;
    if (around.has(field) || around.size > 30 || made >= MOST) return undefined;
    made += 1;
    around.add(field);
    const value = makeFor(field);
    around.delete(field);
    return value;
  };
  const makeFor = (field: Field): unknown => {
    if (field.kind === "fixed") return field.value;
    // What nobody chose is not sent; where there is but one, there is nothing to choose.
    if (field.kind === "choice") return onlyOf(field, field.options)?.value;
    if (field.kind === "variants") return make(onlyOf(field, field.variants)?.schema ?? false);
    if (field.kind === "object") {
      const members = field.members
        .filter((each) => each.isRequired || readSchema(each.schema, root).default !== undefined)
        .map((each) => [each.name, make(each.schema)] as const);
      return Object.fromEntries(members.filter(([, value]) => value !== undefined));
    }
    if (field.kind !== "list") return undefined;
    // Texts and numbers are left to people: one that is made up would be sent unseen.
    const items = Array.from({ length: Math.min(field.min, 20) }, (_, at) =>
      make(field.first[at] ?? field.items),
    );
    return items.filter((item) => item !== undefined);
  };
  return make(schema);
}

function onlyOf<T>({ isNullable }: Field, [first, ...others]: readonly T[]): T | undefined {
  return isNullable || others.length > 0 ? undefined : first;
}

/** Makes a value where there has to be one, such as a new item of a list. */
export function firstValue(schema: unknown, root: unknown): unknown {
  const made = initialValue(schema, root);
  return made === undefined ? emptyValue(readSchema(schema, root), root) : made;
}

function emptyValue(field: Field, root: unknown): unknown {
  switch (field.kind) {
    case "text":
    case "json":
      return "";
    case "file":
      return field.isNamed ? { base64: "" } : "";
    case "number":
      return field.start;
    case "boolean":
      return false;
    case "object":
      return {};
    case "list":
      return [];
    case "variants":
      return emptyValue(readSchema(field.variants[0]?.schema, root), root);
    default:
      return null;
  }
}
