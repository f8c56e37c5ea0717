import { runInNewContext } from "node:vm";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { Type } from "typebox";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import { z as z3 } from "zod/v3";
import { type AnySchema, type SchemaDirection, toOperationSchema } from "./any-schema.ts";
import type { JsonSchema } from "./json-schema.ts";
import { SchemaError } from "./schema-issue.ts";

function refusal(schema: unknown, direction: SchemaDirection = "output"): SchemaError {
  try {
    toOperationSchema(schema as AnySchema, direction);
  } catch (error) {
    if (error instanceof SchemaError) return error;
    throw error;
  }
  throw new Error("The schema was accepted.");
}

const standard = (props: object) => ({ "~standard": { version: 1, vendor: "acme", ...props } });

describe("schemas of any kind", () => {
  it.each([
    ["zod", z.object({ n: z.number() }), true],
    ["arktype", type({ n: "number" }), true],
    ["wrapped valibot", toStandardJsonSchema(v.object({ n: v.number() })), true],
    ["TypeBox", Type.Object({ n: Type.Number() }), false],
    ["JSON Schema", { type: "object", properties: { n: { type: "number" } }, required: ["n"] }, false],
  ] as [string, AnySchema, boolean][])("RE-32 compiles %s for both directions", async (_, schema, hasOwn) => {
    for (const direction of ["input", "output"] as const) {
      const compiled = toOperationSchema(schema, direction);
      expect(compiled.json).toMatchObject({ type: "object", properties: { n: { type: "number" } } });
      expect(compiled.meaningful).toBe(true);
      expect(compiled.check({ n: 1 })).toBe(true);
      expect(compiled.errors({ n: "x" })).toMatchObject([{ pointer: "/n" }]);
      expect(compiled.validate !== undefined).toBe(hasOwn);
      if (compiled.validate === undefined) continue;
      expect(await compiled.validate({ n: 1 })).toMatchObject({ value: { n: 1 } });
      expect(await compiled.validate({ n: "x" })).toHaveProperty("issues.length", 1);
    }
  });

  it.each([true, false])("RE-32 compiles the boolean schema %s", (schema) => {
    const compiled = toOperationSchema(schema, "input");
    expect(compiled.check(1)).toBe(schema);
    expect(compiled.validate).toBeUndefined();
  });

  it("RE-32 asks a Standard Schema for the side of the call it describes", () => {
    const schema = z.object({ n: z.number().default(7) });
    expect(toOperationSchema(schema, "input").check({})).toBe(true);
    expect(toOperationSchema(schema, "output").check({})).toBe(false);
    const piped = z.pipe(z.string(), z.transform(Number));
    expect(toOperationSchema(piped, "input").check("7")).toBe(true);
  });

  it("RE-32 asks for draft 2020-12 and keeps the library's own check bound to its schema", () => {
    const asked: unknown[] = [];
    const schema = standard({
      jsonSchema: {
        input: (options: unknown) => {
          asked.push(options);
          return { type: "string" };
        },
      },
      validate(this: { readonly vendor: string }) {
        return { value: this.vendor };
      },
    }) as unknown as AnySchema;
    const compiled = toOperationSchema(schema, "input");
    expect(asked).toEqual([{ target: "draft-2020-12" }]);
    const { validate } = compiled;
    expect(validate?.(1)).toEqual({ value: "acme" });
    expect(compiled.check(1)).toBe(false);
  });

  it("RE-32 vets the JSON Schema that a library gives", () => {
    const schema = standard({
      jsonSchema: { output: () => ({ type: "strin" }) },
      validate: () => ({ value: 1 }),
    });
    expect(refusal(schema)).toMatchObject({ message: expect.stringContaining('"strin"'), pointer: "/type" });
  });
});

describe("schemas that are refused", () => {
  const valibot = v.object({ n: v.number() });
  const early = z3.object({ n: z3.number() });
  const zod41 = {
    _zod: {},
    optional: () => undefined,
    "~standard": { version: 1, vendor: "zod", validate: () => ({ value: 1 }) },
  };
  it.each([
    [
      "unwrapped valibot",
      valibot,
      "This valibot schema cannot give its JSON Schema; wrap it with toStandardJsonSchema from @valibot/to-json-schema.",
    ],
    ["zod before 4.2", zod41, "This zod schema cannot give its JSON Schema; use zod 4.2 or newer."],
    ["zod 3", early, "zod 3 never does: use zod 4.2 or newer, or pass zodToJsonSchema(schema)"],
    [
      "zod/mini",
      mini.object({ n: mini.number() }),
      "those of zod/mini never do: pass z.toJSONSchema(schema)",
    ],
    ["sury", { "~standard": { version: 1, vendor: "sury" } }, "pass S.toJSONSchema(schema)"],
    [
      "sury 11 before it was told to write JSON Schema",
      {
        "~standard": {
          version: 1,
          vendor: "sury",
          validate: () => ({ value: 1 }),
          jsonSchema: {
            input: () => {
              throw new Error(
                "~standard.jsonSchema requires S.enableStandardJSONSchema() to be called first",
              );
            },
          },
        },
      },
      "call S.enableStandardJSONSchema() first",
    ],
    ["valita", { "~standard": { version: 1, vendor: "valita" } }, "valita never does: declare the shape"],
    [
      "another library",
      standard({}),
      "This acme schema cannot give its JSON Schema; use a version that implements ~standard.jsonSchema, or pass plain JSON Schema.",
    ],
    [
      "a library that knows the input only",
      standard({ jsonSchema: { input: () => ({}) } }),
      "This acme schema cannot give",
    ],
  ])("RE-32 refuses %s with a word on what to do", (_, schema, message) => {
    expect(refusal(schema)).toMatchObject({ message: expect.stringContaining(message), pointer: "" });
  });

  it.each([
    ["zod", z.object({ n: z.string().transform(Number) }), "output"],
    ["zod", z.object({ when: z.date() }), "input"],
    ["valibot", toStandardJsonSchema(v.object({ n: v.pipe(v.string(), v.transform(Number)) })), "output"],
  ] as [string, AnySchema, SchemaDirection][])(
    "RE-32 refuses a transform or class of %s that JSON Schema cannot say",
    (vendor, schema, direction) => {
      const error = refusal(schema, direction);
      expect(error.message).toBe(
        `This ${vendor} schema cannot be written as JSON Schema for ${direction}; declare a plain shape and convert in the handler.`,
      );
      expect(error.cause).toBeInstanceOf(Error);
    },
  );

  it.each([
    [7, "number"],
    ["string", "string"],
    [null, "null"],
    [undefined, "undefined"],
    [[], "an array"],
    [() => true, "function"],
  ])("RE-32 refuses %s in place of a schema", (schema, word) => {
    expect(refusal(schema).message).toContain(
      `A schema must be an object or a boolean, not ${word}; use Type`,
    );
  });

  class Optional {
    readonly name = "optional";
  }
  class Struct {
    readonly type = "object";
    readonly coercer = () => undefined;
    readonly refiner = () => [];
  }
  class InterfaceType {
    readonly _tag = "InterfaceType";
    readonly decode = () => undefined;
    readonly encode = () => undefined;
    readonly validate = () => undefined;
  }
  class ObjectType {
    try() {}
    parse() {}
  }
  it.each([
    [new Optional(), "An object of the class Optional is not JSON Schema; use TypeBox, zod 4.2 or newer"],
    [new Struct(), "superstruct cannot write JSON Schema: declare the shape with Type"],
    [new InterfaceType(), "io-ts cannot write JSON Schema: declare the shape with Type"],
    [new ObjectType(), "valita cannot write JSON Schema: declare the shape with Type"],
    [Object.create({ type: "string" }), "is not JSON Schema"],
  ])("RE-32 refuses an object of a class, %o, rather than allow everything", (schema, message) => {
    expect(refusal(schema).message).toContain(message);
    const inside = refusal({ type: "object", properties: { a: schema } });
    expect(inside).toMatchObject({ message: expect.stringContaining(message), pointer: "/properties/a" });
  });

  it("RE-32 takes plain objects of another realm and those without a prototype", () => {
    const { schema } = runInNewContext('({ schema: { type: "string" } })') as { schema: JsonSchema };
    expect(toOperationSchema(schema, "input").check(1)).toBe(false);
    const bare = Object.assign(Object.create(null), { type: "string" }) as JsonSchema;
    expect(toOperationSchema(bare, "input").check(1)).toBe(false);
  });

  it("RE-32 refuses a schema of a library inside a JSON Schema", () => {
    expect(refusal({ type: "object", properties: { n: z.string() } })).toMatchObject({
      message: expect.stringContaining("declare the whole schema with one of them"),
      pointer: "/properties/n",
    });
  });

  it("RE-32 refuses Transform of TypeBox 0.34, whose decode would be ignored", () => {
    const transform = { type: "string", [Symbol.for("TypeBox.Kind")]: "String" };
    expect(toOperationSchema({ ...transform }, "input").check("a")).toBe(true);
    Object.assign(transform, { [Symbol.for("TypeBox.Transform")]: { Decode: Number, Encode: String } });
    expect(refusal({ type: "object", properties: { n: transform } })).toMatchObject({
      message: expect.stringContaining("its decode would be ignored"),
      pointer: "/properties/n",
    });
  });

  it.each([
    [{ properties: { a: { type: "string" } }, optionalProperties: { b: {} } }, "optionalProperties", ""],
    [{ optionalProperties: { b: {} } }, "optionalProperties", ""],
    [{ elements: { type: "string" } }, "elements", ""],
    [{ properties: { a: { values: { type: "string" }, nullable: true } } }, "values", "/properties/a"],
    [{ discriminator: "kind", mapping: { a: { properties: {} } } }, "discriminator", ""],
    [{ definitions: { a: {} }, properties: { x: { ref: "a" } } }, "ref", "/properties/x"],
  ])("RE-32 refuses the JSON Type Definition %j with a word on what to write", (schema, keyword, pointer) => {
    expect(refusal(schema)).toMatchObject({
      message: expect.stringContaining(`"${keyword}" is a keyword of JSON Type Definition (RFC 8927)`),
      pointer,
    });
  });

  it.each([
    { type: "array", elements: { type: "string" } },
    { type: "object", properties: { values: {}, elements: {}, ref: {} } },
    { values: ["a"], description: "words of its own" },
    { oneOf: [{}], discriminator: { propertyName: "kind", mapping: { a: "#/a" } } },
    { properties: { x: { ref: "a" } } },
    { default: { elements: {} }, enum: [{ values: {} }] },
  ])("RE-32 takes %j for JSON Schema with words of its own", (schema) => {
    expect(() => toOperationSchema(schema, "input")).not.toThrow();
  });

  it("RE-32 refuses a schema again when it is asked again", () => {
    const schema = { type: "strin" };
    expect(refusal(schema).message).toBe(refusal(schema).message);
  });
});

describe("schemas that operations share", () => {
  it.each([
    ["JSON Schema", { type: "string" }],
    ["TypeBox", Type.String()],
    ["zod", z.string()],
    ["arktype, which is a function", type("string")],
  ] as [string, AnySchema][])("RE-32 compiles %s once for the same options and direction", (_, schema) => {
    const options = {};
    const input = toOperationSchema(schema, "input", options);
    const output = toOperationSchema(schema, "output", options);
    expect(toOperationSchema(schema, "input", options)).toBe(input);
    expect(toOperationSchema(schema, "output", options)).toBe(output);
    expect(output).not.toBe(input);
    expect(toOperationSchema(schema, "input", { codegen: false })).not.toBe(input);
  });

  it("RE-32 holds each compilation to its own options", () => {
    const schema = { pattern: "abcd" };
    expect(toOperationSchema(schema, "input").check("abcd")).toBe(true);
    expect(() => toOperationSchema(schema, "input", { limits: { patternLength: 3 } })).toThrow(SchemaError);
  });
});
