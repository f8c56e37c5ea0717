import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import { docComment } from "./doc-comment.ts";
import { type SchemaType, type SchemaTypeOptions, schemaToType } from "./schema-to-type.ts";
import { TypeBook } from "./type-book.ts";
import { NameBook, quote, typeName } from "./type-names.ts";
import { indent, UNKNOWN } from "./type-text.ts";

/** How the types of operations are written. */
export interface WriteTypesOptions extends SchemaTypeOptions {
  /** Hears of schemas that cannot be read; what they describe is `unknown`. @default nobody does */
  readonly onUnreadable?: ((id: string, direction: "input" | "output", cause: unknown) => void) | undefined;
}

/** Where the package is imported from. */
const PACKAGE = "waybill";

const HEADER = `// Made by "waybill types" from what is mounted; run it again instead of changing this file.
// Operations called by id are typed as soon as a program includes it.
/* eslint-disable */
import ${JSON.stringify(PACKAGE)};

`;

/** Operations as they are written: the names of their types are given first, so that all can be listed first. */
interface Entry {
  readonly operation: AnyOperation;
  readonly input: string;
  readonly output: string;
}

/** Writes a module that makes calls by id typed, piece by piece; the same operations give the same text in any order. */
export function* writeTypes(
  operations: Iterable<AnyOperation>,
  options: WriteTypesOptions = {},
): Generator<string, void, undefined> {
  const names = new NameBook();
  const sorted = [...operations].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  const entries = sorted.map((operation): Entry => {
    const { namespace, name } = operation;
    return {
      operation,
      input: names.give(`${typeName(namespace, name)}Input`),
      output: names.give(`${typeName(namespace, name)}Output`),
    };
  });
  yield HEADER;
  yield* writeMap(entries);
  const writing: Writing = { book: new TypeBook(names), options };
  for (const entry of entries) {
    yield writeSchema(entry, "input", writing);
    yield writeSchema(entry, "output", writing);
  }
  yield "export {};\n";
}

function* writeMap(entries: readonly Entry[]): Generator<string, void, undefined> {
  yield `declare module ${JSON.stringify(PACKAGE)} {\n  interface OperationMap {\n`;
  for (const { operation, input, output } of entries) {
    const comment = indent(indent(docComment({ description: operation.description })));
    const lead = comment === "" ? "    " : `    ${comment}`;
    yield `${lead}${quote(operation.id)}: { input: ${input}; output: ${output} };\n`;
  }
  yield "  }\n}\n\n";
}

interface Writing {
  readonly book: TypeBook;
  readonly options: WriteTypesOptions;
}

function writeSchema(entry: Entry, direction: "input" | "output", { book, options }: Writing): string {
  const { operation, [direction]: name } = entry;
  const type = typeOf(operation, direction, options);
  const { text, added } = book.add(type, operation.namespace);
  const aliases = added.map((alias) => `${alias.comment}export type ${alias.name} = ${alias.text};\n\n`);
  const what = direction === "input" ? "takes" : "answers with";
  const comment = type.comment === "" ? `/** What \`${operation.id}\` ${what}. */\n` : type.comment;
  return `${aliases.join("")}${comment}export type ${name} = ${text};\n\n`;
}

const ANYTHING: SchemaType = { comment: "", type: UNKNOWN, aliases: [] };

function typeOf(
  operation: AnyOperation,
  direction: "input" | "output",
  { onUnreadable, ...options }: WriteTypesOptions,
): SchemaType {
  const schema = direction === "input" ? operation.inputSchema : operation.outputSchema;
  if (schema === undefined) return ANYTHING;
  try {
    const hasOwnJson = typeof schema === "boolean" || !("~standard" in schema);
    const json = hasOwnJson ? schema : toOperationSchema(schema, direction).json;
    return schemaToType(json, { ...options, direction });
  } catch (cause) {
    onUnreadable?.(operation.id, direction, cause);
    return ANYTHING;
  }
}
