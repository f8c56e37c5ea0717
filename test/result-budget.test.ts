import type { Client } from "@modelcontextprotocol/client";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CallToolResult,
  createMemoryStore,
  createResultFormat,
  createResultReader,
  type DataCut,
  decodeToolResult,
  RESULT_META_KEY,
} from "../src/formats/index.ts";
import {
  type CompiledSchema,
  compileSchema,
  mcpEnvelope,
  OperationRegistry,
  type ResultFormat,
  result,
  toolError,
} from "../src/index.ts";
import { fromMcp, serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { schemaCases } from "./arbitrary-schema.ts";
import { parsePointer } from "./json-values.ts";
import { query } from "./make-operation.ts";
import { CHECKING_CLIENTS as CLIENTS } from "./mcp-server-peers.ts";
import { scaled, seededRuns } from "./runs.ts";

const ROWS = Array.from({ length: 500 }, (_, id) => ({
  id,
  at: new Date(id),
  home: `https://example.com/rows/${id}`,
  note: `Row ${id} of many. `.repeat(3),
}));
const ROW = {
  type: "object",
  properties: {
    id: { type: "integer" },
    at: { type: "string", format: "date-time" },
    home: { type: "string", format: "uri" },
    note: { type: "string" },
  },
  required: ["id", "at", "home"],
  additionalProperties: false,
} as const;
const TYPED = {
  type: "object",
  properties: { rows: { type: "array", items: ROW }, total: { type: "integer" } },
  required: ["rows", "total"],
  additionalProperties: false,
} as const;
const DATA = { rows: ROWS, total: 500 };
const JSON_DATA: unknown = JSON.parse(JSON.stringify(DATA));
const STRICT = {
  ...TYPED,
  properties: { ...TYPED.properties, rows: { type: "array", minItems: 500, items: ROW } },
};
const strictRow = { ...ROW, required: ["id", "at", "home", "note"] };

const registry = new OperationRegistry([
  query("big.typed", () => DATA, { outputSchema: TYPED }),
  query("big.list", () => ROWS, { outputSchema: { type: "array", items: ROW } }),
  query("big.flagged", () => ({ rows: ROWS, truncated: false }), {
    outputSchema: { type: "object", properties: { rows: { type: "array" } }, additionalProperties: true },
  }),
  query("big.declared", () => ({ rows: ROWS }), {
    outputSchema: {
      type: "object",
      properties: { rows: { type: "array" }, truncated: { type: "boolean" } },
      required: ["rows"],
    },
  }),
  query("big.strict", () => DATA, {
    outputSchema: {
      ...STRICT,
      properties: { ...STRICT.properties, rows: { type: "array", minItems: 500, items: strictRow } },
    },
  }),
  query("big.bare", () => DATA),
  query("big.refused", () => toolError({ rows: ROWS }, { code: "NO", message: "Not today." })),
  query("big.said", () => result(DATA, { summary: "500 rows", nextSteps: ["Filter them"] }), {
    outputSchema: TYPED,
  }),
  query("big.passed", () =>
    mcpEnvelope(JSON_DATA, {
      isError: false,
      content: [
        { type: "text", text: JSON.stringify(JSON_DATA) },
        { type: "text", text: "A word of the tool." },
      ],
      structuredContent: JSON_DATA,
    }),
  ),
  query("big.text", () =>
    mcpEnvelope(undefined, { isError: false, content: [{ type: "text", text: "y".repeat(5_000) }] }),
  ),
]);

const BUDGET = 3_000;

/** A format of somebody's own, which knows nothing of budgets. */
const OWN: ResultFormat = {
  name: "own",
  write: ({ outcome }) => ({
    content: [{ type: "text", text: "envelope" in outcome ? "Done." : "Failed." }],
    ...("envelope" in outcome && { structuredContent: { mine: outcome.envelope.data } }),
  }),
  outputSchema: () => undefined,
};

const FORMATS: Readonly<Record<string, ResultFormat | undefined>> = {
  plain: undefined,
  mcp: createResultFormat("mcp"),
  "tool-envelope": createResultFormat("tool-envelope"),
  "tiered-envelope": createResultFormat("tiered-envelope"),
  "status-envelope": createResultFormat("status-envelope"),
};

type Facts = {
  readonly stored?: string;
  readonly cuts?: readonly DataCut[];
  readonly uncut?: { readonly characters: number; readonly budget: number };
};
const factsOf = ({ _meta }: CallToolResult): Facts => (_meta?.[RESULT_META_KEY] ?? {}) as Facts;

const linksOf = ({ content }: CallToolResult): string[] =>
  content.flatMap((block) => (block.type === "resource_link" ? [block.uri] : []));
const textsOf = ({ content }: CallToolResult): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("\n");

/** The data of a result in any format. */
const dataOf = (sent: CallToolResult): unknown => decodeToolResult(sent).data;

async function readLink(client: Client, uri: string): Promise<string> {
  const { contents } = await client.readResource({ uri });
  return (contents[0] as { text: string }).text;
}

function at(value: unknown, pointer: string): unknown {
  return parsePointer(pointer).reduce((inner, key) => (inner as Record<string, unknown>)[key], value);
}

async function serve(format: ResultFormat | undefined, inlineCharacters = BUDGET) {
  const store = createMemoryStore();
  return toMcpServer(registry, { ...(format && { format }), store, limits: { inlineCharacters } });
}

const call = async (client: Client, name: string): Promise<CallToolResult> =>
  (await client.callTool({ name })) as CallToolResult;

describe.each(Object.entries(CLIENTS))("a typed result over the budget, to a client of %s", (_, connect) => {
  it.each(Object.entries(FORMATS))(
    "X-10 is cut so that it fits its schema in the format %s",
    async (name, format) => {
      const client = await connect(await serve(format));
      // Clients check the results of tools they have listed.
      await client.listTools();
      const sent = await call(client, "big_typed");
      const data = dataOf(sent) as { rows: unknown[]; total: number };
      expect(data.rows.length).toBeGreaterThan(5);
      expect(data).toEqual({
        rows: (JSON_DATA as typeof data).rows.slice(0, data.rows.length),
        total: 500,
      });
      expect(JSON.stringify(data).length).toBeLessThanOrEqual(BUDGET);
      expect(compileSchema(TYPED).check(data)).toBe(true);
      const { stored = "", cuts } = factsOf(sent);
      expect(cuts).toEqual([{ pointer: "/rows", kind: "items", kept: data.rows.length, total: 500 }]);
      expect(linksOf(sent)).toEqual([stored]);
      expect(JSON.parse(await readLink(client, stored))).toEqual(JSON_DATA);
      expect(textsOf(sent)).toMatch(/\/rows shows \d+ of 500 items/);
      expect(textsOf(sent)).toContain(stored);
      if (name === "status-envelope")
        expect(sent.structuredContent).toMatchObject({ meta: { truncated: true } });
      await client.close();
    },
  );

  it("X-10 is cut where it is no object, or is an envelope of its own", async () => {
    const plain = await connect(await serve(undefined));
    await plain.listTools();
    const list = await call(plain, "big_list");
    expect(JSON.parse(await readLink(plain, linksOf(list)[0] ?? ""))).toHaveLength(500);
    expect(factsOf(list).cuts).toMatchObject([{ pointer: "", total: 500 }]);
    const own = await connect(await serve(OWN));
    const sent = await call(own, "big_typed");
    const { mine } = sent.structuredContent as { mine: { rows: unknown[] } };
    expect(JSON.stringify(mine).length).toBeLessThanOrEqual(BUDGET);
    expect(linksOf(sent)).toEqual([factsOf(sent).stored]);
    expect(textsOf(sent)).toMatch(/^Done\.\n.*\/rows shows/);
  });

  it.each(Object.entries(FORMATS))(
    "X-10 goes whole in the format %s where its schema allows no cut",
    async (_name, format) => {
      const client = await connect(await serve(format));
      await client.listTools();
      const sent = await call(client, "big_strict");
      expect(dataOf(sent)).toEqual(JSON_DATA);
      expect(factsOf(sent)).toMatchObject({
        uncut: { characters: JSON.stringify(DATA).length, budget: BUDGET },
      });
      await client.close();
    },
  );
});

describe("a result over the budget", () => {
  it.each(Object.entries(FORMATS))(
    "X-10 is whole at N characters and cut at N + 1 in the format %s",
    async (_, format) => {
      const length = JSON.stringify(DATA).length;
      const [fits, over] = await Promise.all(
        [length, length - 1].map(async (budget) => {
          const client = await CLIENTS["SDK 2, 2025"](await serve(format, budget));
          return await call(client as Client, "big_typed");
        }),
      );
      expect(dataOf(fits as CallToolResult)).toEqual(JSON_DATA);
      expect(factsOf(fits as CallToolResult)).not.toHaveProperty("cuts");
      expect(linksOf(fits as CallToolResult)).toEqual([]);
      expect(factsOf(over as CallToolResult).cuts).toEqual([
        { pointer: "/rows", kind: "items", kept: 499, total: 500 },
      ]);
    },
  );

  it("TR-6 says truncated where the data has it or its schema declares it, and nowhere else", async () => {
    for (const format of Object.values(FORMATS)) {
      const client = await CLIENTS["SDK 2, 2025"](await serve(format));
      expect(dataOf(await call(client, "big_flagged"))).toHaveProperty("truncated", true);
      expect(dataOf(await call(client, "big_declared"))).toHaveProperty("truncated", true);
      expect(dataOf(await call(client, "big_typed"))).not.toHaveProperty("truncated");
    }
  });

  it.each(["tool-envelope", "tiered-envelope", "status-envelope"])(
    "X-10 is cut in the format %s without a schema, as an error, and as another tool wrote it",
    async (name) => {
      const client = await CLIENTS["SDK 2, 2025"](await serve(FORMATS[name]));
      for (const tool of ["big_bare", "big_refused", "big_passed", "big_said"]) {
        const sent = await call(client, tool);
        expect(JSON.stringify(sent).length, tool).toBeLessThan(5 * BUDGET);
        const whole = JSON.parse(await readLink(client, linksOf(sent)[0] ?? ""));
        expect(whole, tool).toMatchObject({ rows: (JSON_DATA as { rows: unknown[] }).rows });
        expect(sent.isError ?? false, tool).toBe(tool === "big_refused");
      }
      const passed = await call(client, "big_passed");
      expect(textsOf(passed)).toContain("A word of the tool.");
      const said = textsOf(await call(client, "big_said"));
      // The tiered envelope has no place for either.
      if (name !== "tiered-envelope") expect(said).toMatch(/500 rows[\s\S]*Filter them/);
      const text = await call(client, "big_text");
      expect(textsOf(text)).not.toContain("y".repeat(2_001));
      expect(await readLink(client, linksOf(text)[0] ?? "")).toBe("y".repeat(5_000));
    },
  );

  it("X-10 cuts no text that has a form, so that clients who check forms take the rest", async () => {
    const data = {
      home: `https://example.com/${"a".repeat(400)}`,
      bytes: "QUJD".repeat(100),
      note: "word ".repeat(400),
    };
    const outputSchema = {
      type: "object",
      properties: {
        home: { type: "string", format: "uri" },
        bytes: { type: "string", contentEncoding: "base64" },
        note: { type: "string" },
      },
      required: ["home", "bytes", "note"],
    };
    const forms = new OperationRegistry([query("a.forms", () => data, { outputSchema })]);
    for (const connect of Object.values(CLIENTS)) {
      const store = createMemoryStore();
      const client = await connect(toMcpServer(forms, { store, limits: { inlineCharacters: 1_000 } }));
      await client.listTools();
      const { structuredContent } = await call(client, "a_forms");
      expect(structuredContent).toEqual({ ...data, note: expect.stringMatching(/^word .*…$/) });
    }
  });

  it("X-10 fits any schema, within any budget or whole, with cuts that name what there is", async () => {
    let cuts = 0;
    await fc.assert(
      fc.asyncProperty(schemaCases(false), fc.nat({ max: 110 }), async ({ schema, values }, percent) => {
        const compiled = compileOrSkip(schema);
        const fitting = values.filter((one) => one !== undefined && compiled.check(one));
        const given = fitting.sort((a, b) => sizeOf(b) - sizeOf(a))[0];
        // Clients lose a member of that name before anybody can look at it.
        fc.pre(given !== undefined && !JSON.stringify([schema, given]).includes("__proto__"));
        const one = new OperationRegistry([query("a.b", () => given, { outputSchema: schema })]);
        const { data: value } = await one.execute("a.b");
        const inlineCharacters = Math.floor((sizeOf(value) * percent) / 100);
        for (const format of [undefined, createResultFormat("tiered-envelope")]) {
          const store = createMemoryStore();
          const limits = { inlineCharacters };
          const server = toMcpServer(one, { ...(format && { format }), store, limits });
          const client = await CLIENTS["SDK 2, 2025"](server);
          await client.listTools();
          const sent = await call(client, "a_b");
          const facts = factsOf(sent);
          if (facts.cuts !== undefined) {
            cuts += 1;
            const shown = format === undefined ? unwrapped(sent) : dataOf(sent);
            expect(sizeOf(shown)).toBeLessThanOrEqual(inlineCharacters);
            expect(compiled.check(shown)).toBe(true);
            for (const { pointer } of facts.cuts) expect(at(value, pointer)).toBeDefined();
            expect(JSON.parse(await readLink(client, facts.stored ?? ""))).toEqual(onWire(value));
          } else if (facts.stored === undefined) {
            const shown = format === undefined ? unwrapped(sent) : dataOf(sent);
            expect(shown).toEqual(onWire(value));
            expect(sizeOf(value) <= inlineCharacters).toBe(facts.uncut === undefined);
          }
          await client.close();
        }
      }),
      seededRuns(300),
    );
    expect(cuts).toBeGreaterThan(scaled(300) / 10);
  });
});

/** The data of a plain result; 2025 clients get what is no object in one. */
function unwrapped(sent: CallToolResult): unknown {
  const { wrapsResult } = factsOf(sent) as { wrapsResult?: boolean };
  return wrapsResult ? (sent.structuredContent as { result: unknown }).result : sent.structuredContent;
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value).length;
}

function onWire(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function compileOrSkip(schema: unknown): CompiledSchema {
  try {
    return compileSchema(schema);
  } catch {
    return fc.pre(false) as never;
  }
}

describe.each(["2025", "2026"] as const)("a result over the budget, imported over %s", (protocol) => {
  const previewing = () => {
    const store = createMemoryStore();
    const preview = { store, maxCharacters: 1_000 };
    return { store, format: createResultFormat({ format: "status-envelope", preview }) };
  };

  it.each([...Object.keys(FORMATS), "status-envelope with previews"])(
    "X-6 X-10 is whole again from %s",
    async (name) => {
      const given = name in FORMATS ? { store: createMemoryStore(), format: FORMATS[name] } : previewing();
      const { store, format } = given;
      const server = toMcpServer(registry, {
        ...(format && { format }),
        store,
        limits: { inlineCharacters: 1_000 },
      });
      const http = await serveMcpHttp(server);
      const warnings: string[] = [];
      const source = await fromMcp(http.url, {
        namespace: "there",
        keepIds: true,
        protocol,
        reader: createResultReader(),
        onWarning: (message) => void warnings.push(message),
      });
      const imported = new OperationRegistry([...source]);
      for (const id of ["big.typed", "big.list", "big.bare", "big.said", "big.strict"]) {
        expect((await imported.execute(id)).data, id).toStrictEqual((await registry.execute(id)).data);
      }
      const refused = await imported.execute("big.refused");
      expect(refused.data).toStrictEqual({ rows: ROWS });
      expect(refused.meta).toMatchObject({ isError: true, waybill: { code: "NO" } });
      const { said } = (await imported.execute("big.said")).meta.waybill ?? {};
      expect(said).not.toHaveProperty("truncated");
      expect(JSON.stringify(said)).not.toContain("waybill://results");
      expect(warnings).toEqual([]);
      await source.close();
      await http.close();
      await server.close();
    },
  );
});
