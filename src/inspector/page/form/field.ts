import { isObject } from "../../../core/schema/json-schema.ts";
import { isHardToShow } from "./form-json.ts";

/** What a form knows of one place of an input, whatever it holds. */
export interface FieldFacts {
  readonly title?: string;
  readonly description?: string;
  readonly isDeprecated: boolean;
  /** `null` is a value of its own here. */
  readonly isNullable: boolean;
  /** A default, where there is one. */
  readonly default?: { readonly value: unknown };
  readonly examples: readonly unknown[];
  /** Rules in words, such as `2 to 10 characters`. */
  readonly hints: readonly string[];
}

/** A member of an object. */
export interface Member {
  readonly name: string;
  readonly schema: unknown;
  readonly isRequired: boolean;
}

/** An object: members that are known, and what others have to be. */
export interface ObjectField extends FieldFacts {
  readonly kind: "object";
  readonly members: readonly Member[];
  readonly known: ReadonlySet<string>;
  /** What members of other names have to be. */
  readonly others: unknown;
  /** Whether members of other names are offered; those that are there are shown in any case. */
  readonly isOpen: boolean;
}

/** A list: the first items by their place, then all others. */
export interface ListField extends FieldFacts {
  readonly kind: "list";
  readonly first: readonly unknown[];
  readonly items: unknown;
  readonly min: number;
  readonly max: number;
}

/** A text. */
export interface TextField extends FieldFacts {
  readonly kind: "text";
  /** Lines can be broken in it, as far as one can tell. */
  readonly mayBreak: boolean;
  /** What kind of input asks for it. */
  readonly type: "text" | "password" | "date" | "email" | "url";
}

/** Bytes: as text in base64, or as an object that names the file, too. */
export interface FileField extends FieldFacts {
  readonly kind: "file";
  readonly isNamed: boolean;
  readonly accept?: string;
}

/** A number. */
export interface NumberField extends FieldFacts {
  readonly kind: "number";
  readonly isInteger: boolean;
  readonly start: number;
}

/** One of some values. */
export interface ChoiceField extends FieldFacts {
  readonly kind: "choice";
  readonly options: readonly { readonly label: string; readonly value: unknown }[];
}

/** One of some schemas. */
export interface VariantsField extends FieldFacts {
  readonly kind: "variants";
  readonly variants: readonly { readonly label: string; readonly schema: unknown }[];
}

/** A value that is given. */
export interface FixedField extends FieldFacts {
  readonly kind: "fixed";
  readonly value: unknown;
}

/** Yes or no; anything at all, as JSON; nothing at all. */
export interface SimpleField extends FieldFacts {
  readonly kind: "boolean" | "json" | "never";
}

/** How one place of an input is asked for. */
export type Field =
  | ObjectField
  | ListField
  | TextField
  | FileField
  | NumberField
  | ChoiceField
  | VariantsField
  | FixedField
  | SimpleField;

/** Texts that are longer make browsers slow. */
export const LONG = 200_000;

/** Tells whether a value is of the kind that a field can show; what is not is shown as JSON, and stays. */
export function canShow(field: Field, value: unknown): boolean {
  if (value === undefined || (value === null && field.isNullable)) return true;
  const { kind } = field;
  switch (kind) {
    case "object":
      return isObject(value);
    case "list":
      return Array.isArray(value);
    case "text":
      return typeof value === "string" && value.length <= LONG && !isHardToShow(value);
    case "file":
      return field.isNamed ? isNamedFile(value) : typeof value === "string";
    case "number":
    case "boolean":
      return typeof value === kind;
    default:
      return kind !== "never";
  }
}

/** Tells whether a value is a file with its name, and nothing that would get lost with it. */
export function isNamedFile(
  value: unknown,
): value is { readonly base64: string; readonly filename?: string } {
  if (!isObject(value) || !("base64" in value)) return false;
  return Object.entries(value).every(
    ([name, part]) => ["base64", "filename", "contentType"].includes(name) && typeof part === "string",
  );
}
