import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type AnyOperation,
  CallError,
  createClient,
  ERROR_CODES,
  type ExecuteOptions,
  type Executor,
  OperationRegistry,
  outcomeOf,
  type ResponseEnvelope,
} from "../src/index.ts";
import { collect, rejection } from "./make-operation.ts";
import { roundTripOperations, VALUES } from "./round-trip-operations.ts";
import { SURFACES, type Surface } from "./surfaces.ts";

/** What came of a call, without where it came from. */
async function outcome(executor: Executor, id: string, input?: unknown, options?: ExecuteOptions) {
  try {
    return described(await executor.execute(id, input, options));
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    const { code, message, details, retryable, correctable } = error;
    return { outcome: "call error", code, message, details, retryable, correctable };
  }
}

function described(envelope: ResponseEnvelope) {
  const { code, message, details } = envelope.meta.waybill ?? {};
  const result = outcomeOf(envelope);
  return result === "ok"
    ? { outcome: result, data: envelope.data }
    : { outcome: result, data: envelope.data, code, message, details };
}

const registry = new OperationRegistry(roundTripOperations());

describe.each(Object.keys(SURFACES))("X-6 operations called over %s", (name) => {
  let way: Surface;
  /** An abort has an event of its own on the bus, which says no more than that. */
  const same = async (id: string, input?: unknown, isAbort = false) => {
    const [here, there] = [await outcome(registry, id, input), await outcome(way.executor, id, input)];
    if (!isAbort) expect(there).toStrictEqual(here);
    return there;
  };
  beforeAll(async () => {
    const open = SURFACES[name];
    if (open === undefined) throw new Error(`There is no way ${name}.`);
    way = await open(registry);
  });
  afterAll(() => way.close());

  it.each(Object.keys(VALUES))("X-6 RE-30 give the same data: %s", async (value) => {
    const there = await same("value.give", { name: value });
    expect(there).toStrictEqual({ outcome: "ok", data: VALUES[value] });
  });

  it.each([undefined, 5, "text", [1, { a: 2 }], true, null, { input: 5 }])(
    "X-6 take the same input where none is declared: %j",
    async (input) => {
      expect(await same("value.echo", input)).toStrictEqual({ outcome: "ok", data: input });
    },
  );

  it.each([{}, { a: [1, null, "x"] }, { nested: { list: [{ deep: true }] } }])(
    "X-6 take the same input: %j",
    async (input) => {
      expect(await same("value.echo", input)).toMatchObject({ data: input });
    },
  );

  it.each([
    ["typed.object", { n: 1 }],
    ["typed.list", {}],
    ["typed.number", {}],
    ["typed.nullable", {}],
    ["typed.result", {}],
    ["typed.closedResult", {}],
    ["typed.openInput", { a: 1 }],
    ["typed.text", "a text"],
    ["change.make", { to: "blue" }],
    ["odd.name.with-many_signs.and/slashes", {}],
    [`long.${"x".repeat(200)}`, {}],
  ])("X-6 RE-32 work with schemas and names of any shape: %s", async (id, input) => {
    expect(await same(id, input)).toMatchObject({ outcome: "ok" });
  });

  it.each(Object.keys(ERROR_CODES))("X-6 X-5 fail with the same error: %s", async (code) => {
    const there = await same("fail.code", { code }, code === "ABORTED");
    expect(there).toMatchObject({ outcome: "call error", code });
  });

  it.each([
    ["fail.domain", {}],
    ["fail.foreign", {}],
    ["fail.tool", { tried: 3 }],
    ["fail.plain", {}],
    ["fail.null", {}],
    ["fail.silent", {}],
    ["typed.object", { n: "one" }],
    ["typed.object", { n: 1, more: true }],
    ["typed.text", ""],
  ])("X-6 RE-20 say no in the same way: %s %j", async (id, input) => {
    const there = await same(id, input);
    expect(there.outcome).not.toBe("ok");
    expect(JSON.stringify(there)).not.toContain("SECRET");
  });

  it("X-6 an operation that is not there is OPERATION_NOT_FOUND", async () => {
    expect(await outcome(way.executor, "no.such", {})).toMatchObject({ code: "OPERATION_NOT_FOUND" });
  });

  it("X-6 RE-28 stream the same values, with sequence and cursor", async () => {
    const seen: unknown[] = [];
    for await (const { data, meta } of way.executor.subscribe("tick.count", { to: 5 })) {
      seen.push([data, meta.waybill?.sequence, meta.waybill?.cursor]);
    }
    expect(seen).toStrictEqual(Array.from({ length: 5 }, (_, n) => [{ n, at: new Date(n) }, n, `c${n}`]));
  });

  it("X-6 a stream that breaks gives what came before, and the error", async () => {
    const seen: unknown[] = [];
    const run = async () => {
      for await (const { data } of way.executor.subscribe("tick.fails", {})) seen.push(data);
    };
    expect(await rejection(run())).toMatchObject({ code: "CONFLICT", details: { at: 1 } });
    expect(seen).toEqual([1]);
  });

  it("X-6 an abort and a deadline end the call here and there", async () => {
    const controller = new AbortController();
    const aborted = outcome(way.executor, "wait.long", {}, { signal: controller.signal });
    setTimeout(() => controller.abort(), 50);
    expect(await aborted).toMatchObject({ code: "ABORTED" });
    expect(await outcome(way.executor, "wait.long", {}, { timeoutMs: 50 })).toMatchObject({
      code: "TIMEOUT",
    });
  });

  it("X-6 RE-27 follow the same pages", async () => {
    const pages = await collect(createClient(way.executor).pages("paged.list", { from: 1 }));
    expect(pages).toEqual([[{ page: "1" }], [{ page: "2" }], [{ page: "3" }]]);
    const { meta } = await way.executor.execute("paged.list", { cursor: "3" });
    expect(meta.waybill?.page).toEqual({});
  });

  it("X-6 list the same operations, with the same specs", () => {
    const specs = (list: readonly AnyOperation[]) =>
      list.map(
        ({
          id,
          type,
          version,
          title,
          description,
          tags,
          annotations,
          inputSchema,
          outputSchema,
          errors,
        }) => ({
          id,
          type,
          version,
          title,
          description,
          tags,
          annotations,
          input: inputSchema && JSON.parse(JSON.stringify(inputSchema)),
          output: outputSchema && JSON.parse(JSON.stringify(outputSchema)),
          errors,
        }),
      );
    expect(specs(way.executor.list())).toEqual(specs(registry.list()));
  });
});

describe.each(["MCP 2025", "MCP 2026", "HTTP"])("X-6 two hops over %s", (name) => {
  it("X-6 RE-27 lose neither pages, nor input that is no object, nor what looks like a wrapper", async () => {
    const open = SURFACES[name];
    const first = await open?.(registry);
    const second = await open?.(first?.executor as OperationRegistry);
    const client = createClient(second?.executor as OperationRegistry);
    expect(await collect(client.pages("paged.list", { from: 2 }))).toEqual([
      [{ page: "2" }],
      [{ page: "3" }],
    ]);
    expect(await client.call("value.echo", 5)).toBe(5);
    expect(await client.call("value.echo", { input: 5 })).toEqual({ input: 5 });
    expect(await client.call("typed.result", {})).toEqual({ result: 7 });
    expect(await client.call("typed.list", {})).toEqual([{ n: 1 }, { n: 2 }]);
    await second?.close();
    await first?.close();
  });
});

describe.each(["MCP 2025", "MCP 2026"])("X-6 a person behind %s", (name) => {
  it("RE-30 is asked through any number of hops", async () => {
    const open = SURFACES[name];
    const first = await open?.(registry);
    const second = await open?.(first?.executor as OperationRegistry);
    const caller = { elicit: async () => ({ action: "accept", content: { name: "Ada" } }) as const };
    const envelope = await second?.executor.execute("ask.person", {}, { caller });
    expect(envelope?.data).toEqual({ action: "accept", content: { name: "Ada" } });
    expect(await rejection(second?.executor.execute("ask.person", {}) ?? Promise.resolve())).toMatchObject({
      code: "NOT_IMPLEMENTED",
    });
    await second?.close();
    await first?.close();
  });
});
