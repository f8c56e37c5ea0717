import { isObject } from "../../../core/schema/json-schema.ts";
import { titled } from "../parts/show.ts";
import type { ChoiceField, Field, FieldFacts, VariantsField } from "./field.ts";
import { type FlatSchema, flattenSchema } from "./flatten-schema.ts";
import { type FormObject, membersIn, ownOf, showShort } from "./form-json.ts";

/** How the importer of OpenAPI documents takes a file: its bytes, and what it is called. */
export const FILE_OBJECT: FormObject = Object.freeze({ title: "File" });

/** As many as a person can choose from. */
const MOST = 200;

/** What reading alternatives needs of the reader of schemas. */
export interface ChoicesOptions {
  readonly facts: FieldFacts;
  readonly root: unknown;
  readonly read: (schema: unknown, root: unknown) => Field;
}

const SHAPES = "type properties items prefixItems enum const format additionalProperties pattern".split(" ");

interface Choice {
  readonly schema: unknown;
  readonly flat: FlatSchema;
}

/** Reads `oneOf` and `anyOf`: some values, some schemas, or one schema and `null`; nothing where they only add rules. */
export function readChoices(flat: FlatSchema, options: ChoicesOptions): Field | undefined {
  const { root, read } = options;
  const lists = flat.choices.map((list) =>
    list.slice(0, MOST).flatMap((schema): Choice[] => {
      const found = flattenSchema(schema, root);
      return found === undefined ? [] : [{ schema, flat: found }];
    }),
  );
  const index = lists.findIndex((list) => list.some(isAboutShape));
  const possible = lists[index] ?? [];
  const real = possible.filter((choice) => !isNull(choice));
  const [only] = real;
  if (only === undefined) return undefined;
  const others = flat.choices.toSpliced(index, 1).map((anyOf) => ({ anyOf }));
  const rest: FormObject = { ...flat.keywords, allOf: others };
  const facts = { ...options.facts, isNullable: options.facts.isNullable || real.length < possible.length };
  if (real.length === 1) {
    return { ...read({ allOf: [rest, only.schema] }, root), isNullable: facts.isNullable };
  }
  const taken = new Map<string, number>();
  const variants = real.map((choice, at) => {
    const mapped = mappedName(flat.keywords["discriminator"], choice.schema);
    const name = showShort(nameOf(choice, mapped, root) ?? `Variant ${at + 1}`, 60);
    const count = (taken.get(name) ?? 0) + 1;
    taken.set(name, count);
    return {
      label: count === 1 ? name : `${name} (${count})`,
      schema: { ...untitled(rest), allOf: [choice.schema, told(flat.keywords, mapped), ...others] },
    };
  });
  return readTitledValues(real, facts) ?? { ...facts, kind: "variants", variants };
}

/** Reads several types as one variant each. */
export function readTypes(keywords: FormObject, types: readonly string[], facts: FieldFacts): VariantsField {
  const variants = types.map((type) => ({ label: titled(type), schema: { ...untitled(keywords), type } }));
  const isFile = types.includes("string") && types.includes("object") && keywords["properties"] === undefined;
  if (isFile) variants.push({ label: "File", schema: FILE_OBJECT as FormObject & { readonly type: string } });
  return { ...facts, kind: "variants", variants };
}

/** A variant stands below the title of the whole. */
function untitled({ title: _1, description: _2, default: _3, ...rest }: FormObject): FormObject {
  return rest;
}

function isAboutShape({ flat }: Choice): boolean {
  return flat.choices.length > 0 || SHAPES.some((word) => word in flat.keywords);
}

function isNull({ flat: { keywords } }: Choice): boolean {
  return keywords["const"] === null || [keywords["type"]].flat().every((type) => type === "null");
}

/** Values that have a title each are written as schemas of one value. */
function readTitledValues(choices: readonly Choice[], facts: FieldFacts): ChoiceField | undefined {
  if (!choices.every(({ flat }) => Object.hasOwn(flat.keywords, "const"))) return undefined;
  const options = choices.map(({ flat: { keywords } }) => {
    const { const: value, title } = keywords;
    return { label: showShort(typeof title === "string" ? title : value), value };
  });
  return { ...facts, kind: "choice", options };
}

/** By title, by the discriminator, by a member of one value, by reference, or by type. */
function nameOf({ schema, flat }: Choice, mapped: string | undefined, root: unknown): string | undefined {
  const { title, properties, type, ...keywords } = flat.keywords;
  if (typeof title === "string" && title.trim() !== "") return title;
  if (mapped !== undefined) return mapped;
  for (const member of Object.values(membersIn(properties)).slice(0, MOST)) {
    const value = onlyValue(flattenSchema(member, root)?.keywords ?? {});
    if (value !== undefined) return value;
  }
  return lastName(schema) ?? onlyValue(keywords) ?? (typeof type === "string" ? titled(type) : undefined);
}

function lastName(schema: unknown): string | undefined {
  const reference = ownOf(schema, "$ref");
  return (typeof reference === "string" && reference.slice(reference.lastIndexOf("/") + 1)) || undefined;
}

/** OpenAPI names the variants beside them, or by where they stand. */
function mappedName(discriminator: unknown, schema: unknown): string | undefined {
  if (!isObject(discriminator) || !isObject(schema)) return undefined;
  const { mapping } = discriminator;
  const mapped = Object.entries(membersIn(mapping)).find(([, to]) => to === schema["$ref"]);
  return mapped?.[0] ?? lastName(schema);
}

/** The member that tells the variants apart has to say which it is. */
function told({ discriminator }: FormObject, value: string | undefined): unknown {
  const name = ownOf(discriminator, "propertyName");
  if (typeof name !== "string" || value === undefined) return true;
  return { properties: { [name]: { const: value } }, required: [name] };
}

function onlyValue(keywords: FormObject): string | undefined {
  const { enum: values } = keywords;
  if (Object.hasOwn(keywords, "const")) return showShort(keywords["const"]);
  return Array.isArray(values) && values.length === 1 ? showShort(values[0]) : undefined;
}
