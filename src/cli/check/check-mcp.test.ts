import { describe, expect, it } from "vitest";
import { checkMcpServer as check } from "../../../test/check-mcp-server.ts";
import { createRawMcpServer, type RawAnswer } from "../../../test/raw-mcp-server.ts";
import type { McpConnectionOptions } from "../../mcp/client/connection-options.ts";
import type { CheckId, CheckReport } from "./check-report.ts";

type Calls = Parameters<typeof check>[1];

const READ = { readOnlyHint: true };
const OBJECT = { type: "object" };

interface RawTool {
  readonly name: string;
  readonly [field: string]: unknown;
}

/** A raw server with one tool more or less than well-behaved. */
function raw(tools: readonly RawTool[] | (() => readonly unknown[]), call: RawAnswer, more = {}) {
  const list = typeof tools === "function" ? tools : () => tools;
  return createRawMcpServer({
    ping: () => ({}),
    "tools/list": () => ({ tools: list() }),
    "tools/call": (params, request) => {
      if (!list().some((tool) => (tool as RawTool).name === params["name"]))
        throw { code: -32602, message: "no" };
      return call(params, request);
    },
    "resources/list": () => ({ resources: [] }),
    "prompts/list": () => ({ prompts: [] }),
    ...more,
  });
}

const tool = (more: object = {}): RawTool => ({
  name: "look",
  description: "Looks.",
  inputSchema: OBJECT,
  annotations: READ,
  ...more,
});
const ok = (more: object = {}) => ({ content: [{ type: "text", text: "fine" }], ...more });

async function checkRaw(definition: object, result: unknown | RawAnswer, calls?: Calls) {
  const answer: RawAnswer = typeof result === "function" ? (result as RawAnswer) : () => result;
  return check({ ...raw([tool(definition)], answer), protocol: "2025" } as McpConnectionOptions, calls);
}

const found = ({ checks }: CheckReport, id: CheckId) => checks.find((one) => one.id === id);
const statusOf = (report: CheckReport, id: CheckId) => found(report, id)?.status;
const failing = ({ checks }: CheckReport) =>
  checks.filter(({ status }) => status === "fail").map(({ id, subject }) => `${id} ${subject}`.trim());

describe("what a server gets wrong", () => {
  const output = {
    outputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
  };
  const envelope = {
    content: [
      { type: "text", text: "x" },
      { type: "text", text: "__ENVELOPE_V1__:%%%" },
    ],
  };
  let turn = 0;
  it.each<[string, CheckId, "fail" | "warn", object, unknown]>([
    [
      "structured content that misses the schema",
      "mcp.result.structured",
      "fail",
      output,
      ok({ structuredContent: { n: "1" } }),
    ],
    ["no structured content where it is declared", "mcp.result.structured", "fail", output, ok()],
    [
      "structured content without text",
      "mcp.result.text",
      "warn",
      output,
      { content: [], structuredContent: { n: 1 } },
    ],
    ["an error without text", "mcp.result.error", "fail", {}, { content: [], isError: true }],
    [
      "an error told as a success",
      "mcp.result.error",
      "warn",
      {},
      { content: [{ type: "text", text: "Error: no" }] },
    ],
    ["an envelope that cannot be read", "mcp.result.format", "fail", {}, envelope],
    ["no content", "mcp.result.shape", "fail", {}, {}],
    ["a block without its text", "mcp.result.shape", "fail", {}, { content: [{ type: "text" }] }],
    ["a block of an unknown type", "mcp.result.shape", "warn", {}, { content: [{ type: "hologram" }] }],
    [
      "types that change",
      "mcp.result.stable",
      "warn",
      {},
      () => ok({ structuredContent: { n: turn++ % 2 ? 1 : "1" } }),
    ],
    [
      "contradicting annotations",
      "mcp.tool.annotations",
      "fail",
      { annotations: { ...READ, destructiveHint: true } },
      ok(),
    ],
    ["hidden characters", "mcp.tool.hidden", "fail", { description: "Looks.\u200b\u{E0041}" }, ok()],
    ["a name of odd characters", "mcp.tool.name", "fail", { name: "look at/it" }, ok()],
    ["a name that is too long", "mcp.tool.name", "fail", { name: "x".repeat(129) }, ok()],
    ["no description", "mcp.tool.description", "warn", { description: " " }, ok()],
    [
      "an input schema of no object",
      "mcp.tool.input-schema",
      "fail",
      { inputSchema: { type: "string" } },
      ok(),
    ],
    [
      "an output schema that is none",
      "mcp.tool.output-schema",
      "fail",
      { outputSchema: { type: "nothing" } },
      ok(),
    ],
    [
      "arguments that are not looked at",
      "mcp.manners.invalid-arguments",
      "fail",
      { inputSchema: { ...OBJECT, required: ["a"], properties: { a: { type: "string" } } } },
      ok(),
    ],
    ["huge definitions", "mcp.list.size", "warn", { description: "word ".repeat(12_000) }, ok()],
  ])("notices %s", async (_, id, wanted, definition, result) => {
    const report = await checkRaw(definition, result);
    expect([statusOf(report, id), found(report, id)?.fix === undefined]).toEqual([wanted, false]);
  });

  it("says of an error told as a success what to do about that", async () => {
    const report = await checkRaw({}, { content: [{ type: "text", text: "Error: no" }] });
    expect(found(report, "mcp.result.error")?.fix).toContain("isError: true");
  });

  it("says of a tool that answers equal calls with errors now and then what it does", async () => {
    let calls = 0;
    const report = await checkRaw({}, () => ok(calls++ % 2 ? { isError: true } : {}));
    expect(found(report, "mcp.result.stable")).toMatchObject({
      status: "warn",
      message: "Equal calls sometimes succeed and sometimes report an error.",
    });
  });

  it("passes a name of 128 characters", async () => {
    expect(statusOf(await checkRaw({ name: "x".repeat(128) }, ok()), "mcp.tool.name")).toBe("pass");
  });

  it("notices definitions that change between listings, and names that two tools have", async () => {
    let listed = 0;
    const server = raw(
      () => [tool({ description: `Version ${++listed}.` }), tool({ name: "b" }), tool({ name: "b" })],
      () => ok(),
    );
    const report = await check({ ...server, protocol: "2025" } as McpConnectionOptions);
    expect(failing(report)).toEqual(expect.arrayContaining(["mcp.list.stable look", "mcp.list.unique b"]));
  });

  it("notices bad manners: unknown tools taken, unknown methods answered, no ping", async () => {
    const server = createRawMcpServer({
      "tools/list": () => ({ tools: [tool()] }),
      "tools/call": () => ok(),
      "waybill/check-no-such-method": () => ({}),
      "resources/list": () => ({ resources: [{ uri: "a:b", name: "b" }, { name: "no uri" }] }),
      "resources/read": () => ({ contents: [{ uri: "a:b" }] }),
      "prompts/list": () => ({ prompts: [{ name: "p" }] }),
      "prompts/get": () => ({ messages: "none" }),
    });
    const report = await check({ ...server, protocol: "2025" } as McpConnectionOptions);
    expect(failing(report).sort()).toEqual([
      "mcp.manners.ping",
      "mcp.manners.unknown-method",
      "mcp.manners.unknown-tool",
      "mcp.prompt.get p",
      "mcp.resource.list",
      "mcp.resource.read a:b",
    ]);
  });
});

describe("which tools are called", () => {
  const both = [
    tool(),
    tool({ name: "change", annotations: {} }),
    tool({ name: "wreck", annotations: { ...READ, destructiveHint: true } }),
  ];
  const calledOf = async (calls: Calls) => {
    const server = raw(both, () => ok());
    await check({ ...server, protocol: "2025" } as McpConnectionOptions, calls);
    const names = server.received
      .filter(({ method }) => method === "tools/call")
      .map(({ params }) => params["name"]);
    return [...new Set(names)].filter((name) => String(name).startsWith("waybill-check") === false);
  };

  it("are those alone that say that they only read, unless others are named", async () => {
    expect(await calledOf({})).toEqual(["look"]);
    expect(await calledOf({ named: new Set(["change"]) })).toEqual(["look", "change"]);
    expect(await calledOf({ all: true })).toEqual(["look", "change", "wreck"]);
  });

  it("get the input that is given for them, three times", async () => {
    const server = raw([tool()], () => ok());
    await check({ ...server, protocol: "2025" } as McpConnectionOptions, {
      inputs: new Map([["look", { at: "this" }]]),
    });
    const inputs = server.received
      .filter(({ params }) => params["name"] === "look")
      .map(({ params }) => params["arguments"]);
    expect(inputs.slice(0, 3)).toEqual([{ at: "this" }, { at: "this" }, { at: "this" }]);
  });

  it("must be listed", async () => {
    const server = raw([tool()], () => ok());
    await expect(
      check({ ...server, protocol: "2025" } as McpConnectionOptions, { named: new Set(["lok"]) }),
    ).rejects.toThrow('There is no tool "lok"; did you mean "look"?');
  });
});
