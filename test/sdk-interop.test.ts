import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import {
  type CallToolResult,
  composeToolPayload,
  createMemoryStore,
  createToolCaller,
  createToolResponseEnvelopeSchema,
  decodeToolResult,
  previewToolPayload,
  type ResultStore,
  type ToolPayload,
  type ToolResponseStatus,
  toolOutputSchema,
} from "../src/formats/index.ts";
import {
  type AnyOperation,
  type AnySchema,
  type JsonSchemaObject,
  OperationRegistry,
  Type,
  toolError,
} from "../src/index.ts";
import { query } from "./make-operation.ts";
import {
  CLIENTS,
  type ClientName,
  callTool,
  type PeerClient,
  SERVERS,
  type ServedTool,
  type ServerName,
  withChild,
  withPeers,
} from "./sdk-peers.ts";

/** A schema of data, with values that fit, do not fit, and fit but are too large to send. */
interface Row {
  readonly library: string;
  readonly schema: AnySchema;
  /** Allows 0, "", false and null. */
  readonly falsy: AnySchema;
  readonly good: unknown;
  readonly bad: unknown;
  readonly big: unknown;
}

const LINES = Array.from({ length: 400 }, (_, index) => `line ${index} 😀`);
const RECORD = {
  good: { hits: 3, lines: ["a"] },
  bad: { hits: "3", lines: [] },
  big: { hits: 400, lines: LINES },
};
const TREE = {
  good: { name: "a", id: 1, children: [{ name: "b", children: [{ name: "c" }] }] },
  bad: { name: "a", children: [{ name: "b", children: [{ id: 7 }] }] },
  big: { name: "a", children: LINES.map((name) => ({ name, children: [{ name }] })) },
};
const FALSY = [0, "", false, null];

const zodTree = z.object({
  name: z.string(),
  id: z.number().optional(),
  get children() {
    return z.array(zodTree).optional();
  },
});

const ROWS: readonly Row[] = [
  {
    library: "TypeBox",
    schema: Type.Object({ hits: Type.Integer(), lines: Type.Array(Type.String()) }),
    falsy: Type.Union([Type.Literal(0), Type.Literal(""), Type.Literal(false), Type.Null()]),
    ...RECORD,
  },
  {
    library: "zod",
    schema: z.object({ hits: z.number().int(), lines: z.array(z.string()) }),
    falsy: z.union([z.literal(0), z.literal(""), z.literal(false), z.null()]),
    ...RECORD,
  },
  { library: "recursive zod", schema: zodTree, falsy: z.literal([0, "", false, null]), ...TREE },
  {
    library: "valibot",
    schema: toStandardJsonSchema(v.object({ hits: v.number(), lines: v.array(v.string()) })),
    falsy: toStandardJsonSchema(v.union([v.literal(0), v.literal(""), v.literal(false), v.null()])),
    ...RECORD,
  },
  {
    library: "arktype",
    schema: type({ hits: "number", lines: "string[]" }),
    falsy: type("0 | '' | false | null"),
    ...RECORD,
  },
  {
    library: "JSON Schema with references",
    schema: {
      type: "object",
      properties: { hits: { $ref: "#/$defs/count" }, lines: { $ref: "#/$defs/lines" } },
      required: ["hits", "lines"],
      $defs: {
        count: { type: "integer" },
        lines: { type: "array", items: { $ref: "#/$defs/line" } },
        line: { type: "string" },
      },
    },
    falsy: { $ref: "#/$defs/falsy", $defs: { falsy: { enum: FALSY } } },
    ...RECORD,
  },
  {
    library: "recursive JSON Schema",
    schema: {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: {
        name: { type: "string" },
        id: { $ref: "#/definitions/id" },
        children: { type: "array", items: { $ref: "#" } },
      },
      required: ["name"],
      definitions: { id: { type: "integer" } },
    },
    falsy: { enum: FALSY },
    ...TREE,
  },
  {
    library: "JSON Schema with an id",
    schema: {
      $id: "https://example.com/tree",
      type: "object",
      properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#" } } },
      required: ["name"],
    },
    falsy: { $id: "https://example.com/falsy", enum: FALSY },
    ...TREE,
  },
];

const serverNames = Object.keys(SERVERS) as ServerName[];
const clientNames = Object.keys(CLIENTS) as ClientName[];
const pairs = serverNames.flatMap((server) => clientNames.map((client) => ({ server, client })));
const matrix = pairs.flatMap((pair) => ROWS.map((row) => ({ ...pair, library: row.library, row })));

function reply(status: ToolResponseStatus, data: unknown): ToolPayload {
  return composeToolPayload({ meta: { status, summary: "Looked", details: ["Once."] }, data });
}

/** Every kind of result, by the name of the tool that gives it. */
async function repliesOf(
  { schema, good, bad, big }: Row,
  store: ResultStore,
): Promise<Map<string, ToolPayload>> {
  const meta = { status: "ok", summary: "Found" } as const;
  return new Map([
    ["success", reply("ok", good)],
    ["error-misfit", reply("error", bad)],
    ["error-code", reply("error", { errorCode: "NOT_FOUND" })],
    ["error-null", reply("error", null)],
    ["truncated", await previewToolPayload({ meta, data: big, schema, store })],
  ]);
}

function toTools(replies: ReadonlyMap<string, ToolPayload>, schema: AnySchema): ServedTool[] {
  const outputSchema = createToolResponseEnvelopeSchema(schema);
  return [...replies].map(([name, sent]) => ({ name, outputSchema, call: () => sent }));
}

/** What arrived is what was sent, and is understood. */
function expectArrived(arrived: unknown, sent: ToolPayload): void {
  const { structuredContent, content, isError } = sent;
  expect(arrived).toMatchObject({ content, isError });
  expect((arrived as CallToolResult).structuredContent).toStrictEqual(structuredContent);
  const decoded = decodeToolResult(arrived);
  expect(decoded).toMatchObject({ format: "status-envelope", isError, obtained: "structured-content" });
  expect(decoded.data).toStrictEqual(structuredContent.data);
}

/** A success that misses its schema gets nowhere: clients throw, and `McpServer` does not even send it. */
async function expectRefused(server: ServerName, answer: Promise<unknown>): Promise<void> {
  if (server !== "the McpServer of SDK 2") {
    await expect(answer).rejects.toThrow("does not match the tool's output schema");
    return;
  }
  const result = (await answer) as CallToolResult;
  expect(result).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("Output validation error") }],
  });
  expect(result).not.toHaveProperty("structuredContent");
}

/** The URI of the one link of a result. */
function linkOf(result: unknown): string {
  const links = (result as CallToolResult).content.filter((block) => block.type === "resource_link");
  expect(links).toHaveLength(1);
  return links[0]?.uri as string;
}

async function readText(client: PeerClient, uri: string): Promise<string> {
  const { contents } = await client.readResource({ uri });
  expect(contents).toEqual([{ uri, mimeType: "application/json", text: expect.any(String) }]);
  return (contents[0] as unknown as { text: string }).text;
}

/** The whole can be read at once and part by part, and holds the data that was cut. */
async function expectReadable(client: PeerClient, uri: string, data: unknown): Promise<void> {
  const whole = await readText(client, uri);
  expect(JSON.parse(whole)).toMatchObject({ meta: { summary: "Found" }, data });
  const parts: string[] = [];
  for (let offset = 0; offset < whole.length; offset += parts.at(-1)?.length ?? whole.length) {
    parts.push(await readText(client, `${uri}?offset=${offset}&length=999`));
  }
  expect(parts.length).toBeGreaterThan(2);
  expect(parts.join("")).toBe(whole);
}

const REGISTRY = new OperationRegistry([
  query("code.scan", () => ({ risk: "high" }), { outputSchema: Type.Object({ risk: Type.String() }) }),
  query("code.zero", () => 0, { outputSchema: Type.Integer() }),
  query("code.any", () => null),
  query("code.broken", () => Promise.reject(new Error("no")), { outputSchema: Type.Object({}) }),
  query("code.lost", () => toolError({ line: 3 }, { code: "NOT_FOUND", message: "no" }), {
    outputSchema: Type.Object({ risk: Type.String() }),
  }),
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

describe.each(matrix)("$server, $client, $library", ({ server, client, row }) => {
  it("TR-4 TR-6 X-2 carries successes, errors and previews whole", async () => {
    const store = createMemoryStore();
    const replies = await repliesOf(row, store);
    expect(replies.get("truncated")?.structuredContent.meta.truncated).toBe(true);
    await withPeers(server, client, { tools: toTools(replies, row.schema), store }, async (peer) => {
      const { tools } = await peer.listTools();
      const advertised = JSON.parse(JSON.stringify(createToolResponseEnvelopeSchema(row.schema)));
      for (const { outputSchema } of tools) expect(outputSchema).toMatchObject(advertised);
      for (const [name, sent] of replies) expectArrived(await callTool(peer, name), sent);
    });
  });

  it("TR-4 X-2 carries falsy data", async () => {
    const replies = new Map(FALSY.map((data) => [`falsy-${JSON.stringify(data).length}`, reply("ok", data)]));
    const served = { tools: toTools(replies, row.falsy), store: createMemoryStore() };
    await withPeers(server, client, served, async (peer) => {
      await peer.listTools();
      for (const [name, sent] of replies) expectArrived(await callTool(peer, name), sent);
    });
  });

  it("TR-4 refuses a success whose data misses its schema", async () => {
    const store = createMemoryStore();
    const misfit = new Map([["misfit", reply("ok", row.bad)]]);
    const falsy = new Map([["falsy-misfit", reply("ok", 1)]]);
    const tools = [...toTools(misfit, row.schema), ...toTools(falsy, row.falsy)];
    await withPeers(server, client, { tools, store }, async (peer) => {
      await peer.listTools();
      for (const { name } of tools) await expectRefused(server, callTool(peer, name));
    });
  });
});

describe.each(pairs)("$server, $client", ({ server, client }) => {
  it("CS-11 X-2 carries tiered envelopes of every outcome, and refuses data that misses its schema", async () => {
    const call = createToolCaller(REGISTRY, { format: "tiered-envelope" });
    const sent = new Map<string, CallToolResult>();
    for (const { id } of REGISTRY.list()) sent.set(id, await call(id));
    const scan = sent.get("code.scan") as CallToolResult;
    const misfit = {
      ...scan,
      structuredContent: { ...(scan.structuredContent as object), data: { risk: 1 } },
    };
    sent.set("misfit", misfit);
    const tools = [...sent].map(([name, result]) => {
      const operation = REGISTRY.get(name) ?? REGISTRY.get("code.scan");
      const outputSchema = toolOutputSchema(operation as AnyOperation, "tiered-envelope") as JsonSchemaObject;
      return { name, outputSchema, call: () => result };
    });
    await withPeers(server, client, { tools, store: createMemoryStore() }, async (peer) => {
      expect((await peer.listTools()).tools).toHaveLength(OUTCOMES.length + 1);
      for (const [name, isError, code, data] of OUTCOMES) {
        const arrived = (await callTool(peer, name)) as CallToolResult;
        expect(arrived.structuredContent).toStrictEqual(sent.get(name)?.structuredContent);
        expect(arrived.structuredContent).toMatchObject({
          tool_id: name,
          error: isError ? { error_code: code } : null,
        });
        expect(JSON.parse((arrived.content[0] as { text: string }).text)).toEqual(arrived.structuredContent);
        expect(decodeToolResult(arrived)).toMatchObject({ format: "tiered-envelope", isError, data });
      }
      await expectRefused(server, callTool(peer, "misfit"));
    });
  });

  it("TR-6 reads the link of a truncated result, whole and in ranges", async () => {
    const store = createMemoryStore();
    const [row] = ROWS as [Row];
    const tools = toTools(await repliesOf(row, store), row.schema);
    await withPeers(server, client, { tools, store }, async (peer) => {
      await peer.listTools();
      const uri = linkOf(await callTool(peer, "truncated"));
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
    ["even", reply("ok", 2)],
    ["odd", reply("ok", 3)],
    ["odd-error", reply("error", 3)],
  ]);
  const served = { tools: toTools(replies, even), store: createMemoryStore() };
  await withPeers("the McpServer of SDK 2", "a client of SDK 2", served, async (peer) => {
    await peer.listTools();
    expectArrived(await callTool(peer, "even"), reply("ok", 2));
    expectArrived(await callTool(peer, "odd-error"), reply("error", 3));
    await expectRefused("the McpServer of SDK 2", callTool(peer, "odd"));
  });
});

it.each([
  ["SDK 1", "a client of SDK 1"],
  ["SDK 1", "a client of SDK 2"],
  ["SDK 2", "a client of SDK 1"],
  ["SDK 2", "a client of SDK 2"],
  ["SDK 2", "a client of the 2026 revision"],
] as const)("TR-4 TR-6 X-2 crosses processes, from a server of %s to %s", async (server, client) => {
  const { schema, good, bad, big } = ROWS.find(({ library }) => library === "recursive JSON Schema") as Row;
  const sent = { success: reply("ok", good), misfit: reply("error", bad), none: reply("error", null) };
  const plan = { schema: schema as JsonSchemaObject, results: { ...sent, refused: reply("ok", bad) }, big };
  const pid = await withChild(server, client, plan, async (peer) => {
    expect((await peer.listTools()).tools).toHaveLength(5);
    for (const [name, payload] of Object.entries(sent)) expectArrived(await callTool(peer, name), payload);
    await expect(callTool(peer, "refused")).rejects.toThrow("does not match the tool's output schema");
    const truncated = (await callTool(peer, "truncated")) as ToolPayload;
    expect(truncated.structuredContent.meta.truncated).toBe(true);
    expect(decodeToolResult(truncated)).toMatchObject({
      format: "status-envelope",
      isError: false,
      data: { name: "a" },
    });
    await expectReadable(peer, linkOf(truncated), big);
  });
  expect(() => process.kill(pid as number, 0)).toThrow("ESRCH");
});
