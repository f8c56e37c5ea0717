import { describe, expect, it } from "vitest";
import { CallError } from "../../core/errors/errors.ts";
import type { McpConnection } from "./mcp-connection.ts";
import { withWhole } from "./whole-result.ts";

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
  const run = (result: unknown) =>
    withWhole(connection, result, { tool: "t", request: { timeoutMs: 5 }, warn });
  return { asked, warnings, run };
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

  it("RE-22 stays aborted when it is called off meanwhile", async () => {
    const { run, warnings } = fetching(() => Promise.reject(new CallError("ABORTED")));
    await expect(run(cut({ stored: "x:1" }))).rejects.toMatchObject({ code: "ABORTED" });
    expect(warnings).toEqual([]);
  });
});
