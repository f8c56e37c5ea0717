import { describe, expect, it } from "vitest";
import {
  type AnyOperation,
  CallError,
  compileSchema,
  createClient,
  defineOperation,
  httpEnvelope,
  OperationRegistry,
  type OperationSpec,
} from "../src/index.ts";
import { cpuMs } from "./cpu-ms.ts";

type Parts = Partial<OperationSpec> & Pick<OperationSpec, "handler">;

const operation = (name: string, parts: Parts) =>
  defineOperation({ namespace: "t", name, version: "1.0.0", type: "query", description: "", ...parts });
const registry = (...operations: AnyOperation[]) =>
  new OperationRegistry(operations, { onWarning: () => {} });
const failure = async (pending: Promise<unknown>): Promise<CallError> => {
  const error: unknown = await pending.then(
    () => undefined,
    (thrown) => thrown,
  );
  expect(error).toBeInstanceOf(CallError);
  return error as CallError;
};

describe("attacks that once worked", () => {
  it("RE-32 lists what is wrong with a recursive union in time that does not multiply with depth", () => {
    const kinds = [..."abcdefghijklmnop"];
    for (const codegen of [true, false]) {
      const node = (kind: string) => ({
        type: "object",
        properties: { op: { const: kind }, arg: { $ref: "#/$defs/n" } },
        required: ["op", "arg"],
      });
      const schema = compileSchema(
        { $ref: "#/$defs/n", $defs: { n: { anyOf: kinds.map(node) } } },
        { codegen },
      );
      let value: object = { op: "p" };
      for (let i = 0; i < 100; i++) value = { op: "p", arg: value };
      const start = cpuMs();
      expect(schema.check(value)).toBe(false);
      expect(schema.errors(value).length).toBeGreaterThan(0);
      expect(schema.normalize(value).valid).toBe(false);
      expect(cpuMs() - start).toBeLessThan(2_000);
    }
  });

  it("RE-14 ends a subscription at its deadline although its handler never waits", async () => {
    const counter = operation("counter", {
      type: "subscription",
      async *handler() {
        for (let i = 0; ; i++) yield i;
      },
    });
    const start = cpuMs();
    const read = async (options: object) => {
      for await (const _ of registry(counter).subscribe("t.counter", {}, options)) {
        if (cpuMs() - start > 3_000) throw new Error("not enforced");
      }
    };
    expect((await failure(read({ timeoutMs: 50 }))).code).toBe("TIMEOUT");
    expect((await failure(read({ signal: AbortSignal.timeout(50) }))).code).toBe("TIMEOUT");
  });

  it("RE-14 survives a hook that opens the stream again and again", async () => {
    const one = operation("one", {
      type: "subscription",
      async *handler() {
        yield 1;
      },
    });
    const host = registry(one);
    host.use({
      subscribe: async function* (_, next) {
        for (let i = 0; i < 20_000; i++) for await (const envelope of next()) yield envelope;
        await new Promise(() => {});
      },
    });
    const leaving = new AbortController();
    const stream = host.subscribe("t.one", {}, { signal: leaving.signal });
    for (let i = 0; i < 20_000; i++) await stream.next();
    const last = failure(stream.next());
    leaving.abort();
    expect((await last).code).toBe("ABORTED");
  });

  it.each([
    ["bad input", { secretField: "x" }, 60_000, "EXECUTION_ERROR"],
    ["a hanging handler", { secretField: 1 }, 20, "TIMEOUT"],
  ])("RE-10 tells nobody outside about an internal operation with %s", async (_, input, timeoutMs, code) => {
    const hidden = operation("hidden-secret", {
      visibility: "internal",
      inputSchema: { type: "object", properties: { secretField: { type: "integer" } } },
      handler: () => new Promise(() => {}),
    });
    const open = operation("open", {
      handler: (_input, context) => context.execute("t.hidden-secret", input as never, { timeoutMs }),
    });
    const error = await failure(registry(hidden, open).execute("t.open", {}));
    expect(error).toMatchObject({ code, correctable: false });
    expect(JSON.stringify(error)).not.toContain("secret");
  });

  it("RE-10 names the operation that was called when time is up further down", async () => {
    const slow = operation("slow", { handler: () => new Promise(() => {}) });
    const open = operation("open", { handler: (_, context) => context.execute("t.slow", {} as never) });
    const error = await failure(registry(slow, open).execute("t.open", {}, { timeoutMs: 20 }));
    expect([error.code, error.message.includes("t.open")]).toEqual(["TIMEOUT", true]);
  });

  it("RE-10 keeps what is told about a value short, whatever its keys", async () => {
    const closed = operation("closed", {
      inputSchema: { type: "object", properties: {}, additionalProperties: false },
      handler: () => 1,
    });
    const error = await failure(registry(closed).execute("t.closed", { ["k".repeat(100_000)]: 1 }));
    expect(JSON.stringify(error).length).toBeLessThan(2_000);
  });

  it("RE-10 refuses a spec whose rules would be lost or misread", () => {
    const spec = {
      namespace: "t",
      name: "a",
      version: "1.0.0",
      type: "query",
      description: "",
      handler: () => 1,
    };
    const inherited = Object.assign(Object.create({ access: { scopes: { allOf: ["root"] } } }), spec);
    expect(() => registry(inherited)).toThrow("plain object");
    expect(() => registry({ ...spec, acces: {} } as never)).toThrow('has no field "acces"');
  });

  it("RE-10 does not let an iterable that registers things replace them unasked", () => {
    const host = registry();
    function* reentrant() {
      yield operation("d", { handler: () => "second" });
      host.register(operation("d", { access: {}, handler: () => "first" }));
    }
    expect(() => host.registerAll(reentrant())).toThrow("registered already");
  });

  it("RE-27 throws its own error for a tool error with nonsense in it, and bounds the pages", async () => {
    const nonsense = { statusCode: 500, headers: {}, isError: true, waybill: { message: 5 as never } };
    const host = registry(operation("no", { handler: () => httpEnvelope(null, nonsense) }));
    await expect(createClient(host).call("t.no", {})).rejects.toMatchObject({ name: "ToolResultError" });
    const pages = createClient(host).pages("t.no", {}, { maxPages: Number.NaN });
    await expect(pages[Symbol.asyncIterator]().next()).rejects.toThrow("maxPages");
  });
});
