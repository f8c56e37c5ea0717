import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { query, rejection, sleep } from "../../../test/make-operation.ts";
import type { AnyOperation } from "../operation/operation-types.ts";
import { OperationRegistry } from "../registry/registry.ts";
import type { RegistryOptions } from "../registry/registry-options.ts";

const call = (operation: AnyOperation, input?: unknown, options?: RegistryOptions) =>
  new OperationRegistry([operation], options).execute(operation, input);

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
      message: expect.stringContaining("at /a/1 expected must be even"),
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
    expect(error).toMatchObject({ code: "VALIDATION_ERROR", cause: new Error("secret text") });
    expect(JSON.stringify(error)).not.toContain("secret");
  });

  it("RE-10 does not run the handler when the call ended while its input was parsed", async () => {
    const handler = vi.fn();
    const inputSchema = z.string().refine(async () => {
      await sleep(20);
      return true;
    });
    const operation = query("a.b", handler, { inputSchema });
    const pending = new OperationRegistry([operation]).execute(operation, "x", { timeoutMs: 5 });
    expect(await rejection(pending)).toMatchObject({ code: "TIMEOUT" });
    await sleep(30);
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
      violations: [{ pointer: "/n", expected: "must be even", found: expect.stringContaining("3") }],
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
  ])("RE-32 refuses %s when it is registered, naming the operation", (_, outputSchema, reason) => {
    const operation = query("a.b", () => 1, { outputSchema: outputSchema as never });
    const register = () => new OperationRegistry([operation]);
    expect(register).toThrow(TypeError);
    expect(register).toThrow('Operation "a.b": its outputSchema is refused. ');
    expect(register).toThrow(reason);
  });
});
