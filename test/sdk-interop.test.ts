import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import {
  type CallToolResult,
  createMemoryStore,
  createToolCaller,
  decodeToolResult,
  previewToolPayload,
  type ResultStore,
  type ToolPayload,
  toolOutputSchema,
} from "../src/formats/index.ts";
import { type AnySchema, type JsonSchemaObject, OperationRegistry, Type, toolError } from "../src/index.ts";
import { query } from "./make-operation.ts";
import {
  callTool,
  linksOf,
  PAIRS,
  type PeerClient,
  type Replies,
  readParts,
  readText,
  reply,
  type ServerName,
  toTools,
  withChild,
  withPeers,
} from "./sdk-peers.ts";

/** A schema of data, with values that fit, do not fit, and fit but are too large to send. */
interface Row {
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
const TEXT = { type: "string" };
const TREES = { type: "array", items: { $ref: "#" } };

const zodTree = z.object({
  name: z.string(),
  id: z.number().optional(),
  get children() {
    return z.array(zodTree).optional();
  },
});

const ROWS: Readonly<Record<string, Row>> = {
  TypeBox: {
    schema: Type.Object({ hits: Type.Integer(), lines: Type.Array(Type.String()) }),
    falsy: Type.Union([Type.Literal(0), Type.Literal(""), Type.Literal(false), Type.Null()]),
    ...RECORD,
  },
  zod: {
    schema: z.object({ hits: z.number().int(), lines: z.array(z.string()) }),
    falsy: z.union([z.literal(0), z.literal(""), z.literal(false), z.null()]),
    ...RECORD,
  },
  "recursive zod": { schema: zodTree, falsy: z.literal([0, "", false, null]), ...TREE },
  valibot: {
    schema: toStandardJsonSchema(v.object({ hits: v.number(), lines: v.array(v.string()) })),
    falsy: toStandardJsonSchema(v.union([v.literal(0), v.literal(""), v.literal(false), v.null()])),
    ...RECORD,
  },
  arktype: {
    schema: type({ hits: "number", lines: "string[]" }),
    falsy: type("0 | '' | false | null"),
    ...RECORD,
  },
  "JSON Schema with references": {
    schema: {
      type: "object",
      properties: { hits: { $ref: "#/$defs/n" }, lines: { $ref: "#/$defs/lines" } },
      required: ["hits", "lines"],
      $defs: {
        n: { type: "integer" },
        lines: { type: "array", items: { $ref: "#/$defs/line" } },
        line: TEXT,
      },
    },
    falsy: { $ref: "#/$defs/falsy", $defs: { falsy: { enum: FALSY } } },
    ...RECORD,
  },
  "recursive JSON Schema": {
    schema: {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { name: TEXT, id: { $ref: "#/definitions/id" }, children: TREES },
      required: ["name"],
      definitions: { id: { type: "integer" } },
    },
    falsy: { enum: FALSY },
    ...TREE,
  },
  "JSON Schema with an id": {
    schema: {
      $id: "https://example.com/tree",
      type: "object",
      properties: { name: TEXT, children: TREES },
      required: ["name"],
    },
    falsy: { $id: "https://example.com/falsy", enum: FALSY },
    ...TREE,
  },
};

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
    return expect(answer).rejects.toThrow("does not match the tool's output schema");
  }
  const text = expect.stringContaining("Output validation error");
  expect(await answer).toEqual({ isError: true, content: [{ type: "text", text }] });
}

/** The whole can be read at once and part by part, and holds the data that was cut. */
async function expectReadable(client: PeerClient, uri: string, data: unknown): Promise<void> {
  const whole = await readText(client, uri);
  expect(JSON.parse(whole)).toMatchObject({ meta: { summary: "Found" }, data });
  const parts = await readParts(client, uri, whole.length);
  expect(parts.length).toBeGreaterThan(2);
  expect(parts.join("")).toBe(whole);
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

it.each([
  ["SDK 1", "a client of SDK 1"],
  ["SDK 1", "a client of SDK 2"],
  ["SDK 2", "a client of SDK 1"],
  ["SDK 2", "a client of SDK 2"],
  ["SDK 2", "a client of the 2026 revision"],
] as const)("TR-4 TR-6 X-2 crosses processes, from a server of %s to %s", async (server, client) => {
  const { schema, good, bad, big } = ROWS["recursive JSON Schema"] as Row;
  const sent = { success: reply("ok", good), misfit: reply("error", bad), none: reply("error", null) };
  const plan = { schema: schema as JsonSchemaObject, results: { ...sent, refused: reply("ok", bad) }, big };
  const pid = await withChild(server, client, plan, async (peer) => {
    expect((await peer.listTools()).tools).toHaveLength(5);
    for (const [name, payload] of Object.entries(sent)) expectArrived(await callTool(peer, name), payload);
    await expect(callTool(peer, "refused")).rejects.toThrow("does not match the tool's output schema");
    const truncated = await callTool(peer, "truncated");
    expect(truncated).toMatchObject({
      structuredContent: { meta: { truncated: true }, data: { name: "a" } },
    });
    expect(decodeToolResult(truncated)).toMatchObject({ format: "status-envelope", isError: false });
    await expectReadable(peer, linksOf(truncated)[0] ?? "", big);
  });
  expect(() => process.kill(pid as number, 0)).toThrow("ESRCH");
});
