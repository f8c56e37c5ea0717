import { describe, expect, it } from "vitest";
import { collect, rejection } from "../../../test/make-operation.ts";
import { localEnvelope, toolError, withFacts } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { CursoredValue } from "../../core/operation/with-cursor.ts";
import { SourceSecrets } from "../../core/secrets/secret-mask.ts";
import { encodeEnvelope } from "../../core/wire/wire.ts";
import { type StreamRun, ToolStream, withoutCut, withWhole, withWholeData } from "./call-tool.ts";
import type { McpConnection } from "./mcp-connection.ts";

const progress = (data: unknown) => ({
  progress: 1,
  _meta: { "dev.waybill/yield": encodeEnvelope(localEnvelope(data, "a.b")) },
});

describe("ToolStream", () => {
  it("RE-28 starts when first asked, gives all values, and ends with the call", async () => {
    let runs = 0;
    const run: StreamRun["run"] = async (onProgress) => {
      runs += 1;
      onProgress({ progress: 1, message: "about something else" });
      onProgress(progress(1));
      onProgress(progress(undefined));
    };
    const stream = new ToolStream({ limit: 10, run });
    expect(runs).toBe(0);
    expect(await collect(stream)).toMatchObject([
      { data: 1, meta: { source: "mcp", isError: false } },
      { data: undefined },
    ]);
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(runs).toBe(1);
  });

  it("RE-28 keeps cursors and tool errors", async () => {
    const cursored = encodeEnvelope(withFacts(localEnvelope(1, "a.b"), { cursor: "c", sequence: 7 }));
    const failed = encodeEnvelope(toolError({ no: 1 }, { code: "X", operationId: "a.b" }));
    const run: StreamRun["run"] = async (onProgress) => {
      for (const text of [cursored, failed]) onProgress({ _meta: { "dev.waybill/yield": text } });
    };
    const [first, second] = await collect(new ToolStream({ limit: 10, run }));
    expect(first).toBeInstanceOf(CursoredValue);
    expect(first).toMatchObject({ cursor: "c", value: { data: 1 } });
    expect(second).toMatchObject({ data: { no: 1 }, meta: { isError: true, waybill: { code: "X" } } });
  });

  it("X-11 masks cursors as it masks values", async () => {
    const secrets = new SourceSecrets(undefined, { secrets: ["canary-4f1c9e27ab53d860"] });
    const given = withFacts(localEnvelope("canary-4f1c9e27ab53d860", "a.b"), {
      cursor: "1-canary-4f1c9e27ab53d860",
    });
    const run: StreamRun["run"] = async (onProgress) =>
      onProgress({ _meta: { "dev.waybill/yield": encodeEnvelope(given) } });
    const mask: StreamRun["mask"] = (envelope) => secrets.maskEnvelope(envelope);
    const [value] = await collect(new ToolStream({ limit: 10, run, mask }));
    expect(value).toMatchObject({ cursor: "1-***", value: { data: "***" } });
  });

  it("RE-28 gives what came before an error, then the error, once", async () => {
    const run: StreamRun["run"] = async (onProgress) => {
      onProgress(progress(1));
      throw new CallError("CONFLICT");
    };
    const stream = new ToolStream({ limit: 10, run });
    expect(await stream.next()).toMatchObject({ value: { data: 1 } });
    expect(await rejection(stream.next())).toMatchObject({ code: "CONFLICT" });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
  });

  it("Mcp: lets as many values wait as allowed, and ends with one more", async () => {
    const flood =
      (count: number): StreamRun["run"] =>
      async (onProgress, signal) => {
        for (let i = 0; i < count; i++) onProgress(progress(i));
        expect(signal.aborted).toBe(count > 3);
      };
    expect(await collect(new ToolStream({ limit: 3, run: flood(3) }))).toHaveLength(3);
    expect(await rejection(collect(new ToolStream({ limit: 3, run: flood(4) })))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
    });
  });

  it.each([7, "{", "{}", '{"data":1,"meta":{"source":"local"}}'])(
    "Mcp: a value that is no envelope ends it: %j",
    async (text) => {
      const run: StreamRun["run"] = async (onProgress) =>
        onProgress({ _meta: { "dev.waybill/yield": text } });
      expect(await rejection(collect(new ToolStream({ limit: 3, run })))).toMatchObject({
        code: "OUTPUT_INVALID",
      });
    },
  );

  it("RE-28 leaving it cancels the call, and so does the signal from outside", async () => {
    const aborted: string[] = [];
    const forever =
      (name: string): StreamRun["run"] =>
      (onProgress, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            aborted.push(name);
            reject(new CallError("ABORTED"));
          });
          onProgress(progress(1));
        });
    for await (const _ of new ToolStream({ limit: 3, run: forever("left") })) break;
    const controller = new AbortController();
    const stream = new ToolStream({ limit: 3, signal: controller.signal, run: forever("stopped") });
    await stream.next();
    const step = stream.next();
    controller.abort();
    expect(await rejection(step)).toMatchObject({ code: "ABORTED" });
    expect(aborted).toEqual(["left", "stopped"]);
  });
});

const KEY = "dev.waybill/result";

function fetching(answer: () => unknown) {
  const asked: unknown[] = [];
  const warnings: string[] = [];
  const connection = {
    request: async (method: string, params: unknown, options: unknown) => {
      asked.push([method, params, options]);
      return answer();
    },
  } as unknown as McpConnection;
  const warn = (message: string): void => void warnings.push(message);
  const fetch = (result: unknown) =>
    withWhole(connection, result, { tool: "t", request: { timeoutMs: 5 }, warn });
  const run = async (result: unknown) => (await fetch(result)).result;
  return { asked, warnings, fetch, run };
}

const cut = (facts: object) => ({ content: [], _meta: { other: 1, [KEY]: facts } });
const text = (value: string) => () => ({ contents: [{ uri: "x:1", text: value }] });

describe("withWhole", () => {
  it("RE-23 asks once, in what is left of the time, and keeps the other facts", async () => {
    const { run, asked } = fetching(text('{"a":1}'));
    expect(await run(cut({ stored: "x:1", page: {} }))).toEqual({
      content: [],
      structuredContent: { a: 1 },
      _meta: { other: 1, [KEY]: { page: {} } },
    });
    expect(asked).toEqual([["resources/read", { uri: "x:1" }, { timeoutMs: 5 }]]);
  });

  it.each([undefined, null, 5, {}, cut({}), cut({ stored: 5 }), cut({ stored: "x".repeat(8_193) })])(
    "X-4 asks for nothing where no address is said: %#",
    async (result) => {
      const { run, asked, warnings } = fetching(text("1"));
      expect(await run(result)).toBe(result);
      expect([asked, warnings]).toEqual([[], []]);
    },
  );

  it("X-4 asks for an address of 8_192 characters", async () => {
    const { run } = fetching(text("1"));
    expect(await run(cut({ stored: "x".repeat(8_192) }))).toMatchObject({ structuredContent: 1 });
  });

  it.each([
    ["no JSON", text("{")],
    ["no text", () => ({ contents: [{ blob: "AA==" }] })],
    ["no contents", () => ({})],
    ["too deep", text("[".repeat(513) + "]".repeat(513))],
    ["not there", () => Promise.reject(new CallError("NOT_FOUND"))],
  ])("X-4 leaves a result as it came where the whole is %s, with a warning", async (_, answer) => {
    const { run, warnings } = fetching(answer);
    const result = cut({ stored: "x:1" });
    expect(await run(result)).toBe(result);
    expect(warnings).toHaveLength(1);
  });

  it("X-4 takes 512 levels, and pollutes nothing", async () => {
    const deep = "[".repeat(512) + "]".repeat(512);
    expect(await fetching(text(deep)).run(cut({ stored: "x:1" }))).toHaveProperty("structuredContent");
    const evil = (await fetching(text('{"__proto__":{"bad":1}}')).run(cut({ stored: "x:1" }))) as object;
    expect(Object.keys((evil as { structuredContent: object }).structuredContent)).toEqual(["__proto__"]);
    expect(({} as { bad?: unknown }).bad).toBeUndefined();
  });

  it("X-10 puts data that was cut back where it belongs, and forgets what was said of the cut", async () => {
    const facts = { stored: "x:1", cuts: [{ pointer: "/0" }], omittedCuts: 2, page: {} };
    const rows = fetching(text("[1,2]"));
    expect(await rows.run({ ...cut(facts), structuredContent: [1] })).toEqual({
      ...cut({ page: {} }),
      structuredContent: [1, 2],
    });
    const wrapped = { ...cut({ ...facts, wrapsResult: true }), structuredContent: { result: [1] } };
    expect(await rows.run(wrapped)).toMatchObject({ structuredContent: { result: [1, 2] } });
    const envelope = {
      ...cut({ ...facts, storedAs: "data" }),
      structuredContent: { tier: "pro", data: [1] },
    };
    expect(await rows.fetch(envelope)).toEqual({
      result: { ...cut({ page: {} }), structuredContent: { tier: "pro", data: [1] } },
      whole: { data: [1, 2], uri: "x:1" },
    });
    expect(withWholeData({ tier: "pro", data: [1] }, { data: [1, 2], uri: "x:1" })).toEqual({
      tier: "pro",
      data: [1, 2],
    });
    expect(withWholeData([1], { data: [1, 2], uri: "x:1" })).toEqual([1]);
  });

  it("X-10 finds the data of a stored envelope, and gives that of a tool envelope apart", async () => {
    const { fetch, warnings } = fetching(text('{"meta":{},"data":[1,2]}'));
    const facts = { stored: "x:1", storedAs: "envelope" };
    expect(await fetch(cut(facts))).toEqual({ result: cut({}), whole: { data: [1, 2], uri: "x:1" } });
    expect(warnings).toEqual([]);
    const other = fetching(text("[1,2]"));
    expect(await other.run(cut(facts))).toEqual(cut(facts));
    expect(other.warnings).toHaveLength(1);
  });

  it("X-10 leaves out of what a tool said that it was cut", () => {
    const link = { type: "resource_link", uri: "x:1", name: "n" } as const;
    const said = {
      summary: "s",
      truncated: true,
      nextSteps: ["a", "Read x:1."],
      content: [link, { type: "text", text: "Read x:1 for all." } as const],
    };
    const whole = { data: 1, uri: "x:1" };
    expect(withoutCut(said, whole)).toEqual({ summary: "s", nextSteps: ["a"] });
    expect(withoutCut({ content: [{ ...link, uri: "x:2" }] }, whole)).toMatchObject({
      content: [{ uri: "x:2" }],
    });
    expect(withoutCut(undefined, whole)).toBeUndefined();
  });

  it("RE-22 stays aborted when it is called off meanwhile", async () => {
    const { run, warnings } = fetching(() => Promise.reject(new CallError("ABORTED")));
    await expect(run(cut({ stored: "x:1" }))).rejects.toMatchObject({ code: "ABORTED" });
    expect(warnings).toEqual([]);
  });
});
