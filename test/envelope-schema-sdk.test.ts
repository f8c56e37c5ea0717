import { Client } from "@modelcontextprotocol/client";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { McpServer as FirstMcpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { AjvJsonSchemaValidator as FirstAjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";
import { InMemoryTransport, McpServer } from "@modelcontextprotocol/server";
import { type } from "arktype";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import * as zod3 from "zod/v3";
import {
  composeToolPayload,
  createTieredEnvelopeSchema,
  createToolResponseEnvelopeSchema,
  decodeToolResult,
  tieredEnvelope,
} from "../src/formats/index.ts";
import { type AnySchema, compileSchema, Type } from "../src/index.ts";
import { HARDENED } from "./run-node.ts";

const INFO = { name: "peer", version: "1.0.0" };
const INTERPRETING = { jsonSchemaValidator: new CfWorkerJsonSchemaValidator() };

const Tree = z.object({
  name: z.string(),
  get children(): z.ZodOptional<z.ZodArray<typeof Tree>> {
    return z.array(Tree).optional();
  },
});

/** The validators of clients; those that generate code are left out where that is forbidden. */
const VALIDATORS = [
  ...(HARDENED ? [] : [new FirstAjvJsonSchemaValidator(), new AjvJsonSchemaValidator()]),
  new CfWorkerJsonSchemaValidator(),
];

/** A schema for the data of a tool, data that fits, and data that does not, with what the refusal says. */
interface DataCase {
  readonly schema: AnySchema;
  readonly good: unknown;
  readonly bad: unknown;
  readonly says: RegExp;
}

const CASES: Readonly<Record<string, DataCase>> = {
  "a zod object": {
    schema: z.object({ hits: z.number().int(), rows: z.array(z.object({ id: z.string() })).optional() }),
    good: { hits: 3 },
    bad: { hits: 3, rows: [{ id: "a" }, { id: 7 }] },
    says: /expected string.*data\.rows\[1\]\.id|data\.rows\.1\.id.*expected string/s,
  },
  "a zod refinement with a message": {
    schema: z.object({ hits: z.number().refine((n) => n < 10, "Too many hits") }),
    good: { hits: 3 },
    bad: { hits: 11 },
    says: /Too many hits at data\.hits|data\.hits: Too many hits/,
  },
  "an asynchronous zod refinement": {
    schema: z.object({ hits: z.number().refine(async (n) => n < 10, "Too many hits") }),
    good: { hits: 3 },
    bad: { hits: 11 },
    says: /Too many hits at data\.hits|data\.hits: Too many hits/,
  },
  "a recursive zod object": {
    schema: Tree,
    good: { name: "a", children: [{ name: "b" }] },
    bad: { name: "a", children: [{ name: "b", children: [{}] }] },
    says: /data\.children\[0\]\.children\[0\]\.name|data\.children\.0\.children\.0\.name/,
  },
  "what zod/mini writes": {
    schema: mini.toJSONSchema(mini.object({ hits: mini.number().check(mini.positive()) })) as AnySchema,
    good: { hits: 3 },
    bad: { hits: -1 },
    says: /data\.hits/,
  },
  TypeBox: {
    schema: Type.Object({ hits: Type.Integer() }),
    good: { hits: 3 },
    bad: { hits: "3" },
    says: /must be integer; it is (a )?string.*data\.hits|data\.hits: must be integer/,
  },
  arktype: {
    schema: type({ hits: "number" }),
    good: { hits: 3 },
    bad: { hits: "3" },
    says: /data\.hits|hits must be a number/,
  },
  "a recursive JSON Schema": {
    schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#" } } },
      required: ["name"],
    },
    good: { name: "a", children: [{ name: "b" }] },
    bad: { name: "a", children: [{ name: "b" }, {}] },
    says: /data\.children\[1\]|data\.children\.1/,
  },
};

/** An envelope's schema, and replies in that envelope. */
interface EnvelopeCase {
  readonly declare: (schema: AnySchema) => ReturnType<typeof createToolResponseEnvelopeSchema>;
  readonly ok: (data: unknown) => Reply;
  readonly failed: (data: unknown) => Reply;
}

interface Reply {
  readonly content: { readonly type: "text"; readonly text: string }[];
  readonly structuredContent: Record<string, unknown>;
  readonly isError: boolean;
}

const status = (word: "ok" | "error", data: unknown) =>
  composeToolPayload({ meta: { status: word, summary: "Looked" }, data }) as unknown as Reply;

const tiered = (error: string | undefined, data: unknown): Reply => {
  const envelope = tieredEnvelope({
    tier: "pro",
    tool_version: "1.0.0",
    tool_id: "look",
    request_id: "r",
    capabilities: [],
    duration_ms: 1,
    error: error === undefined ? null : { error, error_code: "not_found", error_details: null },
    upgrade_hints: [],
    data,
  } as never) as unknown as Record<string, unknown>;
  return {
    content: [{ type: "text", text: JSON.stringify(envelope) }],
    structuredContent: { ...envelope },
    isError: error !== undefined,
  };
};

const ENVELOPES: Readonly<Record<string, EnvelopeCase>> = {
  status: {
    declare: (schema) => createToolResponseEnvelopeSchema(schema),
    ok: (data) => status("ok", data),
    failed: (data) => status("error", data),
  },
  tiered: {
    declare: (schema) => createTieredEnvelopeSchema(schema) as never,
    ok: (data) => tiered(undefined, data),
    failed: (data) => tiered("Not there", data),
  },
};

interface Peer {
  connect(transport: never): Promise<void>;
  close(): Promise<void>;
}

type Tools = Readonly<Record<string, Reply>>;

const SERVERS: Readonly<Record<string, (schema: never, tools: Tools) => Peer>> = {
  "an McpServer of SDK 1": (outputSchema, tools) => {
    const server = new FirstMcpServer(INFO);
    for (const [name, reply] of Object.entries(tools)) {
      server.registerTool(name, { outputSchema }, () => ({ ...reply }));
    }
    return server as Peer;
  },
  "an McpServer of SDK 1 given the shape": (outputSchema, tools) => {
    const server = new FirstMcpServer(INFO);
    const { shape } = outputSchema as { readonly shape: never };
    for (const [name, reply] of Object.entries(tools)) {
      server.registerTool(name, { outputSchema: shape }, () => ({ ...reply }));
    }
    return server as Peer;
  },
  "an McpServer of SDK 2": (outputSchema, tools) => {
    const server = new McpServer(INFO);
    for (const [name, reply] of Object.entries(tools)) {
      server.registerTool(name, { outputSchema }, () => ({ ...reply }));
    }
    return server as Peer;
  },
};

interface PeerClient extends Peer {
  listTools(): Promise<{ tools: { name: string; outputSchema?: unknown }[] }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
}

const CLIENTS: Readonly<Record<string, () => PeerClient>> = {
  "SDK 1": () => new FirstClient(INFO, HARDENED ? INTERPRETING : {}) as PeerClient,
  "SDK 2": () => new Client(INFO, HARDENED ? INTERPRETING : {}) as unknown as PeerClient,
};

const ROWS = Object.keys(SERVERS).flatMap((server) =>
  Object.keys(CLIENTS).flatMap((client) =>
    Object.keys(ENVELOPES).flatMap((envelope) =>
      Object.keys(CASES).map((data) => ({ server, client, envelope, data })),
    ),
  ),
);

describe("schemas of envelopes on the MCP SDKs", () => {
  it.each(ROWS)(
    "TR-4 X-7 $server declares the $envelope envelope of $data to a client of $client",
    async (row) => {
      const { schema, good, bad, says } = CASES[row.data] as DataCase;
      const { declare, ok, failed } = ENVELOPES[row.envelope] as EnvelopeCase;
      const outputSchema = declare(schema);
      const replies = { good: ok(good), none: failed(null), other: failed({ errorCode: "E" }), bad: ok(bad) };
      const server = SERVERS[row.server]?.(outputSchema as never, replies) as Peer;
      const client = CLIENTS[row.client]?.() as PeerClient;
      const [here, there] = InMemoryTransport.createLinkedPair();
      try {
        await server.connect(there as never);
        await client.connect(here as never);
        const { tools } = await client.listTools();
        for (const tool of tools) expect(tool.outputSchema).toEqual(JSON.parse(JSON.stringify(outputSchema)));
        for (const name of ["good", "none", "other"] as const) {
          const got = await client.callTool({ name, arguments: {} });
          expect(got).toMatchObject({
            structuredContent: JSON.parse(JSON.stringify(replies[name].structuredContent)),
            ...(name !== "good" && { isError: true }),
          });
          expect(decodeToolResult(got as never)).toMatchObject({ result: { isError: name !== "good" } });
        }
        const refused = (await client.callTool({ name: "bad", arguments: {} })) as Reply;
        expect(refused.isError).toBe(true);
        expect(refused.structuredContent).toBeUndefined();
        expect(refused.content[0]?.text).toMatch(says);
        expect(refused.content[0]?.text).toContain("tool bad");
      } finally {
        await client.close();
        await server.close();
      }
    },
  );
});

describe("schemas of envelopes in zod", () => {
  const ok = { status: "ok", summary: "s" };
  const failed = { status: "error", summary: "s" };
  const Hits = z.object({ hits: z.number().int().min(0, "No hits below zero") });

  it.each([
    ["zod", createToolResponseEnvelopeSchema(Hits)],
    ["TypeBox", createToolResponseEnvelopeSchema(Type.Object({ hits: Type.Integer({ minimum: 0 }) }))],
  ])("X-7 parse at once, with %s for the data", (_, schema) => {
    const good = { meta: ok, data: { hits: 1 } };
    expect(z.safeParse(schema, good)).toEqual({ success: true, data: good });
    expect(z.safeParse(schema, { meta: failed, data: null }).success).toBe(true);
    const { error } = z.safeParse(schema, { meta: ok, data: { hits: -1 } });
    expect(error?.issues).toMatchObject([{ path: ["data", "hits"] }]);
    expect(z.safeParse(schema, { meta: { status: "ok" }, data: { hits: 1 } }).error?.issues).toMatchObject([
      { path: ["meta", "summary"], message: "is missing" },
    ]);
    expect(z.safeParse(schema, { meta: ok }).error?.issues).toMatchObject([
      { path: ["data"], message: "is missing" },
    ]);
    for (const odd of [null, undefined, 1, "x", []]) expect(z.safeParse(schema, odd).success).toBe(false);
  });

  it("X-7 say what the author of the schema says", () => {
    const schema = createToolResponseEnvelopeSchema(Hits);
    const { error } = z.safeParse(schema, { meta: ok, data: { hits: -1 } });
    expect(error?.issues[0]?.message).toBe("No hits below zero");
  });

  it("X-7 refuse what the advertised schema refuses and the library would mend", () => {
    const schema = createToolResponseEnvelopeSchema(z.object({ hits: z.number().default(0) }));
    expect(z.safeParse(schema, { meta: ok, data: {} }).error?.issues).toMatchObject([
      { path: ["data", "hits"], message: "is missing" },
    ]);
    expect(z.safeParse(schema, { meta: ok, data: { hits: 1, more: 1 } }).success).toBe(false);
  });

  it("X-7 wait where the library has to wait, and say so where nobody waits", async () => {
    const schema = createToolResponseEnvelopeSchema(
      z.object({ hits: z.number().refine(async (n) => n < 10) }),
    );
    const good = { meta: ok, data: { hits: 1 } };
    const bad = { meta: ok, data: { hits: 11 } };
    expect((await z.safeParseAsync(schema, good)).success).toBe(true);
    expect((await z.safeParseAsync(schema, bad)).success).toBe(false);
    expect((await z.safeParseAsync(z.object({ reply: schema }), { reply: bad })).success).toBe(false);
    expect(() => z.safeParse(schema, good)).toThrow("safeParseAsync");
    expect(() => z.safeParse(z.object({ reply: schema }), { reply: good })).toThrow("safeParseAsync");
    // An error is not looked at further, and needs no waiting.
    expect(z.safeParse(schema, { meta: failed, data: null }).success).toBe(true);
  });

  it("X-7 can stand in other zod schemas", () => {
    const schema = createToolResponseEnvelopeSchema(Hits);
    const good = { meta: ok, data: { hits: 1 } };
    const bad = { meta: ok, data: { hits: "1" } };
    const around = {
      object: [z.object({ reply: schema }), { reply: good }, { reply: bad }, ["reply", "data", "hits"]],
      strict: [z.strictObject({ reply: schema }), { reply: good }, { reply: bad }, ["reply", "data", "hits"]],
      mini: [mini.object({ reply: schema }), { reply: good }, { reply: bad }, ["reply", "data", "hits"]],
      array: [z.array(schema), [good], [good, bad], [1, "data", "hits"]],
      optional: [z.optional(schema), undefined, bad, ["data", "hits"]],
      nullable: [z.nullable(schema), null, bad, ["data", "hits"]],
      record: [z.record(z.string(), schema), { a: good }, { a: bad }, ["a", "data", "hits"]],
      lazy: [z.lazy(() => schema), good, bad, ["data", "hits"]],
      readonly: [z.readonly(schema), good, bad, ["data", "hits"]],
    } as const;
    for (const [name, [outer, right, wrong, path]] of Object.entries(around)) {
      const parsed = z.safeParse(outer as z.ZodType, right);
      expect(parsed, name).toEqual({ success: true, data: right });
      expect(z.safeParse(outer as z.ZodType, wrong).error?.issues, name).toMatchObject([{ path }]);
    }
    expect(z.safeParse(z.union([z.string(), schema]), good).success).toBe(true);
    expect(z.safeParse(z.union([z.string(), schema]), bad).success).toBe(false);
    const both = z.intersection(schema, z.looseObject({ meta: z.looseObject({}) }));
    expect(z.safeParse(both, good).success).toBe(true);
  });

  it("X-7 keep an error an error where zod compiles", () => {
    const compiled = z.compile(z.object({ reply: createToolResponseEnvelopeSchema(Hits) }));
    expect(z.safeParse(compiled, { reply: { meta: failed, data: null } }).success).toBe(true);
    expect(z.safeParse(compiled, { reply: { meta: ok, data: { hits: "1" } } }).success).toBe(false);
  });

  it.each([
    ["zod", createToolResponseEnvelopeSchema(Hits)],
    ["a recursive zod object", createToolResponseEnvelopeSchema(Tree)],
    ["TypeBox", createToolResponseEnvelopeSchema(Type.Object({ hits: Type.Integer() }))],
    ["a tiered envelope", createTieredEnvelopeSchema(Hits)],
  ])("X-7 are written by z.toJSONSchema as they are advertised, with %s", (_, schema) => {
    const json = JSON.parse(JSON.stringify(schema));
    expect(z.toJSONSchema(schema)).toEqual(json);
    expect(z.toJSONSchema(schema, { target: "draft-7", io: "output" })).toEqual(json);
    expect(z.toJSONSchema(schema, { io: "input", reused: "ref" })).toEqual(json);
    expect(JSON.parse(JSON.stringify(schema))).toEqual(json);
  });

  it.each(["inline", "ref"] as const)("X-7 keep their references inside another schema (%s)", (reused) => {
    const tree = createToolResponseEnvelopeSchema(Tree);
    const twin = createToolResponseEnvelopeSchema(Tree);
    const hits = createTieredEnvelopeSchema(Type.Object({ hits: Type.Integer() }));
    const outer = z.object({ tree, again: tree, twin, list: z.array(hits) });
    const json = z.toJSONSchema(outer, { reused });
    expect(z.toJSONSchema(outer, { reused })).toEqual(json);
    const leaf = (name: unknown) => ({ meta: ok, data: { name: "a", children: [{ name }] } });
    const listed = (count: unknown) => [tiered(undefined, { hits: count }).structuredContent];
    const good = { tree: leaf("b"), again: leaf("b"), twin: leaf("b"), list: listed(1) };
    const own = compileSchema(json as never);
    const checks = VALIDATORS.map((validator) => validator.getValidator(json as never));
    for (const check of [(value: unknown) => ({ valid: own.check(value) }), ...checks]) {
      expect(check(good)).toMatchObject({ valid: true });
      expect(check({ ...good, tree: { meta: failed, data: null } })).toMatchObject({ valid: true });
      for (const name of ["tree", "again", "twin"]) {
        expect(check({ ...good, [name]: leaf(1) })).toMatchObject({ valid: false });
      }
      expect(check({ ...good, list: listed("1") })).toMatchObject({ valid: false });
    }
  });

  it("X-7 give their members as a shape", () => {
    const { shape } = createToolResponseEnvelopeSchema(Hits);
    expect(shape.data).toBe(Hits);
    expect(Object.keys(shape)).toEqual(["meta", "data"]);
    const more = z.object({ ...shape, cost: z.number() });
    expect(z.safeParse(more, { meta: ok, data: { hits: 1 }, cost: 1 }).success).toBe(true);
    const odd = z.safeParse(more, { meta: { status: "odd" }, data: { hits: 1 }, cost: 1 });
    expect(odd.error?.issues).toMatchObject([{ path: ["meta", "status"] }, { path: ["meta", "summary"] }]);
    expect(z.toJSONSchema(more)).toMatchObject({ required: ["meta", "data", "cost"] });
  });

  it("X-7 give members with their own references and optional ones as a shape too", () => {
    const again = z.object(
      createTieredEnvelopeSchema({
        $defs: { hits: { type: "integer" } },
        type: "object",
        properties: { hits: { $ref: "#/$defs/hits" } },
      }).shape,
    );
    const { structuredContent } = tiered(undefined, { hits: 1 });
    const { duration_ms: _, ...bare } = structuredContent;
    for (const envelope of [structuredContent, bare]) {
      expect(z.safeParse(again, envelope)).toEqual({ success: true, data: envelope });
    }
    expect(z.safeParse(again, { ...bare, data: { hits: "1" } }).success).toBe(false);
    const json = z.toJSONSchema(again);
    expect(json.required).not.toContain("duration_ms");
    expect(compileSchema(json as never).check(bare)).toBe(true);
    expect(compileSchema(json as never).check({ ...bare, data: { hits: "1" } })).toBe(false);
  });

  it("X-7 refuse a zod 3 schema, and one of zod/mini, with what to do", () => {
    expect(() => createToolResponseEnvelopeSchema(zod3.object({ hits: zod3.number() }) as never)).toThrow(
      "use zod 4.2 or newer",
    );
    const small = mini.object({ hits: mini.number() });
    expect(() => createTieredEnvelopeSchema(small as never)).toThrow("zod/mini");
    const schema = createTieredEnvelopeSchema(mini.toJSONSchema(small) as never);
    expect(schema["$defs"]).toMatchObject({ data: { properties: { hits: { type: "number" } } } });
  });
});
