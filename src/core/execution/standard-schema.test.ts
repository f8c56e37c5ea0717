import type { StandardSchemaV1 } from "@standard-schema/spec";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { deferred, query, rejection } from "../../../test/make-operation.ts";
import type { AnyOperation } from "../operation/operation-types.ts";
import { OperationRegistry, type RegistryOptions } from "../registry/registry.ts";
import type { AnySchema, StandardSchema } from "../schema/any-schema.ts";

const call = (operation: AnyOperation, input?: unknown, options?: RegistryOptions) =>
  new OperationRegistry([operation], options).execute(operation, input);

/** A Standard Schema by hand, for what no library does. */
const custom = (
  json: object,
  validate: (value: unknown) => StandardSchemaV1.Result<unknown>,
): StandardSchema => ({
  "~standard": {
    version: 1,
    vendor: "custom",
    validate,
    jsonSchema: { input: () => ({ ...json }), output: () => ({ ...json }) },
  },
});

describe("Standard Schema input", () => {
  it.each([
    ["zod", z.object({ n: z.number() })],
    ["arktype", type({ n: "number" })],
    ["valibot", toStandardJsonSchema(v.object({ n: v.number() }))],
  ])("RE-32 checks input with %s", async (_, inputSchema) => {
    const operation = query("a.b", (input) => input, { inputSchema });
    expect((await call(operation, { n: 1 })).data).toEqual({ n: 1 });
    const error = await rejection(call(operation, { n: "x" }));
    expect(error).toMatchObject({ code: "VALIDATION_ERROR", details: { issues: [{ pointer: "/n" }] } });
  });

  it("RE-10 hands a local handler the parsed value", async () => {
    const inputSchema = z.object({ n: z.string().transform(Number), unit: z.string().default("kg") });
    const operation = query("a.b", (input) => input, { inputSchema });
    expect((await call(operation, { n: "7" })).data).toEqual({ n: 7, unit: "kg" });
  });

  it.each<[string, AnySchema, unknown, unknown]>([
    ["z.coerce.number", z.object({ n: z.coerce.number() }), { n: "7" }, { n: 7 }],
    ["z.coerce.boolean", z.object({ on: z.coerce.boolean() }), { on: "yes" }, { on: true }],
    ["z.coerce.string", z.object({ s: z.coerce.string() }), { s: 7 }, { s: "7" }],
    [
      "z.coerce.date",
      z.object({ at: z.coerce.date() }),
      { at: "2026-01-02" },
      { at: new Date("2026-01-02") },
    ],
    ["z.coerce.date of a number", z.object({ at: z.coerce.date() }), { at: 0 }, { at: new Date(0) }],
    ["default", z.object({ n: z.coerce.number().default(3) }), {}, { n: 3 }],
    [
      "preprocess",
      z.object({ n: z.preprocess((x) => String(x).length, z.number()) }),
      { n: "abc" },
      { n: 3 },
    ],
    ["pipe", z.object({ n: z.string().transform(Number).pipe(z.number().int()) }), { n: "4" }, { n: 4 }],
    ["an alternative", z.object({ n: z.union([z.coerce.number(), z.null()]) }), { n: "4" }, { n: 4 }],
    ["async", z.object({ n: z.coerce.number().refine(async (n) => n > 1) }), { n: "4" }, { n: 4 }],
    ["a list", z.array(z.coerce.number()).max(2), ["1", "2"], [1, 2]],
    ["arktype", type({ n: type("string").pipe((text) => Number(text)) }), { n: "7" }, { n: 7 }],
    [
      "valibot",
      toStandardJsonSchema(v.object({ n: v.pipe(v.string(), v.transform(Number), v.number()) })),
      { n: "7" },
      { n: 7 },
    ],
  ])(
    "RE-10 converts the input of a local handler before it is refused: %s",
    async (_, inputSchema, given, got) => {
      const seen: unknown[] = [];
      const operation = query("a.b", (input) => seen.push(input), { inputSchema });
      await call(operation, given);
      expect(seen).toEqual([got]);
    },
  );

  it("RE-10 says what misses the schema where no conversion helps, and keeps sizes and patterns from the library", async () => {
    const refine = vi.fn(() => true);
    const word = z.string().regex(/^a+$/).max(4).refine(refine);
    const inputSchema = z.object({
      n: z.coerce.number(),
      word,
      list: z.array(z.coerce.number()).max(2).default([]),
    });
    const operation = query("a.b", () => 1, { inputSchema });
    for (const [input, pointer] of [
      [{ n: "x", word: "a" }, "/n"],
      [{ n: "7", word: "b" }, "/word"],
      [{ n: "7", word: "aaaaa" }, "/word"],
      [{ n: "7", word: "a", list: ["1", "2", "3"] }, "/list"],
      [{ word: "a" }, "/n"],
    ] as const) {
      const error = await rejection(call(operation, input));
      expect(error).toMatchObject({ code: "VALIDATION_ERROR" });
      const { issues } = (error as { details: { issues: { pointer: string }[] } }).details;
      expect(issues.map((issue) => issue.pointer)).toContain(pointer);
    }
    expect(refine).toHaveBeenCalledTimes(1);
    expect((await call(operation, { n: "7", word: "a" })).data).toBe(1);
  });

  it.each([
    z.object({ at: z.date() }),
    z.object({ n: z.bigint(), at: z.coerce.date() }),
    z.object({ m: z.map(z.string(), z.string()) }),
  ])("RE-10 refuses what no JSON can be converted to (%#)", (inputSchema) => {
    const refusal =
      'Operation "a.b": its inputSchema is refused. This zod schema cannot be written as JSON Schema for input';
    expect(() => query("a.b", () => 1, { inputSchema })).toThrow(refusal);
    const { outputSchema: _, ...rest } = query("a.b", () => 1);
    expect(() => new OperationRegistry([{ ...rest, inputSchema }])).toThrow(refusal);
  });

  it("RE-10 converts nothing for a remote handler, whose input goes on as given", async () => {
    const operation = query("a.b", () => 1, {
      inputSchema: z.object({ n: z.coerce.number() }),
      source: "http",
    });
    expect(await rejection(call(operation, { n: "7" }))).toMatchObject({ code: "VALIDATION_ERROR" });
  });

  it("RE-10 hands a remote one the input exactly as given", async () => {
    const inputSchema = z.object({ n: z.string().transform(Number), unit: z.string().default("kg") });
    const input = { n: "7" };
    const operation = query("a.b", (given) => ({ same: given === input }), { inputSchema, source: "http" });
    expect((await call(operation, input)).data).toEqual({ same: true });
    expect(await rejection(call(operation, { n: 7 }))).toMatchObject({ code: "VALIDATION_ERROR" });
  });

  it("RE-10 holds input against rules that JSON Schema cannot express, asynchronous ones included", async () => {
    const even = z.number().refine(async (n) => n % 2 === 0, "must be even");
    const operation = query("a.b", (input) => input, { inputSchema: z.object({ a: z.array(even) }) });
    expect((await call(operation, { a: [2] })).data).toEqual({ a: [2] });
    expect(await rejection(call(operation, { a: [2, 3] }))).toMatchObject({
      code: "VALIDATION_ERROR",
      message: expect.stringContaining("a.1 is refused: must be even"),
      details: {
        issues: [{ pointer: "/a/1", expected: "must be even", found: expect.stringContaining("3") }],
      },
    });
  });

  it("RE-10 names at most twenty issues, by escaped pointer", async () => {
    const wide = z.object(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`a/${i}`, z.string()])));
    const error = await rejection(
      call(
        query("a.b", () => 1, { inputSchema: wide }),
        {},
      ),
    );
    const { issues } = (error as { details: { issues: { pointer: string }[] } }).details;
    expect(issues).toHaveLength(20);
    expect(issues[0]?.pointer).toBe("/a~10");
  });

  it("RE-10 blames the input when a parser throws, and tells nothing of what it threw", async () => {
    const inputSchema = z.string().transform((): string => {
      throw new Error("secret text");
    });
    const error = await rejection(
      call(
        query("a.b", () => 1, { inputSchema }),
        "x",
      ),
    );
    expect(error).toMatchObject({
      code: "VALIDATION_ERROR",
      message: 'The schema of "a.b" failed while it read the input.',
      cause: new Error("secret text"),
    });
    expect(JSON.stringify(error)).not.toContain("secret");
  });

  it("RE-10 says what was found, own properties only, and nothing where there is none", async () => {
    const paths: PropertyKey[][] = [[], ["none"], ["a", 0, "b"], ["a", "toString"], ["a", 0, "b", "c"]];
    const inputSchema = custom({}, () => ({ issues: paths.map((path) => ({ message: "wrong", path })) }));
    const error = await rejection(
      call(
        query("a.b", () => 1, { inputSchema }),
        { a: [{ b: null }] },
      ),
    );
    const { issues } = (error as { details: { issues: { pointer: string; found: string }[] } }).details;
    const found = Object.fromEntries(issues.map((issue) => [issue.pointer, issue.found]));
    expect(Object.keys(found).sort()).toEqual(["", "/a/0/b", "/a/0/b/c", "/a/toString", "/none"]);
    expect(found[""]).toContain("object");
    expect(found["/a/0/b"]).toContain("null");
    expect(found["/none"]).not.toBe(found["/a/0/b"]);
    expect([found["/a/toString"], found["/a/0/b/c"]]).toEqual([found["/none"], found["/none"]]);
  });

  it("RE-10 copes with a failure that names no issue, no path, or keys as objects", async () => {
    const failing = (issues: StandardSchemaV1.Issue[]) =>
      rejection(
        call(
          query("a.b", () => 1, { inputSchema: custom({}, () => ({ issues })) }),
          { a: 1 },
        ),
      );
    expect(await failing([])).toMatchObject({ message: 'The input of "a.b" does not match its schema.' });
    expect(await failing([{ message: "no" }])).toMatchObject({ details: { issues: [{ pointer: "" }] } });
    const keyed = { message: "no", path: [{ key: "a" }] };
    expect(await failing([keyed])).toMatchObject({ details: { issues: [{ pointer: "/a" }] } });
  });

  it("RE-10 does not run the handler when the call ended while its input was parsed", async () => {
    const handler = vi.fn();
    const parsed = deferred<boolean>();
    const refined = vi.fn(() => parsed.promise);
    const operation = query("a.b", handler, { inputSchema: z.string().refine(refined) });
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const pending = rejection(new OperationRegistry([operation]).execute(operation, "x", { timeoutMs: 5 }));
    await vi.advanceTimersByTimeAsync(5);
    expect(await pending).toMatchObject({ code: "TIMEOUT" });
    expect(refined).toHaveBeenCalled();
    parsed.resolve(true);
    await vi.advanceTimersByTimeAsync(1);
    expect(handler).not.toHaveBeenCalled();
  });
});

describe("Standard Schema output", () => {
  const strict: RegistryOptions = { outputPolicy: "strict" };

  it.each([
    ["zod", z.object({ n: z.number() })],
    ["arktype", type({ n: "number", "+": "reject" })],
    ["valibot", toStandardJsonSchema(v.object({ n: v.number() }))],
  ])("RE-13 strips what %s does not name, and reports it", async (_, outputSchema) => {
    const envelope = await call(
      query("a.b", () => ({ n: 1, extra: 2 }), { outputSchema }),
      {},
      strict,
    );
    expect(envelope.data).toEqual({ n: 1 });
    expect(envelope.meta.waybill?.normalization?.stripped).toEqual(["/extra"]);
  });

  it("RE-13 gives the very object back when nothing has to change", async () => {
    const value = { n: 1 };
    const operation = query("a.b", () => value, { outputSchema: z.object({ n: z.number() }) });
    const envelope = await call(operation);
    expect(envelope.data).toBe(value);
    expect(envelope.meta).not.toHaveProperty("waybill");
  });

  it("RE-12 takes what the schema itself refuses for a violation", async () => {
    const outputSchema = z.object({ n: z.number().refine((n) => n % 2 === 0, "must be even") });
    const operation = query("a.b", async () => ({ n: 3, extra: 1 }), { outputSchema });
    expect(await rejection(call(operation, {}, strict))).toMatchObject({ code: "OUTPUT_INVALID" });
    const envelope = await call(operation, {}, { onWarning: () => {} });
    expect(envelope.data).toEqual({ n: 3, extra: 1 });
    expect(envelope.meta.waybill).toEqual({
      violations: [
        {
          pointer: "/n",
          expected: "must be even",
          found: expect.stringContaining("3"),
          message: "must be even",
        },
      ],
    });
  });

  it("RE-12 reports a mismatch in the words of the JSON Schema", async () => {
    const operation = query("a.b", () => "x", { outputSchema: z.object({ n: z.number() }) });
    expect(await rejection(call(operation, {}, strict))).toMatchObject({
      details: { issues: [{ pointer: "" }] },
    });
  });

  it("RE-13 takes the parsed value of a schema that transforms, and says so", async () => {
    const operation = query("a.b", () => "yes", { outputSchema: z.stringbool() });
    const envelope = await call(operation, {}, strict);
    expect(envelope.data).toBe(true);
    expect(envelope.meta.waybill?.normalization).toEqual({ stripped: [], defaulted: [], converted: [""] });
  });

  it("RE-12 takes a parsed value that misses the JSON Schema for a violation as well", async () => {
    const operation = query("a.b", () => [5], {
      outputSchema: custom({ type: "string" }, (value) => ({ value })),
    });
    expect(await rejection(call(operation, {}, strict))).toMatchObject({
      code: "OUTPUT_INVALID",
      details: { issues: [{ pointer: "" }] },
    });
  });

  it("RE-12 holds the same for calls that can end early", async () => {
    const outputs = {
      "a.throws": custom({ type: "number" }, () => {
        throw new Error("secret text");
      }),
      "a.refuses": custom({ type: "number" }, () => ({ issues: [{ message: "never" }] })),
      "a.passes": z.number(),
    };
    const operations = Object.entries(outputs).map(([id, outputSchema]) =>
      query(id, async () => 5, { outputSchema }),
    );
    const registry = new OperationRegistry(operations, strict);
    const options = { timeoutMs: 60_000 };
    expect(await rejection(registry.execute("a.throws", {}, options))).toMatchObject({
      code: "EXECUTION_ERROR",
    });
    expect(await rejection(registry.execute("a.refuses", {}, options))).toMatchObject({
      code: "OUTPUT_INVALID",
    });
    expect((await registry.execute("a.passes", {}, options)).data).toBe(5);
  });

  it("RE-12 turns a schema that throws into a CallError", async () => {
    const outputSchema = z.object({
      n: z.number().refine(() => {
        throw new Error("secret text");
      }),
    });
    const error = await rejection(call(query("a.b", () => ({ n: 1 }), { outputSchema })));
    expect(error).toMatchObject({ code: "EXECUTION_ERROR", cause: new Error("secret text") });
  });
});

describe("schemas that cannot be used", () => {
  it.each([
    ["a valibot schema that is not wrapped", v.object({ n: v.number() }), /toStandardJsonSchema/],
    ["a transform as output", z.string().transform(Number), /JSON Schema/],
    ["a pattern for a schema", "^a+$", /./],
    ["a remote reference", { $ref: "https://example.org/schema.json" }, /./],
  ])("RE-32 refuses %s when it is defined or registered, naming the operation", (_, outputSchema, reason) => {
    const extra = { outputSchema: outputSchema as never };
    const register = () => new OperationRegistry([query("a.b", () => 1, extra)]);
    expect(register).toThrow(TypeError);
    expect(register).toThrow('Operation "a.b": its outputSchema is refused. ');
    expect(register).toThrow(reason);
    expect(register).toThrow(expect.objectContaining({ cause: expect.any(Error) }));
  });
});
