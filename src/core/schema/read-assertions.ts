import { isEqual } from "./compare-values.ts";
import type { Matcher } from "./pattern.ts";
import type { KeywordReader } from "./read-keywords.ts";
import { SchemaError } from "./schema-error.ts";
import {
  type NumberRules,
  type SchemaNode,
  type StringRules,
  TYPE_BITS,
  type TypeName,
} from "./schema-node.ts";

/** Compiles a pattern that stands at a pointer, or refuses it. */
type ToMatcher = (source: string, pointer: string) => Matcher;

/** Reads the keywords that look at a value as a whole: its type, its allowed values, bounds on numbers and strings. */
export function readAssertions(node: SchemaNode, read: KeywordReader, toMatcher: ToMatcher): void {
  node.types = readTypes(read);
  node.values = readValues(read);
  node.number = readNumber(read);
  node.string = readString(read, toMatcher);
}

function readValues(read: KeywordReader): readonly unknown[] | undefined {
  const values = read.list("enum");
  if (!read.has("const")) return values;
  const only = read.value("const");
  return values === undefined || values.some((value) => isEqual(value, only)) ? [only] : [];
}

function readTypes(read: KeywordReader): number {
  const value = read.value("type");
  if (value === undefined) return 0;
  let types = 0;
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (names.length === 0)
    throw new SchemaError('The keyword "type" names at least one type.', read.at("type"));
  for (const name of names) {
    if (typeof name !== "string" || !Object.hasOwn(TYPE_BITS, name)) {
      throw new SchemaError(`"${String(name)}" is not a JSON Schema type.`, read.at("type"));
    }
    types |= TYPE_BITS[name as TypeName];
  }
  return types;
}

function readNumber(read: KeywordReader): NumberRules | undefined {
  const minimum = read.number("minimum");
  const maximum = read.number("maximum");
  const multipleOf = read.number("multipleOf");
  if (multipleOf !== undefined && multipleOf <= 0) {
    throw new SchemaError('The keyword "multipleOf" takes a number above zero.', read.at("multipleOf"));
  }
  // Draft-04 and OpenAPI 3.0 say `exclusiveMinimum: true` beside `minimum`.
  const low = read.value("exclusiveMinimum") === true ? minimum : exclusive(read, "exclusiveMinimum");
  const high = read.value("exclusiveMaximum") === true ? maximum : exclusive(read, "exclusiveMaximum");
  const rules = { minimum, maximum, exclusiveMinimum: low, exclusiveMaximum: high, multipleOf };
  return Object.values(rules).every((bound) => bound === undefined) ? undefined : rules;
}

function exclusive(read: KeywordReader, keyword: string): number | undefined {
  return read.value(keyword) === false ? undefined : read.number(keyword);
}

function readString(read: KeywordReader, toMatcher: ToMatcher): StringRules | undefined {
  const minLength = read.count("minLength");
  const maxLength = read.count("maxLength");
  const source = read.string("pattern");
  if (minLength === undefined && maxLength === undefined && source === undefined) return undefined;
  return {
    minLength: minLength ?? 0,
    maxLength: maxLength ?? Number.POSITIVE_INFINITY,
    pattern: source === undefined ? undefined : toMatcher(source, read.at("pattern")),
  };
}
