import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { schemaCases } from "../../../test/arbitrary-schema.ts";
import { seededRuns } from "../../../test/runs.ts";
import { typeErrors } from "../../../test/type-check.ts";
import { isPlainJson } from "../../core/json/json-value.ts";
import { type CompiledSchema, compileSchema } from "../../core/schema/compile-schema.ts";
import { SchemaError } from "../../core/schema/schema-issue.ts";
import { schemaToType } from "./schema-to-type.ts";
import { NameBook, quote } from "./type-text.ts";
import { TypeBook } from "./write-types.ts";

/** Writes a schema as declarations, the last of which is `export type T`. */
function declare(schema: unknown, options?: { closed: boolean }): string {
  const { text, added } = new TypeBook(new NameBook()).add(schemaToType(schema, options), "");
  const aliases = added.map((alias) => `${alias.comment}type ${alias.name} = ${alias.text};\n`);
  return `${aliases.join("")}export type T = ${text};\n`;
}

/** Writes a value as a program does. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object" || value === null)
    return typeof value === "string" ? quote(value) : String(value);
  // In brackets, because `__proto__` without them is no property.
  return `{ ${Object.entries(value)
    .map(([key, member]) => `[${quote(key)}]: ${literal(member)}`)
    .join(", ")} }`;
}

/** The text of the type of a schema that refers to nothing. */
const typeText = (schema: unknown, options?: { closed: boolean }): string =>
  declare(schema, options).replace(/^export type T = (.*);\n$/s, "$1");

function compiledOrNone(schema: unknown): CompiledSchema | undefined {
  try {
    return compileSchema(schema);
  } catch (error) {
    if (error instanceof SchemaError) return undefined;
    throw error;
  }
}

/** Of a literal, the compiler compares such members with the methods of texts and numbers, where the type has those too. */
function isPlainlyNamed(value: unknown): boolean {
  return !/"(?:toString|constructor)":/.test(JSON.stringify(value));
}

/** A namespace with the type of a schema and every value that fits it. */
function program(schema: unknown, values: readonly unknown[]): string {
  const constants = values.map((value, i) => `export const v${i}: T = ${literal(value)};`);
  return `${declare(schema)}${constants.join("\n")}`;
}

describe("schemaToType", () => {
  it("RE-27 never rejects a value that fits the schema", () => {
    const cases = fc.sample(schemaCases(false), seededRuns(800));
    const spaces: string[] = [];
    let accepted = 0;
    for (const { schema, values } of cases) {
      const compiled = compiledOrNone(schema);
      if (compiled === undefined) continue;
      const valid = values.filter(
        (value) => isPlainJson(value) && isPlainlyNamed(value) && compiled.check(value),
      );
      accepted += valid.length;
      spaces.push(
        `export namespace S${spaces.length} {\n/* ${JSON.stringify(schema).replace(/\*\//g, "")} */\n${program(schema, valid)}\n}`,
      );
    }
    expect(accepted).toBeGreaterThan((cases.length * 500) / 800);
    expect(typeErrors({ types: spaces.join("\n") }).types).toEqual([]);
  });

  it.each<[string, unknown, string]>([
    ["no schema at all", {}, "unknown"],
    ["true", true, "unknown"],
    ["false", false, "never"],
    ["not", { not: { type: "string" } }, "unknown"],
    ["an integer", { type: "integer", minimum: 1 }, "number"],
    ["a list of types", { type: ["string", "null"] }, "string | null"],
    ["a format", { type: "string", format: "date-time" }, "string"],
    ["an enum", { enum: ["a", 1, null, true] }, '"a" | 1 | null | true'],
    ["an enum within a type", { type: "string", enum: ["a", 1] }, '"a"'],
    ["a const that is a structure", { const: { a: [1, "x"] } }, '{ a: [1, "x"] }'],
    ["a list", { type: "array", items: { type: ["string", "number"] } }, "(string | number)[]"],
    [
      "a tuple",
      { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], minItems: 2, items: false },
      "[string, number]",
    ],
    [
      "a tuple that may be shorter or longer",
      { type: "array", prefixItems: [{ type: "string" }], items: { type: "null" } },
      "[(string)?, ...null[]]",
    ],
    [
      "a tuple of draft-07",
      {
        $schema: "http://json-schema.org/draft-07/schema#",
        type: "array",
        items: [{ type: "string" }],
        additionalItems: false,
        minItems: 1,
      },
      "[string]",
    ],
    ["any object", { type: "object" }, "{ [key: string]: unknown }"],
    ["a closed empty object", { type: "object", additionalProperties: false }, "{ [key: string]: never }"],
    ["a map", { type: "object", additionalProperties: { type: "number" } }, "{ [key: string]: number }"],
    [
      "patterns of names",
      { type: "object", patternProperties: { "^x-": { type: "string" } }, additionalProperties: false },
      "{ [key: string]: string }",
    ],
    [
      "a union",
      { oneOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
      "string | string[]",
    ],
    ["if and then", { type: "string", if: { const: "a" }, then: { minLength: 2 } }, "string"],
    ["a short definition", { $ref: "#/$defs/name", $defs: { name: { type: "string" } } }, "string"],
    [
      "siblings of a reference in draft-07",
      {
        $schema: "http://json-schema.org/draft-07/schema#",
        $ref: "#/definitions/a",
        type: "number",
        definitions: { a: { type: "string" } },
      },
      "string",
    ],
    [
      "more constants than are told apart",
      { enum: Array.from({ length: 2_001 }, (_, i) => `v${i}`) },
      "string",
    ],
  ])("RE-27 writes %s", (_, schema, expected) => {
    expect(typeText(schema)).toBe(expected);
  });

  it("RE-27 writes as many constants as it says", () => {
    const values = Array.from({ length: 2_000 }, (_, i) => `v${i}`);
    expect(typeText({ enum: values })).toContain('| "v1999"');
  });

  it("RE-27 writes objects with what is required, optional, deprecated, and said about it", () => {
    const schema = {
      type: "object",
      properties: {
        id: { type: "string", description: "Ends */ nothing.\n@ts-ignore this" },
        "odd name": { type: "number", default: 3 },
        constructor: { type: "string" },
      },
      required: ["id", "other"],
      additionalProperties: false,
    };
    expect(typeText(schema)).toBe(
      [
        "{",
        "  /**",
        "   * Ends *\\/ nothing.",
        "   * ts-ignore this",
        "   */",
        "  id: string;",
        "  /** @default 3 */",
        '  "odd name"?: number;',
        "  constructor?: unknown;",
        "  other: never;",
        "}",
      ].join("\n"),
    );
  });

  it("RE-27 leaves out properties that are permitted and not named only when asked", () => {
    const schema = { type: "object", properties: { a: { type: "string" } } };
    expect(typeText(schema)).toBe("{\n  a?: string;\n  [key: string]: unknown;\n}");
    expect(typeText(schema, { closed: true })).toBe("{\n  a?: string;\n}");
  });

  it("RE-27 index signatures compile next to names, and unions that multiply stay within what the compiler takes", () => {
    const branch = (i: number) => ({
      anyOf: Array.from({ length: 60 }, (_, j) => ({
        type: "object",
        properties: { [`p${i}`]: { const: j } },
        required: [`p${i}`],
      })),
    });
    const programs = {
      index: declare({
        type: "object",
        properties: {
          a: { type: "string" },
          b: { type: "object", properties: { deep: { type: "number" } } },
        },
        required: ["a"],
        patternProperties: { "^x": { type: "boolean" } },
        additionalProperties: { type: "number" },
      }),
      product: declare({ allOf: [branch(0), branch(1), branch(2), branch(3)] }),
      recursive: declare({
        $ref: "#/$defs/tree",
        $defs: {
          tree: {
            type: "object",
            properties: {
              leaf: { $ref: "#/$defs/leaf" },
              all: { type: "array", items: { $ref: "#/$defs/tree" } },
            },
          },
          leaf: {
            anyOf: [
              { type: "string" },
              { type: "array", items: { $ref: "#/$defs/leaf" } },
              { type: "object", additionalProperties: { $ref: "#/$defs/tree" } },
            ],
          },
        },
      }),
      root: declare({ type: "object", properties: { child: { $ref: "#" } } }),
      // Each holds the next, so that no name is short enough to go.
      chain: declare({
        $ref: "#/$defs/d0",
        $defs: Object.fromEntries(
          Array.from({ length: 2_000 }, (_, i) => [
            `d${i}`,
            i === 1_999
              ? { type: "string" }
              : { type: "object", properties: { next: { $ref: `#/$defs/d${i + 1}` } } },
          ]),
        ),
      }),
      deep: declare(
        Array.from({ length: 120 }).reduce<unknown>(
          (inner) => ({ type: "object", properties: { a: inner } }),
          { type: "string" },
        ),
      ),
      names: declare({
        type: "object",
        properties: Object.fromEntries(
          ["class", "a-b", "1", '"', "\u2028", "__proto__x", "😀", "\ud800", ""].map((name) => [
            name,
            { $ref: "#/$defs/class" },
          ]),
        ),
        $defs: { class: { type: "object", properties: { n: { type: "number" } } } },
      }),
    };
    expect(typeErrors(programs)).toEqual(Object.fromEntries(Object.keys(programs).map((name) => [name, []])));
  });

  it("RE-27 refuses what is no schema", () => {
    expect(() => schemaToType({ $ref: "#/$defs/gone" })).toThrow(SchemaError);
    expect(() => schemaToType({ type: "text" })).toThrow(SchemaError);
  });
});
