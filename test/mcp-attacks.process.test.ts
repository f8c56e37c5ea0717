import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { isResponseEnvelope, OperationRegistry, outcomeOf, type ResponseEnvelope } from "../src/index.ts";
import { type FromMcpOptions, fromMcp, type McpSource } from "../src/mcp/index.ts";
import { cpuMs } from "./cpu-ms.ts";
import { rejection } from "./make-operation.ts";

const HOSTILE = fileURLToPath(new URL("mcp-children/hostile-server.js", import.meta.url));
const open: McpSource[] = [];
afterEach(async () => {
  for (const source of open.splice(0)) await source.close();
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

/** The hostile server, imported into a registry. */
async function hostile(options: Partial<FromMcpOptions> = {}, ...args: string[]) {
  const target = { command: process.execPath, args: [HOSTILE, ...args] };
  const source = await fromMcp(target, {
    namespace: "evil",
    limits: { messageBytes: 1_000_000 },
    onWarning: () => {},
    ...options,
  });
  open.push(source);
  const registry = new OperationRegistry([], { onWarning: () => {} });
  registry.registerAll(source);
  const call = (tool: string, timeoutMs = 20_000): Promise<ResponseEnvelope> =>
    registry.execute(`evil.${tool}`, {}, { timeoutMs });
  return { source, registry, call };
}

/** Nothing a terminal or a reader would be fooled by. */
const CLEAN = /^[^\p{Cc}\u200b-\u200f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]*$/u;

describe("Mcp: a hostile server", () => {
  it("RE-22 RE-32 hides no good tool behind bad ones, and says what is wrong with those", async () => {
    const { source, registry, call } = await hostile();
    expect((await call("ok")).meta).toMatchObject({ source: "mcp", isError: false });
    const unusable = JSON.stringify(source.unusable);
    expect(source.unusable.length).toBeGreaterThanOrEqual(5);
    expect(unusable).toContain("ok");
    expect(registry.has("bank.pay")).toBe(false);
    expect((await source.call("a/b.c", {}).catch((error) => error)).code).toBe("OPERATION_NOT_FOUND");
    for (const { title = "", description } of registry.operations) {
      expect(title).toMatch(CLEAN);
      expect(description).toMatch(CLEAN);
    }
    const hidden = registry.get("evil.hidden");
    expect(hidden?.type).toBe("mutation");
    expect(JSON.stringify(hidden?._meta)).toContain("findings");
  });

  it("RE-22 hides no tool behind one that is nested 300 deep, and says what is wrong with it", async () => {
    const { source, call } = await hostile({}, "deep-tool");
    expect((await call("ok")).meta.isError).toBe(false);
    const reason = "Its definition is nested more than 256 levels deep.";
    expect(source.unusable).toContainEqual({ tool: "deep", reason });
  });

  it.each(["endless-pages", "same-page"])("RE-22 ends a list that never ends: %s", async (mode) => {
    const { registry } = await hostile({}, mode);
    expect(registry.has("evil.ok")).toBe(true);
  });

  it.each([
    "ok",
    "ratherDeep",
    "twice",
    "others",
    "noise",
    "oddBlocks",
    "proto",
    "askFlood",
    "progressFlood",
  ])("RE-23 RE-24 delivers what can be delivered: %s", async (tool) => {
    const { call } = await hostile();
    const envelope = await call(tool);
    expect(outcomeOf(envelope)).toBe("ok");
    expect((await call("ok")).meta).toMatchObject({ isError: false });
    if (tool === "twice") expect(JSON.stringify(envelope)).toContain("first");
    if (tool === "oddBlocks") expect(envelope.data).toHaveLength(8);
  });

  it("RE-23 reads a result of odd members as far as it says something", async () => {
    const { call } = await hostile();
    expect(await call("badShapes")).toMatchObject({ data: 5, meta: { isError: true } });
    expect(await call("noContent")).toMatchObject({ data: {}, meta: { isError: false } });
    expect((await call("ok")).meta).toMatchObject({ isError: false });
  });

  it.each(["nullResult", "arrayResult", "deep", "huge", "errorText", "errorOdd", "crash"])(
    "RE-23 fails clearly and goes on: %s",
    async (tool) => {
      const { call } = await hostile();
      const error = (await rejection(call(tool))) as Error & { code: string; details?: { said?: string } };
      expect(error).toMatchObject({ name: "CallError" });
      expect(error.message).toMatch(CLEAN);
      expect(error.message.length).toBeLessThan(2_000);
      const { said = "", ...others } = error.details ?? {};
      expect(said).toMatch(CLEAN);
      expect(said.length).toBeLessThanOrEqual(1_000);
      expect(JSON.stringify([error.message, error.code, others])).not.toContain("SECRET ");
      const again = () => call("ok").then(({ meta }) => meta.isError);
      // A process that is gone is started again in its own time; everything else has gone on.
      if (tool === "crash") await expect.poll(again, { timeout: 20_000 }).toBe(false);
      expect(await again()).toBe(false);
    },
  );

  it("RE-23 a line without an end does not grow memory, and only its own call is lost", async () => {
    const { call } = await hostile();
    const before = process.memoryUsage().rss;
    expect(await rejection(call("endless", 1_500))).toMatchObject({ name: "CallError" });
    expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000);
  });

  it("X-4 an envelope look-alike is data, and _meta makes no error of a success", async () => {
    const { call } = await hostile();
    const envelope = await call("envelopeLike");
    expect(isResponseEnvelope(envelope)).toBe(true);
    expect(envelope.meta).toMatchObject({ source: "mcp", isError: false });
    expect(envelope.data).toMatchObject({ data: "forged", meta: { operationId: "bank.pay" } });
  });

  it("X-4 a forged reason is not believed beyond what is visible", async () => {
    const { call } = await hostile();
    const envelope = await call("forgedError");
    expect(outcomeOf(envelope)).toBe("tool_error");
    expect((await call("forgedWire")).data).toEqual({ paid: 1 });
  });

  it("RE-32 an evil pattern is answered at once, with the result delivered", async () => {
    const { call } = await hostile();
    const started = cpuMs();
    const envelope = await call("pattern");
    expect(cpuMs() - started).toBeLessThan(2_000);
    expect(envelope.data).toMatchObject({ s: expect.stringContaining("aaa") });
    expect(envelope.meta.waybill?.violations?.length).toBeGreaterThan(0);
  });
});
