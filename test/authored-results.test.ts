import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type CallToolResult,
  decodeToolResult,
  FORMATS,
  type FormatName,
  type ToolResult,
} from "../src/formats/index.ts";
import {
  defineOperation,
  mcpEnvelope,
  OperationRegistry,
  type ResponseEnvelope,
  type ResultSaid,
  result,
  type ToolErrorSaid,
  Type,
  toolError,
} from "../src/index.ts";
import { toMcpServer } from "../src/mcp/index.ts";
import { CLIENTS } from "./mcp-server-peers.ts";
import { SURFACES, type Surface, TOOL_FORMATS, WRITERS, type Written } from "./surfaces.ts";

/** A field that an operation says, and where the canonical result has it. */
interface Row<Said> {
  readonly said: Said;
  readonly canonical: Partial<ToolResult>;
}

const LINK = { type: "resource_link", uri: "https://example.com/1", name: "Order 1" } as const;
const IMAGE = { type: "image", data: "AAAA", mimeType: "image/png" } as const;
const HINT = { feature: "export", tier: "pro", reason: "Exports are part of the pro tier." };

const COMMON = {
  summary: { said: { summary: "Two orders" }, canonical: { summary: "Two orders" } },
  nextSteps: { said: { nextSteps: ["Ship them."] }, canonical: { nextSteps: ["Ship them."] } },
  markdown: {
    said: { markdown: "## Orders\n\n- 1\n- 2" },
    canonical: { content: [{ type: "text", text: "## Orders\n\n- 1\n- 2" }] },
  },
  content: { said: { content: [IMAGE] }, canonical: { content: [IMAGE] } },
  links: { said: { links: [{ uri: LINK.uri, name: LINK.name }] }, canonical: { content: [LINK] } },
  truncated: { said: { truncated: true }, canonical: { truncated: true } },
  tokenUsage: {
    said: { tokenUsage: { inline: 12, total: 90 } },
    canonical: { tokenUsage: { inline: 12, total: 90 } },
  },
  rateLimit: {
    said: { rateLimit: { remaining: 3, resetSeconds: 60 } },
    canonical: { rateLimit: { remaining: 3, resetSeconds: 60 } },
  },
  capabilities: { said: { capabilities: ["streaming"] }, canonical: { capabilities: ["streaming"] } },
  upgradeHints: { said: { upgradeHints: [HINT] }, canonical: { upgradeHints: [HINT] } },
  _meta: { said: { _meta: { "com.example/trace": 7 } }, canonical: { _meta: { "com.example/trace": 7 } } },
} satisfies Partial<Record<keyof ResultSaid, Row<ResultSaid>>>;

const RESULTS: Readonly<Record<keyof ResultSaid, Row<ResultSaid>>> = {
  ...COMMON,
  status: { said: { status: "warn" }, canonical: { status: "warn" } },
  details: { said: { details: ["One is late."] }, canonical: { details: ["One is late."] } },
  page: { said: { page: { next: "p2" } }, canonical: { facts: { page: { next: "p2" } } } },
};

const ERRORS: Readonly<Record<Exclude<keyof ToolErrorSaid, "operationId">, Row<ToolErrorSaid>>> = {
  ...COMMON,
  code: {
    said: { code: "NO_STOCK" },
    canonical: { error: { message: "Nothing is left.", code: "NO_STOCK" } },
  },
  message: { said: { message: "None." }, canonical: { error: { message: "None." } } },
  category: {
    said: { message: "None.", category: "not_found" },
    canonical: { error: { message: "None.", category: "not_found" } },
  },
  details: {
    said: { message: "None.", details: { left: 0 } },
    canonical: { error: { message: "None.", details: { left: 0 } } },
  },
  recoverable: {
    said: { message: "None.", recoverable: true },
    canonical: { error: { message: "None.", recoverable: true } },
  },
  suggestedAction: {
    said: { message: "None.", suggestedAction: "Order more." },
    canonical: { error: { message: "None.", suggestedAction: "Order more." } },
  },
  nextTool: {
    said: { message: "None.", nextTool: "stock_order" },
    canonical: { error: { message: "None.", nextTool: "stock_order" } },
  },
};

const DATA = { orders: 2 };

const registry = new OperationRegistry([
  defineOperation({
    namespace: "shop",
    name: "say",
    version: "1.2.0",
    type: "query",
    description: "Says one thing about two orders.",
    inputSchema: Type.Object({ field: Type.String(), fails: Type.Optional(Type.Boolean()) }),
    outputSchema: Type.Object({ orders: Type.Integer() }),
    errors: { NO_STOCK: { description: "Nothing is left." } },
    handler: ({ field, fails }) => {
      if (fails === true) return toolError(DATA, ERRORS[field as keyof typeof ERRORS].said);
      return result(DATA, RESULTS[field as keyof typeof RESULTS].said);
    },
  }),
]);

const ROWS = [
  ...Object.entries(RESULTS).map(([field, row]) => ({ field, row, fails: false })),
  ...Object.entries(ERRORS).map(([field, row]) => ({ field, row, fails: true })),
];

const open = (name: string): Promise<Surface> => {
  const surface = SURFACES[name];
  if (surface === undefined) throw new Error(`There is no surface ${name}.`);
  return surface(registry);
};

/** The part of a result that a row is about; of an error the fields it says, of `_meta` the operation's own. */
function partOf(found: ToolResult, { canonical }: Row<unknown>): Partial<ToolResult> {
  const part: Record<string, unknown> = {};
  for (const key of Object.keys(canonical) as (keyof ToolResult)[]) {
    const [wanted, value] = [canonical[key], found[key]];
    part[key] = key === "error" || key === "_meta" || key === "facts" ? pick(value, wanted) : value;
  }
  if ("capabilities" in part)
    part["capabilities"] = (part["capabilities"] as string[]).filter(isOwnCapability);
  return part;
}

const isOwnCapability = (name: string): boolean => name !== "envelope-v1";

function pick(value: unknown, like: unknown): unknown {
  const from = (value ?? {}) as Record<string, unknown>;
  return Object.fromEntries(Object.keys(like as object).map((key) => [key, from[key]]));
}

describe.each(Object.keys(WRITERS))("results authored once, over %s", (surface) => {
  let written: Written;
  beforeAll(async () => {
    const connect = WRITERS[surface];
    if (connect === undefined) throw new Error(`There is no writer for ${surface}.`);
    written = await connect(registry);
  });
  afterAll(() => written.close());

  describe.each(TOOL_FORMATS)("in %s", (format) => {
    it.each(ROWS)("X-7 say $field (error: $fails)", async ({ field, row, fails }) => {
      const carrier = await written.write(format, "shop.say", { field, fails });
      const read = decodeToolResult(carrier);
      expect(read.format).toBe(format);
      expect(read.isError).toBe(fails);
      const found = read.result as ToolResult;
      expect(partOf(found, row)).toEqual(row.canonical);
      expect(found.data).toEqual(DATA);
      // Without what travels beside the format, the rest is what the format itself says or counts as lost.
      const { _meta, ...bare } = carrier;
      const own = FORMATS[format].decode({ ...bare, ...(row.canonical._meta && { _meta }) }).result;
      const lost = FORMATS[format].losses(found);
      const isLost = Object.keys(row.canonical).every((key) =>
        lost.some((pointer) => pointer.startsWith(`/${key}`)),
      );
      if (!isLost) expect(partOf(own, row)).toEqual(row.canonical);
    });
  });
});

describe.each(Object.keys(SURFACES))("results authored once, called over %s", (name) => {
  let surface: Surface;
  beforeAll(async () => {
    surface = await open(name);
  });
  afterAll(() => surface.close());

  it.each(ROWS)("X-7 say $field to a program (error: $fails)", async ({ field, row, fails }) => {
    const envelope = await surface.executor.execute("shop.say", { field, fails });
    expect(envelope.data).toEqual(DATA);
    const { canonical } = row;
    const read = FORMATS["response-envelope"].decode(envelope as ResponseEnvelope).result;
    expect(read.isError).toBe(fails);
    // A code without a message stays a fact; the sentence for it is the writer's to find.
    if (field === "code") expect(envelope.meta.waybill?.code).toBe("NO_STOCK");
    else if (field === "_meta" && envelope.meta.source === "mcp") {
      expect(envelope.meta._meta).toMatchObject(canonical._meta ?? {});
    } else expect(partOf(read, row)).toEqual(canonical);
  });

  it("X-7 says all of it at once, and more than a header holds", async () => {
    const here = await registry.execute("shop.say", { field: "markdown" });
    const there = await surface.executor.execute("shop.say", { field: "markdown" });
    expect(there.meta.waybill?.said?.content).toEqual(here.meta.waybill?.said?.content);
  });
});

const IMAGE_TOOL = { isError: false, content: [IMAGE], structuredContent: DATA } as const;
const TEXT_TOOL = {
  isError: false,
  content: [{ type: "text", text: JSON.stringify(DATA) }],
  structuredContent: DATA,
} as const;

/** Codes of other people's errors, none of which an operation could declare. */
const CODES = ["404", "E 42", "zu_spät", "orders/none", "no-stock!", "x".repeat(200)];

const odd = new OperationRegistry(
  [
    ...CODES.map((code, index) => ({
      name: `code${index}`,
      handler: () => toolError(DATA, { code, message: "None.", details: { left: 0 } }),
    })),
    { name: "nothing", handler: () => result(undefined, { summary: "Nothing to say" }) },
    {
      name: "pictured",
      handler: () => mcpEnvelope(DATA, IMAGE_TOOL),
      render: () => ({ summary: "Two orders", markdown: "## Orders", links: [LINK], nextSteps: ["Ship."] }),
    },
    {
      name: "worded",
      handler: () => mcpEnvelope(DATA, TEXT_TOOL),
      render: () => ({ summary: "Two orders", nextSteps: ["Ship."] }),
    },
  ].map((parts) =>
    defineOperation({
      namespace: "odd",
      version: "1.0.0",
      type: "query",
      description: "Says what few say.",
      ...parts,
    }),
  ),
);

describe.each(Object.keys(SURFACES))("what few say, over %s", (name) => {
  let surface: Surface;
  beforeAll(async () => {
    surface = (await SURFACES[name]?.(odd)) as Surface;
  });
  afterAll(() => surface.close());
  const call = (id: string) => surface.executor.execute(`odd.${id}`, {});

  it.each(CODES.map((code, index) => [code, `code${index}`]))("X-7 the code %s arrives", async (code, id) => {
    const { data, meta } = await call(id);
    expect(data).toEqual(DATA);
    expect(meta.waybill).toMatchObject({ code, message: "None.", details: { left: 0 } });
  });

  it("X-7 data that is not there stays away, whatever is said about it", async () => {
    const { data, meta } = await call("nothing");
    expect(data).toBeUndefined();
    expect(meta.waybill?.said?.summary).toBe("Nothing to say");
  });

  it("X-7 words for the data of an MCP tool stand beside its blocks", async () => {
    const { data, meta } = await call("pictured");
    expect(data).toEqual(DATA);
    expect(meta.waybill?.said).toMatchObject({ summary: "Two orders", nextSteps: ["Ship."] });
    expect(meta.waybill?.said?.content).toEqual([{ type: "text", text: "## Orders" }, IMAGE, LINK]);
    const worded = await call("worded");
    expect(worded.data).toEqual(DATA);
    expect(worded.meta.waybill?.said).toMatchObject({ summary: "Two orders", nextSteps: ["Ship."] });
  });
});

describe.each(["SDK 1", "SDK 2, 2025", "SDK 2, 2026"] as const)(
  "words for MCP tools, served to %s",
  (name) => {
    it("X-7 people read them, and the tool's blocks, in one result", async () => {
      const server = toMcpServer(odd);
      const client = await CLIENTS[name](server);
      const pictured = (await client.callTool({ name: "odd_pictured", arguments: {} })) as CallToolResult;
      const texts = ["✅ Two orders", "## Orders", "Next steps:\n- Ship."].map((text) => ({
        type: "text",
        text,
      }));
      expect(pictured.content).toEqual([texts[0], texts[1], IMAGE, texts[2], LINK]);
      const worded = (await client.callTool({ name: "odd_worded", arguments: {} })) as CallToolResult;
      expect(worded.content).toEqual([texts[0], TEXT_TOOL.content[0], texts[2]]);
      expect(worded.structuredContent).toEqual(DATA);
      await client.close();
      await server.close();
    });
  },
);

/** Every field of the canonical result, and how an operation has it said. */
const AUTHORED: Readonly<Record<keyof ToolResult, string>> = {
  isError: "toolError()",
  data: "the first argument",
  content: "markdown, content, links",
  error: "code, message, category, details, recoverable, suggestedAction, nextTool",
  status: "status",
  summary: "summary",
  details: "details",
  nextSteps: "nextSteps",
  truncated: "truncated",
  tokenUsage: "tokenUsage",
  rateLimit: "rateLimit",
  capabilities: "capabilities",
  upgradeHints: "upgradeHints",
  facts: "page",
  _meta: "_meta",
  tool: "the call: the name it was called by",
  toolVersion: "the operation: its version",
  requestId: "the call",
  timestamp: "the call",
  durationMs: "the call",
  tier: "the call: the caller's",
  http: "the source: an HTTP answer's status and headers",
  extra: "the helpers of a format: what only that format has a field for",
};

describe("the canonical result", () => {
  it("X-7 has no field that nobody can author", () => {
    const fields = new Set<string>([...Object.keys(RESULTS), ...Object.keys(ERRORS)]);
    for (const [field, how] of Object.entries(AUTHORED)) {
      if (how.startsWith("the ")) continue;
      for (const name of how.split(", ")) {
        if (name !== "toolError()") expect(fields, `${field} by ${name}`).toContain(name);
      }
    }
    expect(Object.keys(FORMATS) satisfies string[] as FormatName[]).toHaveLength(5);
  });
});
