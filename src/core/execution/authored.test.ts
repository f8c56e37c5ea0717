import { describe, expect, it, vi } from "vitest";
import { composeToolPayload, createResultReader, toToolResult } from "../../formats/index.ts";
import {
  CallError,
  defineOperation,
  localEnvelope,
  OperationRegistry,
  type OperationSpec,
  outcomeOf,
  type RegistryWarning,
  rawData,
  result,
  Type,
  toolError,
} from "../../index.ts";

type Parts = Partial<OperationSpec> & Pick<OperationSpec, "handler">;

/** Runs one handler, and tells what the registry warned of. */
async function run(parts: Parts, times = 1) {
  const warnings: RegistryWarning[] = [];
  const operation = defineOperation({
    namespace: "shop",
    name: "count",
    version: "1.0.0",
    type: "query",
    description: "",
    ...parts,
  } as OperationSpec);
  const registry = new OperationRegistry([operation], { onWarning: (warning) => warnings.push(warning) });
  let envelope = await registry.execute("shop.count", {});
  for (let i = 1; i < times; i++) envelope = await registry.execute("shop.count", {});
  return { envelope, warnings };
}

const COUNTED = Type.Object({ count: Type.Integer() });

describe("a result that its handler wrote", () => {
  it("X-7 carries what was said, is checked, and belongs to the operation", async () => {
    const { envelope, warnings } = await run({
      outputSchema: COUNTED,
      handler: () => result({ count: 2, more: true }, { summary: "Two", status: "info" }),
    });
    expect(envelope.data).toEqual({ count: 2 });
    expect(envelope.meta).toMatchObject({
      source: "local",
      operationId: "shop.count",
      waybill: { said: { summary: "Two", status: "info" }, normalization: { stripped: ["/more"] } },
    });
    expect(rawData(envelope)).toEqual({ count: 2, more: true });
    expect(warnings).toEqual([]);
  });

  it("X-7 says nothing where nothing was said", async () => {
    const { envelope } = await run({ handler: () => result(5) });
    expect(envelope.meta).not.toHaveProperty("waybill");
    expect(envelope.data).toBe(5);
  });

  it("X-7 breaks where it says nonsense, and the cause names the field", async () => {
    const failing = run({ handler: () => result(1, { summary: 5 as never }) });
    await expect(failing).rejects.toMatchObject({
      code: "EXECUTION_ERROR",
      cause: expect.objectContaining({ message: expect.stringContaining("summary") }),
    });
  });

  it("X-8 made by a helper has its outcome and data, checked like any other", async () => {
    const meta = { status: "error", summary: "No such order" } as const;
    const failed = await run({
      outputSchema: COUNTED,
      handler: () => composeToolPayload({ meta, data: { errorCode: "NO_ORDER" } }),
    });
    expect(outcomeOf(failed.envelope)).toBe("tool_error");
    expect(failed.envelope.data).toEqual({ errorCode: "NO_ORDER" });
    expect(failed.envelope.meta.waybill).toMatchObject({
      code: "NO_ORDER",
      said: { summary: "No such order" },
    });
    const wrong = await run({
      outputSchema: COUNTED,
      handler: () => composeToolPayload({ meta: { status: "ok", summary: "Two" }, data: { count: "two" } }),
    });
    expect(wrong.warnings).toMatchObject([{ type: "output-invalid" }]);
    expect(wrong.envelope.meta.waybill?.violations).toHaveLength(1);
  });

  it("X-8 is read anew each time it is returned, also when it was changed since it was made", async () => {
    const { envelope } = await run({
      handler: () => {
        const payload = composeToolPayload({ meta: { status: "ok", summary: "One" }, data: 1 });
        payload.content.push({ type: "image", data: "AAAA", mimeType: "image/png" });
        return payload;
      },
    });
    expect(envelope.meta.waybill?.said?.content).toEqual([
      { type: "image", data: "AAAA", mimeType: "image/png" },
    ]);
  });
});

describe("data that looks like a result", () => {
  const failed = { content: [{ type: "text", text: "No." }], isError: true };
  const payload = composeToolPayload({ meta: { status: "error", summary: "No" }, data: null });
  const envelopeBlock = toToolResult({ summaryMarkdown: "Yes", payload: 1, meta: { tool: "t" } });

  it.each([
    ["a tool result that failed", failed, "returns: createResultReader()"],
    ["a copied payload", { ...payload }, "returns: createResultReader()"],
    ["a parsed tool envelope", JSON.parse(JSON.stringify(envelopeBlock)), "returns: createResultReader()"],
    ["a status envelope by itself", payload.structuredContent, "composeToolPayload()"],
    ["a tiered envelope", { tier: "pro", tool_id: "t", request_id: "r", error: null }, "tieredEnvelope()"],
    ["a spread envelope", { ...localEnvelope(1, "a.b") }, "withData(envelope, data)"],
    ["a cloned envelope", structuredClone(localEnvelope(1, "a.b")), "withData(envelope, data)"],
  ])("X-8 is data, and warned of once: %s", async (_, data, fix) => {
    const { envelope, warnings } = await run({ handler: () => data }, 3);
    expect(outcomeOf(envelope)).toBe("ok");
    expect(envelope.data).toBe(data);
    expect(warnings).toMatchObject([{ type: "result-unmarked", operationId: "shop.count" }]);
    expect(warnings[0]?.message).toContain(fix);
  });

  it.each([
    [{ content: "a text" }],
    [{ content: [], title: "A page" }],
    [{ meta: { page: 1 }, data: [] }],
    [{ tier: "pro" }],
    [{ data: 1, meta: null }],
    [[failed]],
  ])("X-8 is not warned of where it looks like nothing of ours: %j", async (data) => {
    expect((await run({ handler: () => data })).warnings).toEqual([]);
  });

  it("X-8 may throw when it is looked at, and is returned all the same", async () => {
    const data = {
      get content(): never {
        throw new Error("not now");
      },
    };
    const { envelope } = await run({ handler: () => data });
    expect(envelope.data).toBe(data);
  });
});

describe("what an operation returns", () => {
  const returns = createResultReader();

  it.each([
    ["a failure", { content: [{ type: "text", text: "No." }], isError: true }, "tool_error"],
    ["a success", { content: [{ type: "text", text: "Yes." }] }, "ok"],
  ])("X-8 is read as a tool result: %s", async (_, value, outcome) => {
    const { envelope, warnings } = await run({ returns, handler: () => value });
    expect(outcomeOf(envelope)).toBe(outcome);
    expect(envelope.meta).toMatchObject({ source: "mcp", content: value.content });
    expect(envelope.data).toEqual(value.content);
    expect(warnings).toEqual([]);
  });

  it("X-8 is read in any published format, its data checked", async () => {
    const made = composeToolPayload({
      meta: { status: "warn", summary: "Low" },
      data: { count: 1, more: 1 },
    });
    const { envelope } = await run({ returns, outputSchema: COUNTED, handler: async () => ({ ...made }) });
    expect(envelope.data).toEqual({ count: 1 });
    expect(envelope.meta.waybill).toMatchObject({ said: { status: "warn", summary: "Low" } });
    expect(envelope.meta).toMatchObject({ source: "local", operationId: "shop.count" });
  });

  it("X-8 keeps what one of our helpers or factories made", async () => {
    const { envelope } = await run({ returns, handler: () => toolError("no", { code: "NO" }) });
    expect(envelope.meta.waybill).toMatchObject({ code: "NO" });
  });

  it.each([[5], ["text"], [{ count: 1 }], [null]])(
    "X-8 is refused where it is no tool result: %j",
    async (value) => {
      await expect(run({ returns, handler: () => value })).rejects.toMatchObject({
        code: "OUTPUT_INVALID",
        message: expect.stringContaining("tool result"),
      });
    },
  );

  it("X-8 is a reader, and nothing else", () => {
    expect(() => run({ returns: {} as never, handler: () => 1 })).rejects.toThrow("returns must be a reader");
  });
});

describe("render", () => {
  it("X-7 says about data what its handler did not", async () => {
    const { envelope } = await run({
      outputSchema: COUNTED,
      render: (data) => ({ summary: `${(data as { count: number }).count} orders` }),
      handler: () => ({ count: 3, more: true }),
    });
    expect(envelope.meta.waybill).toMatchObject({
      said: { summary: "3 orders" },
      normalization: { stripped: ["/more"] },
    });
  });

  it("X-7 is not asked where the handler said something, nor about errors", async () => {
    const render = vi.fn(() => ({ summary: "never" }));
    const said = await run({ render, handler: () => result(1, { summary: "Own" }) });
    expect(said.envelope.meta.waybill?.said).toEqual({ summary: "Own" });
    await run({ render, handler: () => toolError(1) });
    expect(render).not.toHaveBeenCalled();
  });

  it.each([
    [
      "throws",
      () => {
        throw new CallError("TIMEOUT");
      },
    ],
    ["says nonsense", () => ({ summary: 7 })],
    ["says what there is not", () => ({ sumary: "x" })],
    ["promises to say something", async () => ({ summary: "x" })],
    ["says nothing in a word", () => null],
  ])("X-7 that %s is reported, and the result stands", async (_, render) => {
    const { envelope, warnings } = await run({ render: render as never, handler: () => 1 });
    expect(envelope.data).toBe(1);
    expect(envelope.meta).not.toHaveProperty("waybill");
    expect(warnings).toMatchObject([{ type: "render-failed", operationId: "shop.count" }]);
  });

  it("X-7 that breaks its promise ends no process", async () => {
    const rejections: unknown[] = [];
    const listen = (reason: unknown) => rejections.push(reason);
    process.on("unhandledRejection", listen);
    const render = async () => {
      throw new Error("later");
    };
    const { warnings } = await run({ render: render as never, handler: () => 1 });
    await new Promise((resolve) => setTimeout(resolve, 0));
    process.off("unhandledRejection", listen);
    expect(warnings).toMatchObject([{ type: "render-failed" }]);
    expect(rejections).toEqual([]);
  });

  it("X-7 may say nothing", async () => {
    const { envelope, warnings } = await run({ render: () => undefined, handler: () => 1 });
    expect(envelope.meta).not.toHaveProperty("waybill");
    expect(warnings).toEqual([]);
  });
});
