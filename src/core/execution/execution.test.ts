import fc from "fast-check";
import { Type } from "typebox";
import { describe, expect, it, vi } from "vitest";
import { query, rejection, sleep } from "../../../test/make-operation.ts";
import { runs } from "../../../test/runs.ts";
import { httpEnvelope, localEnvelope, mcpEnvelope, rawData, toolError } from "../envelope/envelope.ts";
import { type CallError, isCallError } from "../errors/errors.ts";
import type { AnyOperation } from "../operation/operation-types.ts";
import { OperationRegistry, type RegistryOptions } from "../registry/registry.ts";

const Named = Type.Object({ name: Type.String() });

const call = (operation: AnyOperation, input?: unknown, options?: RegistryOptions) =>
  new OperationRegistry([operation], options).execute(operation, input);

describe("wrapping", () => {
  it("RE-10 resolves with a local envelope around what the handler returned", async () => {
    const before = Date.now();
    const value = { name: "Ada" };
    const envelope = await call(query("a.b", () => value, { outputSchema: Named }));
    expect(envelope).toEqual({
      data: value,
      meta: { source: "local", operationId: "a.b", timestamp: expect.any(Number) },
    });
    expect(envelope.data).toBe(value);
    expect((envelope.meta as { timestamp: number }).timestamp).toBeGreaterThanOrEqual(before);
    expect((envelope.meta as { timestamp: number }).timestamp).toBeLessThanOrEqual(Date.now());
  });

  it.each([
    ["a value", () => 7],
    ["a promise", async () => 7],
    ["a thenable", () => ({ then: (resolve: (value: number) => void) => resolve(7) })],
  ])("RE-16 takes %s from a handler that knows nothing of envelopes", async (_, handler) => {
    expect((await call(query("a.b", handler))).data).toBe(7);
  });

  it.each([undefined, null, 0, "", false, [], Number.NaN])(
    "RE-16 wraps %s like any other value",
    async (value) => {
      expect((await call(query("a.b", () => value))).data).toEqual(value);
      expect((await call(query("a.b", async () => value))).data).toEqual(value);
    },
  );

  it.each([
    ["local", localEnvelope({ name: "Ada" }, "x.y")],
    ["http", httpEnvelope({ name: "Ada" }, { statusCode: 201, headers: {} })],
    ["mcp", mcpEnvelope({ name: "Ada" }, { isError: false, content: [] })],
  ])("RE-11 passes an envelope with source %s through as the very object", async (_, envelope) => {
    expect(await call(query("a.b", () => envelope, { outputSchema: Named }))).toBe(envelope);
    const frozen = Object.freeze(envelope);
    expect(await call(query("a.b", async () => frozen, { outputSchema: Named }))).toBe(frozen);
  });

  it("RE-11 normalises the data of a frozen envelope in a copy that keeps its meta", async () => {
    const data = Object.freeze({ name: "Ada", extra: 1 });
    const meta = { statusCode: 200, headers: Object.freeze({ a: "b" }), contentType: "x" };
    const envelope = Object.freeze(httpEnvelope(data, meta));
    const result = await call(query("a.b", () => envelope, { outputSchema: Named }));
    expect(result).toEqual({
      data: { name: "Ada" },
      meta: {
        ...envelope.meta,
        waybill: { normalization: { stripped: ["/extra"], defaulted: [], converted: [] } },
      },
    });
    expect(envelope.data).toBe(data);
    expect(rawData(result)).toBe(data);
  });

  it("RE-11 wraps data that merely looks like an envelope", async () => {
    const forged = { data: 1, meta: { source: "mcp", isError: true, content: [] } };
    const envelope = await call(query("a.b", () => forged));
    expect(envelope.data).toBe(forged);
    expect(envelope.meta).toMatchObject({ source: "local", operationId: "a.b" });
    const copy = { ...localEnvelope(1, "x.y") };
    expect((await call(query("a.b", () => copy))).data).toBe(copy);
  });

  it("RE-11 names the operation in a tool error that does not say, and in no other", async () => {
    const failed = await call(query("a.b", () => toolError("no")));
    expect(failed.meta).toMatchObject({ operationId: "a.b", isError: true });
    const named = toolError("no", { operationId: "x.y" });
    expect(await call(query("a.b", () => named))).toBe(named);
  });

  it("RE-10 gives handlers their operation as this, and nothing to reach further", async () => {
    const operation = query("a.b", function (this: unknown) {
      return this === operation;
    });
    expect((await call(operation)).data).toBe(true);
  });
});

describe("input", () => {
  const Input = Type.Object({ n: Type.Integer(), unit: Type.Optional(Type.String({ default: "kg" })) });

  it("RE-10 refuses invalid input before the handler runs, with every issue", async () => {
    const handler = vi.fn();
    const operation = query("a.b", handler, { inputSchema: Input });
    const error = await rejection(call(operation, { n: "x", unit: 5 }));
    expect(error).toMatchObject({
      code: "VALIDATION_ERROR",
      message: expect.stringMatching(
        /^The input of "a\.b" does not match its schema: (n|unit) must be .+; it is .+\.$/,
      ),
      details: { issues: [{ pointer: "/n" }, { pointer: "/unit" }] },
    });
    expect(await rejection(call(operation, 5))).toMatchObject({
      message: expect.stringMatching(/^The input of "a\.b" does not match its schema: it must be /),
    });
    expect(handler).not.toHaveBeenCalled();
  });

  it("RE-10 fills declared defaults for a local handler, in a copy", async () => {
    const input = Object.freeze({ n: 1 });
    const operation = query("a.b", (given) => given, { inputSchema: Input });
    expect((await call(operation, input)).data).toEqual({ n: 1, unit: "kg" });
    expect(input).toEqual({ n: 1 });
    const complete = { n: 1, unit: "g" };
    expect((await call(operation, complete)).data).toBe(complete);
  });

  it.each(["http", "mcp", "call"] as const)(
    "RE-10 hands the input of an %s operation on exactly as given",
    async (source) => {
      const input = { n: 1 };
      const operation = query("a.b", (given) => ({ same: given === input }), { inputSchema: Input, source });
      expect((await call(operation, input)).data).toEqual({ same: true });
      expect(await rejection(call(operation, { n: "x" }))).toMatchObject({ code: "VALIDATION_ERROR" });
    },
  );

  it("RE-10 takes a promise as input for what it is", async () => {
    const input = Promise.resolve(1);
    expect(
      (
        await call(
          query("a.b", (given) => [given]),
          input,
        )
      ).data,
    ).toEqual([input]);
  });

  it("RE-10 takes hostile input for invalid, and never throws it back", async () => {
    const hostile = {
      get n(): number {
        throw new Error("hostile");
      },
    };
    const error = await rejection(
      call(
        query("a.b", () => 1, { inputSchema: Input }),
        hostile,
      ),
    );
    expect(error).toMatchObject({ code: "VALIDATION_ERROR" });
    expect(JSON.stringify(error)).not.toContain("hostile");
  });
});

describe("output", () => {
  const loose = () => ({ name: 5, extra: true });

  it("RE-12 warns about data that misses its schema and returns it whole, with the violations", async () => {
    const onWarning = vi.fn();
    const value = loose();
    const envelope = await call(
      query("a.b", () => value, { outputSchema: Type.Array(Named) }),
      {},
      { onWarning },
    );
    expect(envelope.data).toBe(value);
    expect(envelope.meta.waybill).toEqual({ violations: [expect.objectContaining({ pointer: "" })] });
    expect(onWarning).toHaveBeenCalledTimes(1);
    expect(onWarning).toHaveBeenCalledWith({
      type: "output-invalid",
      message: 'The output of "a.b" does not match its schema.',
      operationId: "a.b",
      issues: envelope.meta.waybill?.violations,
    });
  });

  it("RE-12 throws instead where the policy is strict", async () => {
    const onWarning = vi.fn();
    const operation = query("a.b", async () => [loose()], { outputSchema: Named });
    const error = await rejection(call(operation, {}, { outputPolicy: "strict", onWarning }));
    expect(error).toMatchObject({
      code: "OUTPUT_INVALID",
      message: 'The output of "a.b" does not match its schema.',
      details: { issues: [{ pointer: "" }] },
    });
    expect(onWarning).not.toHaveBeenCalled();
  });

  it("RE-12 neither checks nor changes anything where the policy is off", async () => {
    const onWarning = vi.fn();
    const value = { name: 5, extra: true };
    const operation = query("a.b", () => value, { outputSchema: Named });
    const envelope = await call(operation, {}, { outputPolicy: "off", onWarning });
    expect(envelope.data).toBe(value);
    expect(envelope.meta).not.toHaveProperty("waybill");
    expect(onWarning).not.toHaveBeenCalled();
  });

  it("RE-12 lets the operation's own policy win over the registry's", async () => {
    const strict = query("a.b", () => 5, { outputSchema: Named, outputPolicy: "strict" });
    expect(await rejection(call(strict, {}, { outputPolicy: "off" }))).toMatchObject({
      code: "OUTPUT_INVALID",
    });
    const off = query("a.b", () => 5, { outputSchema: Named, outputPolicy: "off" });
    expect((await call(off, {}, { outputPolicy: "strict" })).data).toBe(5);
  });

  it("RE-12 holds the same for a call with a deadline", async () => {
    const operation = query("a.b", async () => 5, { outputSchema: Named });
    const registry = new OperationRegistry([operation], { outputPolicy: "strict" });
    const pending = registry.execute(operation, {}, { timeoutMs: 60_000 });
    expect(await rejection(pending)).toMatchObject({ code: "OUTPUT_INVALID" });
  });

  it("RE-12 says what nobody listens to together with what caused it", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const registry = new OperationRegistry();
    const cause = new Error("listener");
    registry.onChange(() => {
      throw cause;
    });
    registry.register(query("a.b", () => 1));
    const calls = [...warn.mock.calls];
    warn.mockRestore();
    const message = expect.stringMatching(/^\[waybill\] A listener of the registry threw\. \(Shown once/);
    expect(calls).toEqual([[message, cause]]);
  });

  it("RE-12 says once for each operation what nobody listens to", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const operation = query("a.b", () => 5, { outputSchema: Named });
    const registry = new OperationRegistry([operation, query("a.c", () => 5, { outputSchema: Named })]);
    for (const id of ["a.b", "a.b", "a.c", "a.b"]) await registry.execute(id);
    expect(warn.mock.calls.every((args) => args.length === 1)).toBe(true);
    const messages = warn.mock.calls.map(([message]) => message);
    warn.mockRestore();
    expect(messages).toEqual([expect.stringContaining('"a.b"'), expect.stringContaining('"a.c"')]);
    expect(messages[0]).toMatch(
      /^\[waybill\] The output of "a\.b" does not match its schema\. The first issue: the value must be .+; it is /,
    );
  });

  it("RE-13 strips, fills and converts, and reports each change", async () => {
    const outputSchema = Type.Object({ n: Type.Integer(), unit: Type.String({ default: "kg" }) });
    const raw = { n: "7", extra: 1 };
    const operation = query("a.b", () => raw, { outputSchema, outputPolicy: "strict" });
    const envelope = await call(operation);
    expect(envelope.data).toEqual({ n: 7, unit: "kg" });
    expect(envelope.meta.waybill).toEqual({
      normalization: { stripped: ["/extra"], defaulted: ["/unit"], converted: ["/n"] },
    });
    expect(raw).toEqual({ n: "7", extra: 1 });
    expect(rawData(envelope)).toBe(raw);
  });

  it.each([undefined, {}, true, Type.Unknown()])(
    "RE-13 does nothing at all for the schema %j",
    async (outputSchema) => {
      const value = { any: "thing" };
      const extra = outputSchema === undefined ? {} : { outputSchema };
      const envelope = await call(
        query("a.b", () => value, extra),
        {},
        { outputPolicy: "strict" },
      );
      expect(envelope.data).toBe(value);
      expect(envelope.meta).not.toHaveProperty("waybill");
    },
  );

  it("RE-13 leaves error results alone, whatever their source", async () => {
    const onWarning = vi.fn();
    const data = { extra: 1 };
    const failures = [
      toolError(data, { operationId: "a.b" }),
      mcpEnvelope(data, { isError: true, content: [] }),
      httpEnvelope(data, { statusCode: 500, headers: {}, isError: true }),
    ];
    for (const failure of failures) {
      const operation = query("a.b", () => failure, { outputSchema: Named });
      expect(await call(operation, {}, { outputPolicy: "strict", onWarning })).toBe(failure);
    }
    expect(onWarning).not.toHaveBeenCalled();
  });

  it("RE-12 survives a listener that throws", async () => {
    const onWarning = () => {
      throw new Error("listener");
    };
    expect(
      (
        await call(
          query("a.b", () => 5, { outputSchema: Named }),
          {},
          { onWarning },
        )
      ).data,
    ).toBe(5);
  });
});

describe("failures", () => {
  it("RE-10 turns anything thrown, now or later, into a CallError that keeps it as the cause", async () => {
    const thrown = fc.oneof(fc.anything({ withNullPrototype: true }), fc.constant(new Error("x")));
    await fc.assert(
      fc.asyncProperty(thrown, async (value) => {
        const now = query("a.b", () => {
          throw value;
        });
        const later = query("a.b", async () => {
          await null;
          throw value;
        });
        for (const operation of [now, later]) {
          const error = await rejection(call(operation));
          expect(isCallError(error)).toBe(true);
          expect(error).toMatchObject({ code: "EXECUTION_ERROR" });
          expect(Object.is((error as CallError).cause, value)).toBe(true);
        }
      }),
      runs(50),
    );
  });

  it("RE-10 pollutes no prototype, whatever goes in and comes out", async () => {
    const key = fc.constantFrom("__proto__", "constructor", "prototype", "toString", "a", "b");
    const json = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, fc.constant(1), fc.constant("x"), tie("list"), tie("object")),
      list: fc.array(tie("value"), { maxLength: 3 }),
      object: fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map((entries) => {
        const members = entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
        return JSON.parse(`{${members.join(",")}}`);
      }),
    })).value;
    const schema = {
      type: ["object", "array", "string", "number"],
      properties: { a: { type: "object", properties: { b: { default: 1 } } }, b: { default: { a: 1 } } },
    };
    const echo = query("a.b", (input) => input, { inputSchema: schema, outputSchema: schema });
    const registry = new OperationRegistry([echo], { onWarning: () => {} });
    const before = [Object.prototype, Array.prototype, Function.prototype].map(Object.getOwnPropertyNames);
    await fc.assert(
      fc.asyncProperty(json, async (input) => {
        const { data } = await registry.execute("a.b", input).catch(() => ({ data: undefined }));
        const after = [Object.prototype, Array.prototype, Function.prototype].map(Object.getOwnPropertyNames);
        expect(after).toEqual(before);
        if (typeof data === "object" && data !== null && !Array.isArray(data)) {
          expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
        }
      }),
    );
  });

  it("RE-10 survives results that throw when they are looked at", async () => {
    const hostile = new Proxy(
      {},
      {
        get() {
          throw new Error("hostile");
        },
        ownKeys() {
          throw new Error("hostile");
        },
      },
    );
    const operation = query("a.b", () => hostile, { outputSchema: Named });
    const error = await rejection(call(operation));
    expect(isCallError(error)).toBe(true);
  });

  it("RE-10 drops nothing and adds nothing when handlers finish out of order", async () => {
    const operation = query("a.b", async (ms) => {
      await sleep(ms as number);
      return ms;
    });
    const registry = new OperationRegistry([operation]);
    const results = await Promise.all([20, 1, 10].map((ms) => registry.execute(operation, ms)));
    expect(results.map(({ data }) => data)).toEqual([20, 1, 10]);
  });
});
