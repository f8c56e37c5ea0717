import { describe, expect, it } from "vitest";
import { query, rejection } from "../../../test/make-operation.ts";
import type { CallerSide } from "../operation/caller-side.ts";
import type { LogLine } from "../operation/operation-context.ts";
import { OperationRegistry } from "../registry/registry.ts";

const form = { message: "Which one?", requestedSchema: { type: "object" } } as const;
const asks = query("ask.form", (_, { elicit }) => elicit(form));
const samples = query("ask.model", (_, { sample }) => sample({ messages: [], maxTokens: 5 }));
const looks = query("ask.roots", (_, { roots }) => roots({ key: "where" }));
const nested = query("ask.nested", async (_, { execute }) => (await execute("ask.form", {})).data);
const registry = new OperationRegistry([asks, samples, looks, nested]);

describe("asking whoever made the call", () => {
  const caller: CallerSide = {
    elicit: async (request) => ({ action: "accept", content: { said: request.message } }),
    sample: async (request) => ({ role: "assistant", content: request.maxTokens, model: "m" }),
  };

  it("RE-10 a handler asks the person or the model of the caller's side", async () => {
    expect((await registry.execute(asks, {}, { caller })).data).toEqual({
      action: "accept",
      content: { said: "Which one?" },
    });
    expect((await registry.execute(samples, {}, { caller })).data).toMatchObject({ content: 5, model: "m" });
  });

  it("RE-10 a question keeps the name its handler gave it", async () => {
    const keyed: CallerSide = { roots: async (_, key) => [{ uri: `file:///${key}` }] };
    expect((await registry.execute(looks, {}, { caller: keyed })).data).toEqual([{ uri: "file:///where" }]);
  });

  it("RE-10 the calls of a handler ask the same caller, and a nested call cannot bring its own", async () => {
    expect((await registry.execute(nested, {}, { caller })).data).toMatchObject({ action: "accept" });
    const other: CallerSide = { elicit: async () => ({ action: "cancel" }) };
    const sneaky = query("ask.sneaky", async (_, { execute }) => {
      return (await execute("ask.form", {}, { caller: other } as never)).data;
    });
    const own = new OperationRegistry([asks, sneaky]);
    expect((await own.execute(sneaky, {}, { caller })).data).toMatchObject({ action: "accept" });
    expect(await rejection(own.execute(sneaky, {}))).toMatchObject({ code: "NOT_IMPLEMENTED" });
  });

  it.each([[asks], [samples], [looks]])(
    "RE-10 where nobody can be asked it is NOT_IMPLEMENTED",
    async (operation) => {
      for (const options of [undefined, { caller: {} }]) {
        const error = await rejection(registry.execute(operation, {}, options));
        expect(error).toMatchObject({ code: "NOT_IMPLEMENTED" });
        expect((error as Error).message).toContain(operation.id);
      }
    },
  );

  it("RE-10 the signal of the call goes with the question", async () => {
    const controller = new AbortController();
    const waits: CallerSide = {
      elicit: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
          controller.abort();
        }),
    };
    const ended = registry.execute(asks, {}, { caller: waits, signal: controller.signal });
    expect(await rejection(ended)).toMatchObject({ code: "ABORTED" });
  });
});

describe("log lines of one call", () => {
  it("RE-10 reach the caller as well as the registry, and a listener that throws harms nobody", async () => {
    const all: unknown[] = [];
    const says = query("log.say", (_, { log }) => log("warn", "careful", { n: 1 }));
    const own = new OperationRegistry([says], { onLog: (record) => all.push(record) });
    const lines: LogLine[] = [];
    await own.execute(says, {}, { onLog: (line) => lines.push(line) });
    expect(lines).toEqual([{ level: "warn", message: "careful", data: { n: 1 } }]);
    expect(all).toMatchObject([{ level: "warn", operationId: "log.say" }]);
  });
});
