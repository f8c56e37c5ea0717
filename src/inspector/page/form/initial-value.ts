import { isObject } from "../../../core/schema/json-schema.ts";
import { canShow, type Field, type VariantsField } from "./field.ts";
import { type FormObject, isSameJson, membersIn } from "./form-json.ts";
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

/** Worse than any value of the right kind. */
const UNFIT = -1_000;

/** Fields that are looked at, to say how well a value fits; schemas may nest any number of them. */
const MOST_LOOKED_AT = 1_000;

/** How far down differences are looked for. */
const DEPTH = 3;

/** Finds the variant that a value fits best; -1 for no value, and for one that is of none of their kinds. */
export function pickVariant({ variants }: VariantsField, value: unknown, root: unknown): number {
  const budget = { left: MOST_LOOKED_AT };
  const fits = variants.map(({ schema }) =>
    value == null ? UNFIT : fitOf(readSchema(schema, root), value, { root, budget, depth: 0 }),
  );
  const best = Math.max(UNFIT, ...fits);
  return best === UNFIT ? -1 : fits.indexOf(best);
}

/** Tells whether a value is of the kind of a schema. */
export function isOfKind(schema: unknown, value: unknown, root: unknown): boolean {
  return fitOf(readSchema(schema, root), value, { root, budget: { left: MOST_LOOKED_AT }, depth: 0 }) > UNFIT;
}

/** Makes the value of another variant, with those members of the old one that have a place in it. */
export function switchVariant(
  schema: unknown,
  { value, before, root }: { readonly value: unknown; readonly before: unknown; readonly root: unknown },
): unknown {
  const field = readSchema(schema, root);
  const made = initialValue(schema, root);
  const start = isObject(made) && isObject(before) ? { ...made, ...before } : (before ?? made);
  if (field.kind !== "object") {
    return start === undefined && value !== undefined && isOfKind(schema, value, root) ? value : start;
  }
  if (!isObject(value)) return start;
  const kept = field.members.filter(
    ({ name, schema: member }) =>
      Object.hasOwn(value, name) &&
      readSchema(member, root).kind !== "fixed" &&
      isOfKind(member, value[name], root),
  );
  return {
    ...membersIn(start),
    ...Object.fromEntries(kept.map(({ name }) => [name, value[name]])),
  };
}

interface Looking {
  readonly root: unknown;
  readonly budget: { left: number };
  readonly depth: number;
}

/** Says how well a value fits a field. */
function fitOf(field: Field, value: unknown, looking: Looking): number {
  const { root, budget, depth } = looking;
  const below = (schema: unknown, part: unknown): number => {
    budget.left -= 1;
    if (budget.left <= 0 || depth >= DEPTH) return 0;
    return fitOf(readSchema(schema, root), part, { root, budget, depth: depth + 1 });
  };
  if (value === null && field.isNullable) return 0;
  if (field.kind === "fixed") return isSameJson(value, field.value) ? 100 : UNFIT;
  if (field.kind === "choice") {
    return field.options.some((option) => isSameJson(option.value, value)) ? 50 : UNFIT;
  }
  if (field.kind === "variants") return Math.max(...field.variants.map(({ schema }) => below(schema, value)));
  if (!canShow(field, value)) return UNFIT;
  if (field.kind === "number" && field.isInteger) return Number.isInteger(value) ? 2 : UNFIT;
  if (field.kind === "file" && field.isNamed) return 5;
  if (field.kind === "list" && Array.isArray(value) && value.length > 0) {
    return below(field.first[0] ?? field.items, value[0]);
  }
  return field.kind === "object" && isObject(value) ? fitOfObject(field, value, below) : 1;
}

/** Members that tell variants apart by their value count most, then those that are required, then those that are known. */
function fitOfObject(
  { members, known, isOpen }: Extract<Field, { kind: "object" }>,
  value: FormObject,
  below: (schema: unknown, part: unknown) => number,
): number {
  let fit = 1;
  for (const { name, schema, isRequired } of members.slice(0, MOST_LOOKED_AT)) {
    if (!Object.hasOwn(value, name)) fit -= isRequired ? 2 : 0;
    else fit += (isRequired ? 3 : 2) + Math.max(-100, below(schema, value[name]));
  }
  const unknown = Object.keys(value).filter((name) => !known.has(name)).length;
  return Math.max(UNFIT + 1, fit - unknown * (isOpen ? 1 : 3));
}
