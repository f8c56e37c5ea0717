import { describe, expect, it } from "vitest";
import * as z from "zod";
import {
  type CallToolResult,
  createMemoryStore,
  createToolCaller,
  decodeToolResult,
  previewToolPayload,
  type ResultStore,
  toolOutputSchema,
} from "../src/formats/index.ts";
import { type JsonSchemaObject, OperationRegistry, Type, toolError } from "../src/index.ts";
import { query } from "./make-operation.ts";
import { expectArrived, expectReadable, FALSY, ROWS, type Row } from "./sdk-interop-rows.ts";
import {
  callTool,
  linksOf,
  PAIRS,
  type Replies,
  readText,
  reply,
  type ServerName,
  toTools,
  withPeers,
} from "./sdk-peers.ts";

const MATRIX = PAIRS.flatMap((pair) =>
  Object.entries(ROWS).map(([library, row]) => ({ ...pair, library, row })),
);

/** Every kind of result of a row. */
async function repliesOf({ schema, good, bad, big }: Row, store: ResultStore): Promise<Replies> {
  const meta = { status: "ok", summary: "Found" } as const;
  return new Map([
    ["success", reply("ok", good)],
    ["error-misfit", reply("error", bad)],
    ["error-code", reply("error", { errorCode: "NOT_FOUND" })],
    ["error-null", reply("error", null)],
    ["truncated", await previewToolPayload({ meta, data: big, schema, store })],
  ]);
}

/** A success that misses its schema gets nowhere: clients throw, and `McpServer` does not even send it. */
async function expectRefused(server: ServerName, answer: Promise<unknown>): Promise<void> {
  if (server !== "the McpServer of SDK 2") {
    return expect(answer).rejects.toThrow("does not match the tool's output schema");
  }
  const text = expect.stringContaining("Output validation error");
  expect(await answer).toEqual({ isError: true, content: [{ type: "text", text }] });
}

/** A result that claims other data. */
function withData(result: CallToolResult, data: unknown): CallToolResult {
  return { ...result, structuredContent: { ...(result.structuredContent as object), data } };
}

const RISK = { outputSchema: Type.Object({ risk: Type.String() }) };

const REGISTRY = new OperationRegistry([
  query("code.scan", () => ({ risk: "high" }), RISK),
  query("code.misfit", () => ({ risk: "high" }), RISK),
  query("code.zero", () => 0, { outputSchema: Type.Integer() }),
  query("code.any", () => null),
  query("code.broken", () => Promise.reject(new Error("no")), { outputSchema: Type.Object({}) }),
  query("code.lost", () => toolError({ line: 3 }, { code: "NOT_FOUND", message: "no" }), RISK),
  query("code.audit", () => 1, { tier: "enterprise", outputSchema: Type.Integer() }),
]);

/** What the operations answer: whether it is an error, its code, and the data. */
const OUTCOMES: readonly (readonly [id: string, isError: boolean, code: string, data: unknown])[] = [
  ["code.scan", false, "", { risk: "high" }],
  ["code.zero", false, "", 0],
  ["code.any", false, "", null],
  ["code.broken", true, "internal_error", null],
  ["code.lost", true, "not_found", { line: 3 }],
  ["code.audit", true, "upgrade_required", null],
];

describe.each(MATRIX)("$server, $client, $library", ({ server, client, row }) => {
  it("TR-4 TR-6 X-2 carries successes, errors, previews and falsy data whole", async () => {
    const store = createMemoryStore();
    const replies = await repliesOf(row, store);
    const falsy = new Map(FALSY.map((data) => [`falsy-${JSON.stringify(data).length}`, reply("ok", data)]));
    expect(replies.get("truncated")?.structuredContent.meta.truncated).toBe(true);
    const tools = [...toTools(replies, row.schema), ...toTools(falsy, row.falsy)];
    await withPeers(server, client, { tools, store }, async (peer) => {
      const listed = (await peer.listTools()).tools;
      const advertised = tools.map(({ name, outputSchema }) => ({ name, outputSchema }));
      expect(listed).toMatchObject(JSON.parse(JSON.stringify(advertised)));
      for (const [name, sent] of [...replies, ...falsy]) expectArrived(await callTool(peer, name), sent);
    });
  });

  it("TR-4 refuses a success whose data misses its schema", async () => {
    const misfit = toTools(new Map([["misfit", reply("ok", row.bad)]]), row.schema);
    const falsy = toTools(new Map([["falsy-misfit", reply("ok", 1)]]), row.falsy);
    const served = { tools: [...misfit, ...falsy], store: createMemoryStore() };
    await withPeers(server, client, served, async (peer) => {
      await peer.listTools();
      for (const { name } of served.tools) await expectRefused(server, callTool(peer, name));
    });
  });
});

describe.each(PAIRS)("$server, $client", ({ server, client }) => {
  it("CS-11 X-2 carries tiered envelopes of every outcome, and refuses data that misses its schema", async () => {
    const callOperation = createToolCaller(REGISTRY, { format: "tiered-envelope" });
    const sent = new Map<string, CallToolResult>();
    const tools = REGISTRY.list().map((operation) => ({
      name: operation.id,
      outputSchema: toolOutputSchema(operation, "tiered-envelope") as JsonSchemaObject,
      call: async () => {
        const result = await callOperation(operation);
        sent.set(operation.id, result);
        return operation.id === "code.misfit" ? withData(result, { risk: 1 }) : result;
      },
    }));
    await withPeers(server, client, { tools, store: createMemoryStore() }, async (peer) => {
      expect((await peer.listTools()).tools).toHaveLength(OUTCOMES.length + 1);
      for (const [name, isError, code, data] of OUTCOMES) {
        const arrived = (await callTool(peer, name)) as CallToolResult;
        expect(arrived.structuredContent).toStrictEqual(sent.get(name)?.structuredContent);
        const error = isError ? { error_code: code } : null;
        expect(arrived.structuredContent).toMatchObject({ tool_id: name, error });
        expect(JSON.parse((arrived.content[0] as { text: string }).text)).toEqual(arrived.structuredContent);
        expect(decodeToolResult(arrived)).toMatchObject({ format: "tiered-envelope", isError, data });
      }
      await expectRefused(server, callTool(peer, "code.misfit"));
    });
  });

  it("TR-6 reads the link of a truncated result, whole and in ranges", async () => {
    const store = createMemoryStore();
    const row = ROWS["zod"] as Row;
    const tools = toTools(await repliesOf(row, store), row.schema);
    await withPeers(server, client, { tools, store }, async (peer) => {
      await peer.listTools();
      const [uri = ""] = linksOf(await callTool(peer, "truncated"));
      await expectReadable(peer, uri, row.big);
      expect(await readText(peer, uri)).toBe(store.read(uri)?.text);
      await expect(peer.readResource({ uri: `waybill://results/${"0".repeat(32)}` })).rejects.toThrow();
      await expect(peer.readResource({ uri: `${uri}?offset=-1` })).rejects.toThrow();
    });
  });
});

it("TR-4 lets McpServer refuse what only the library of the schema can tell", async () => {
  const even = z.number().refine((count) => count % 2 === 0);
  const replies = new Map([
    ["odd", reply("ok", 3)],
    ["odd-error", reply("error", 3)],
  ]);
  const served = { tools: toTools(replies, even), store: createMemoryStore() };
  await withPeers("the McpServer of SDK 2", "a client of SDK 2", served, async (peer) => {
    await peer.listTools();
    expectArrived(await callTool(peer, "odd-error"), reply("error", 3));
    await expectRefused("the McpServer of SDK 2", callTool(peer, "odd"));
  });
});
