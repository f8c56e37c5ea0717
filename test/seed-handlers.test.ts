import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  buildStructuredResponse,
  buildToolResponse,
  type CallToolResult,
  composeToolPayload,
  createMemoryStore,
  createResultReader,
  createTieredEnvelopeSchema,
  createToolResponseEnvelopeSchema,
  type McpErrorPayload,
  parseEnvelopeBlock,
  parseTieredEnvelope,
  previewToolPayload,
  renderToolError,
  type ToolResponseMeta,
  tieredEnvelope,
  toToolResult,
  type WorkflowEnvelopePayload,
  WorkflowEnvelopePayloadSchema,
} from "../src/formats/index.ts";
import tieredExamples from "../src/formats/tiered-envelope/published-examples.json" with { type: "json" };
import toolExamples from "../src/formats/tool-envelope/published-examples.json" with { type: "json" };
import {
  type AnyOperation,
  CallError,
  defineOperation,
  httpEnvelope,
  isCallError,
  localEnvelope,
  mcpEnvelope,
  OperationRegistry,
  type OperationSpec,
  outcomeOf,
  type RegistryWarning,
  type ResponseEnvelope,
  Type,
} from "../src/index.ts";
import { fromOpenApi } from "../src/openapi/index.ts";
import { SURFACES, type Surface, type ToolFormat, WRITERS, type Written } from "./surfaces.ts";

/** Handlers as the published documents write them, on every surface, with the outcomes that the documents state. */

const [workflowExample, errorExample] = toolExamples.examples;
const [scanExample, extractExample] = tieredExamples.examples;
if (!workflowExample || !errorExample || !scanExample || !extractExample)
  throw new Error("An example is missing.");

const workflow = workflowExample.payload as WorkflowEnvelopePayload;
const failure = errorExample.payload as McpErrorPayload;
const HINT = {
  feature: "cross_file_scan",
  tier: "enterprise",
  reason: "Several files are scanned together.",
};

const spec = (id: string, rest: Partial<OperationSpec> & Pick<OperationSpec, "handler">): AnyOperation => {
  const [namespace = "", name = ""] = id.split(".");
  return defineOperation({
    namespace,
    name,
    version: "3.2.8",
    type: "query",
    description: "Written as a published document writes it.",
    ...rest,
  } as OperationSpec);
};

/** 000: a handler makes both blocks and returns them. */
const toolEnvelopeOperations = [
  spec("te.design", {
    outputSchema: WorkflowEnvelopePayloadSchema,
    handler: () =>
      toToolResult({
        summaryMarkdown: "## System design\n\n- one step planned",
        payload: workflow,
        meta: { tool: "system-design", ts: "2025-06-17T18:30:00Z", version: 1 },
      }),
  }),
  spec("te.fail", {
    handler: () =>
      toToolResult({
        summaryMarkdown: renderToolError(failure),
        payload: failure,
        meta: { tool: "mcp", ts: "2025-06-17T18:30:00Z", version: 1 },
      }),
  }),
  spec("te.failOwnWords", {
    handler: () =>
      toToolResult({
        summaryMarkdown: "## That did not work\n\nSee the block below.",
        payload: { ...failure, nextTool: "te_design" },
        meta: { tool: "mcp" },
      }),
  }),
];

const Scan = Type.Object({
  success: Type.Boolean(),
  risk_level: Type.Optional(Type.String()),
  findings: Type.Array(Type.Unknown()),
});

/** 003: a handler makes the nine fields; four of them it cannot know. */
const tieredOperations = [
  spec("cs.security_scan", {
    outputSchema: createTieredEnvelopeSchema(Scan),
    handler: () =>
      tieredEnvelope({
        ...(scanExample as Parameters<typeof tieredEnvelope>[0]),
        tier: "enterprise",
        tool_version: "9.9.9",
        duration_ms: 123_456,
        capabilities: ["envelope-v1", "incremental"],
        upgrade_hints: [HINT],
        data: { success: true, risk_level: "high", findings: [] },
      }),
  }),
  spec("cs.extract_code", {
    outputSchema: createTieredEnvelopeSchema(Scan),
    handler: () =>
      tieredEnvelope({
        tool_version: "3.2.8",
        error: extractExample.error,
        data: extractExample.data,
      }),
  }),
];

/** 004: the migration checklist, step by step. */
const MatchResult = z.object({
  matches: z.array(z.object({ line: z.number().int(), text: z.string() })),
  truncated: z.boolean(),
  errorCode: z.string().optional(),
});
type MatchResult = z.infer<typeof MatchResult>;

const EXCERPT = { type: "resource_link", uri: "docs://match/1", name: "Full excerpt" } as const;

function composeMatches() {
  const data: MatchResult = { matches: [{ line: 4, text: "waybill" }], truncated: true };
  const meta: ToolResponseMeta = {
    status: "ok",
    summary: "1 match in 1 file",
    details: ["4: waybill"],
    nextSteps: ["Read the full excerpt."],
    truncated: true,
    tokenUsage: { inline: 12, total: 90 },
    rateLimit: { remaining: 9, resetSeconds: 60 },
  };
  return composeToolPayload({
    meta,
    data,
    additionalText: ["```\nwaybill\n```"],
    resourceLinks: [EXCERPT],
  });
}

const composeFailure = () =>
  composeToolPayload({
    meta: {
      status: "error",
      summary: "The index is not ready",
      nextSteps: ["Build the index first.", "Then search again."],
    },
    data: { matches: [], truncated: false, errorCode: "INDEX_MISSING" },
  });

const buildStructured = () =>
  buildStructuredResponse({
    status: "success",
    title: "Search",
    statusMessage: "1 match",
    textSections: ["4: waybill"],
    nextSteps: ["Read on."],
    jsonData: [{ line: 4 }],
    resourceLinks: [EXCERPT],
    data: { matches: [{ line: 4, text: "waybill" }], truncated: false } satisfies MatchResult,
  });

const buildLegacy = () =>
  buildToolResponse({
    status: "warn",
    title: "Search",
    statusMessage: "slow",
    textSections: ["The index is old."],
    jsonData: { age: 3 },
  });

const statusOperations = [
  spec("tr.search", {
    outputSchema: createToolResponseEnvelopeSchema(MatchResult),
    handler: composeMatches,
  }),
  spec("tr.fail", {
    outputSchema: createToolResponseEnvelopeSchema(MatchResult),
    handler: async () => composeFailure(),
  }),
  spec("tr.structured", {
    outputSchema: createToolResponseEnvelopeSchema(MatchResult),
    handler: buildStructured,
  }),
  spec("tr.legacy", { handler: buildLegacy }),
  spec("tr.preview", {
    outputSchema: createToolResponseEnvelopeSchema(MatchResult),
    handler: () =>
      previewToolPayload({
        meta: { status: "ok", summary: "Many matches" },
        data: {
          matches: Array.from({ length: 500 }, (_, line) => ({ line, text: "waybill" })),
          truncated: false,
        },
        schema: MatchResult,
        store: createMemoryStore(),
      }),
  }),
];

const CONTENT = [{ type: "text", text: "The disk is full." }] as const;

/** 001 and 002: values, envelopes of every source, and errors of both kinds. */
const envelopeOperations = [
  spec("task.create", {
    outputSchema: Type.Object({ id: Type.String(), title: Type.String() }),
    handler: () => ({ id: "123", title: "My task" }),
  }),
  spec("task.local", { handler: () => localEnvelope({ id: "123" }, "task.other") }),
  spec("task.http", {
    handler: () =>
      httpEnvelope(
        { id: "123" },
        {
          statusCode: 200,
          headers: { "content-type": "application/json" },
          contentType: "application/json",
        },
      ),
  }),
  spec("task.mcp", {
    handler: () => mcpEnvelope({ id: "123" }, { isError: false, content: [{ type: "text", text: "Done" }] }),
  }),
  spec("task.mcpError", { handler: () => mcpEnvelope(CONTENT, { isError: true, content: CONTENT }) }),
  spec("task.broken", {
    handler: () => {
      throw new Error("a private matter");
    },
  }),
  spec("task.refused", {
    handler: () => {
      throw new CallError("NOT_FOUND", "There is no such task.");
    },
  }),
];

interface Row {
  readonly id: string;
  readonly outcome: "ok" | "tool_error";
  readonly data: unknown;
  /** What `meta.waybill` holds at least. */
  readonly facts?: object;
}

const SAID_MATCHES = {
  status: "ok",
  summary: "1 match in 1 file",
  details: ["4: waybill"],
  nextSteps: ["Read the full excerpt."],
  truncated: true,
  tokenUsage: { inline: 12, total: 90 },
  rateLimit: { remaining: 9, resetSeconds: 60 },
  content: [{ type: "text", text: "```\nwaybill\n```" }, EXCERPT],
};

const ROWS: readonly Row[] = [
  {
    id: "te.design",
    outcome: "ok",
    data: workflow,
    facts: { said: { content: [{ type: "text", text: "## System design\n\n- one step planned" }] } },
  },
  {
    id: "te.fail",
    outcome: "tool_error",
    data: undefined,
    facts: {
      code: "ERR_INPUT_SCHEMA",
      message: failure.message,
      said: { category: "validation", recoverable: true, suggestedAction: failure.suggestedAction },
    },
  },
  {
    id: "te.failOwnWords",
    outcome: "tool_error",
    data: undefined,
    facts: { code: "ERR_INPUT_SCHEMA", said: { nextTool: "te_design" } },
  },
  {
    id: "cs.security_scan",
    outcome: "ok",
    data: { success: true, risk_level: "high", findings: [] },
    facts: { said: { capabilities: ["envelope-v1", "incremental"], upgradeHints: [HINT] } },
  },
  {
    id: "cs.extract_code",
    outcome: "tool_error",
    data: extractExample.data,
    facts: { code: "not_found", message: extractExample.error?.error },
  },
  {
    id: "tr.search",
    outcome: "ok",
    data: { matches: [{ line: 4, text: "waybill" }], truncated: true },
    facts: { said: SAID_MATCHES },
  },
  {
    id: "tr.fail",
    outcome: "tool_error",
    data: { matches: [], truncated: false, errorCode: "INDEX_MISSING" },
    facts: {
      code: "INDEX_MISSING",
      said: {
        status: "error",
        summary: "The index is not ready",
        nextSteps: ["Build the index first.", "Then search again."],
      },
    },
  },
  {
    id: "tr.structured",
    outcome: "ok",
    data: { matches: [{ line: 4, text: "waybill" }], truncated: false },
    facts: { said: { status: "ok", summary: "Search: 1 match" } },
  },
  {
    id: "tr.legacy",
    outcome: "ok",
    data: {
      title: "Search",
      statusMessage: "slow",
      sections: ["The index is old."],
      jsonData: { age: 3 },
    },
    facts: { said: { status: "warn", summary: "Search: slow" } },
  },
  {
    id: "tr.preview",
    outcome: "ok",
    data: { matches: expect.any(Array), truncated: true },
    facts: {
      said: {
        summary: "Many matches",
        truncated: true,
        content: [expect.objectContaining({ type: "resource_link" })],
      },
    },
  },
  { id: "task.create", outcome: "ok", data: { id: "123", title: "My task" } },
  { id: "task.local", outcome: "ok", data: { id: "123" } },
  { id: "task.http", outcome: "ok", data: { id: "123" } },
  { id: "task.mcp", outcome: "ok", data: { id: "123" } },
  { id: "task.mcpError", outcome: "tool_error", data: CONTENT },
];

const warnings: RegistryWarning[] = [];
const registry = new OperationRegistry(
  [...toolEnvelopeOperations, ...tieredOperations, ...statusOperations, ...envelopeOperations],
  { onWarning: (warning) => warnings.push(warning) },
);
const NO_WARNINGS: readonly RegistryWarning[] = [];

describe.each(Object.keys(SURFACES))("the documents' handlers, called over %s", (name) => {
  let surface: Surface;
  beforeAll(async () => {
    surface = (await SURFACES[name]?.(registry)) as Surface;
  });
  afterAll(() => surface.close());

  it.each(ROWS)("X-8 $id ends as its document says, with its data and words", async (row) => {
    const envelope = await surface.executor.execute(row.id, {});
    expect(outcomeOf(envelope)).toBe(row.outcome);
    expect(envelope.data).toEqual(row.data);
    expect(envelope.meta.waybill ?? {}).toMatchObject(row.facts ?? {});
    expect(envelope.meta.waybill ?? {}).not.toHaveProperty("violations");
    expect(warnings).toEqual(NO_WARNINGS);
  });

  it.each([
    ["task.broken", "EXECUTION_ERROR"],
    ["task.refused", "NOT_FOUND"],
  ])("RE-20 %s throws, and that is no result", async (id, code) => {
    const thrown = await surface.executor.execute(id, {}).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(isCallError(thrown)).toBe(true);
    expect(thrown).toMatchObject({ code });
    expect(JSON.stringify(thrown)).not.toContain("private");
  });
});

describe.each(["local", "bus"])("envelopes that a handler returned, over %s", (name) => {
  it("RE-11 pass with their own meta", async () => {
    const surface = (await SURFACES[name]?.(registry)) as Surface;
    const metaOf = async (id: string) => (await surface.executor.execute(id, {})).meta;
    expect(await metaOf("task.create")).toMatchObject({ source: "local", operationId: "task.create" });
    expect(await metaOf("task.local")).toMatchObject({ source: "local", operationId: "task.other" });
    expect(await metaOf("task.http")).toMatchObject({ source: "http", statusCode: 200 });
    expect(await metaOf("task.mcp")).toMatchObject({
      source: "mcp",
      content: [{ type: "text", text: "Done" }],
    });
    expect(await metaOf("task.mcpError")).toMatchObject({ source: "mcp", isError: true, content: CONTENT });
    await surface.close();
  });
});

const textAt = ({ content }: CallToolResult, index: number): string => {
  const block = content[index];
  if (block === undefined || !("text" in block)) throw new Error(`Block ${index} is no text.`);
  return block.text as string;
};

const ADA = { subject: "ada", tier: "pro" } as const;

describe.each(Object.keys(WRITERS))("the documents' handlers, served in their format over %s", (name) => {
  let written: Written;
  beforeAll(async () => {
    written = (await WRITERS[name]?.(registry, ADA)) as Written;
  });
  afterAll(() => written.close());
  const calledAs = (id: string) => (name.startsWith("MCP") ? id.replace(".", "_") : id);

  it.each([
    ["te.design", "## System design\n\n- one step planned", workflow],
    ["te.fail", renderToolError(failure), failure],
    [
      "te.failOwnWords",
      "## That did not work\n\nSee the block below.",
      { ...failure, nextTool: "te_design" },
    ],
  ])("X-8 TE-3 %s has the text and the payload that its handler gave", async (id, markdown, payload) => {
    const served = await written.write("tool-envelope", id);
    expect(served.content).toHaveLength(2);
    expect(textAt(served, 0)).toBe(markdown);
    const block = parseEnvelopeBlock(textAt(served, 1));
    expect(JSON.stringify(block.payload)).toBe(JSON.stringify(payload));
    // Who answered, and when, is the call's to say.
    expect(block.meta).toEqual({ tool: calledAs(id), ts: expect.any(String), version: 1 });
    expect(block.meta.ts).not.toBe("2025-06-17T18:30:00Z");
    expect(served.isError).toBe(id === "te.design" ? undefined : true);
  });

  it("X-8 CS-2 CS-3 CS-4 a tiered success has the call's tier, tool, request and duration, and the handler's rest", async () => {
    const requestId = scanExample.request_id.replaceAll("8", "f");
    const served = await written.write("tiered-envelope", "cs.security_scan", {}, { requestId });
    expect(served.isError).not.toBe(true);
    expect(JSON.parse(textAt(served, 0))).toEqual(served.structuredContent);
    const { duration_ms, ...envelope } = parseTieredEnvelope(served.structuredContent);
    expect(envelope).toEqual({
      tier: "pro",
      tool_version: "3.2.8",
      tool_id: calledAs("cs.security_scan"),
      request_id: requestId,
      capabilities: ["envelope-v1", "incremental"],
      error: null,
      upgrade_hints: [HINT],
      data: { success: true, risk_level: "high", findings: [] },
    });
    expect(duration_ms).toBeLessThan(123_456);
  });

  it("X-8 CS-5 a tiered error keeps its message, code and data", async () => {
    const served = await written.write("tiered-envelope", "cs.extract_code");
    expect(served.isError).toBe(true);
    const { error, data, request_id, tier } = parseTieredEnvelope(served.structuredContent);
    expect({ error, data }).toEqual({ error: extractExample.error, data: extractExample.data });
    expect([tier, request_id]).toEqual(["pro", expect.stringMatching(/^[0-9a-f]{32}$/)]);
  });

  it.each([
    ["tr.search", composeMatches],
    ["tr.fail", composeFailure],
    ["tr.structured", buildStructured],
    ["tr.legacy", buildLegacy],
  ])("X-8 TR-2 %s is served as the helper made it, byte for byte", async (id, make) => {
    const served = await written.write("status-envelope", id);
    const { content, structuredContent, isError } = make();
    expect(served).toMatchObject({ content, structuredContent, isError });
    // The clients of the SDKs put the members of a block into an order of their own.
    if (name.startsWith("MCP")) return;
    const { content: sent, structuredContent: structured } = served;
    expect(JSON.stringify([sent, structured])).toBe(JSON.stringify([content, structuredContent]));
  });

  const crossed: readonly (readonly [string, ToolFormat])[] = [
    "te.fail",
    "cs.extract_code",
    "tr.fail",
  ].flatMap((id) =>
    (["tool-envelope", "tiered-envelope", "status-envelope", "mcp"] as const).map((to) => [id, to] as const),
  );
  it.each(crossed)("X-8 the error of %s is an error in %s", async (id, format) => {
    const served = await written.write(format, id);
    expect(served.isError).toBe(true);
    expect(JSON.stringify(served.content)).not.toContain("✅");
  });
});

describe("an API behind a registry", () => {
  it("RE-25 an HTTP status that says error throws, and one that says success has the envelope of HTTP", async () => {
    const server = createServer(({ url }, response) => {
      response.statusCode = url === "/task/1" ? 200 : 404;
      response.setHeader("content-type", "application/json").end(JSON.stringify({ id: "1" }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const parameters = [{ name: "id", in: "path", required: true, schema: { type: "string" } }];
    const document = {
      openapi: "3.1.0",
      info: { title: "Tasks", version: "1" },
      paths: { "/task/{id}": { get: { operationId: "read", parameters, responses: {} } } },
    };
    const { port } = server.address() as AddressInfo;
    const source = await fromOpenApi(document, { namespace: "tasks", baseUrl: `http://127.0.0.1:${port}` });
    const tasks = new OperationRegistry();
    tasks.registerAll(source);
    const found = await tasks.execute("tasks.read", { id: "1" });
    expect(found).toMatchObject({ data: { id: "1" }, meta: { source: "http", statusCode: 200 } });
    await expect(tasks.execute("tasks.read", { id: "2" })).rejects.toMatchObject({ code: "NOT_FOUND" });
    await source.close();
    await new Promise((resolve) => server.close(resolve));
  });
});

/** What handlers of SDK servers return: the published formats as JSON has them, without our mark. */
const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value));
const tieredResult = (envelope: unknown, isError: boolean) => ({
  content: [{ type: "text", text: JSON.stringify(envelope) }],
  structuredContent: envelope,
  ...(isError && { isError }),
});

interface Moved {
  readonly name: string;
  readonly value: object;
  readonly outcome: "ok" | "tool_error";
  readonly data: unknown;
  readonly facts?: object;
  /** What the warning advises where the reader is missing; nothing where there is none. */
  readonly fix?: string;
}

const READER = "returns: createResultReader()";
const MOVED: readonly Moved[] = [
  {
    name: "sdkError",
    value: { content: CONTENT, isError: true },
    outcome: "tool_error",
    data: CONTENT,
    fix: READER,
  },
  {
    name: "sdkStructured",
    value: { content: [{ type: "text", text: "{}" }], structuredContent: { n: 1 } },
    outcome: "ok",
    data: { n: 1 },
  },
  {
    name: "toolEnvelope",
    value: copy(toToolResult({ summaryMarkdown: "Planned.", payload: workflow, meta: { tool: "t" } })),
    outcome: "ok",
    data: workflow,
    facts: { said: { content: [{ type: "text", text: "Planned." }] } },
    fix: READER,
  },
  {
    name: "toolEnvelopeError",
    value: copy(toToolResult({ payload: failure, meta: { tool: "t" } })),
    outcome: "tool_error",
    data: undefined,
    facts: { code: failure.code, message: failure.message },
    fix: READER,
  },
  {
    name: "tiered",
    value: tieredResult(scanExample, false),
    outcome: "ok",
    data: scanExample.data,
    fix: READER,
  },
  {
    name: "tieredError",
    value: tieredResult(extractExample, true),
    outcome: "tool_error",
    data: extractExample.data,
    facts: { code: "not_found", message: extractExample.error?.error },
    fix: READER,
  },
  {
    name: "status",
    value: copy(composeMatches()),
    outcome: "ok",
    data: composeMatches().structuredContent.data,
    facts: { said: SAID_MATCHES },
    fix: READER,
  },
  {
    name: "statusError",
    value: copy(composeFailure()),
    outcome: "tool_error",
    data: composeFailure().structuredContent.data,
    facts: { code: "INDEX_MISSING", said: { summary: "The index is not ready" } },
    fix: READER,
  },
];

describe.each(Object.keys(SURFACES))("handlers moved over from an SDK server, called over %s", (name) => {
  const heard: RegistryWarning[] = [];
  let surface: Surface;
  beforeAll(async () => {
    const returns = createResultReader();
    const moved = new OperationRegistry(
      MOVED.map(({ name: id, value }) => spec(`sdk.${id}`, { returns, handler: async () => value })),
      { onWarning: (warning) => heard.push(warning) },
    );
    surface = (await SURFACES[name]?.(moved)) as Surface;
  });
  afterAll(() => surface.close());

  it.each(MOVED)(
    "X-8 $name is read where the operation says so",
    async ({ name: id, outcome, data, facts }) => {
      const envelope = await surface.executor.execute(`sdk.${id}`, {});
      expect(outcomeOf(envelope)).toBe(outcome);
      expect(envelope.data).toEqual(data);
      expect(envelope.meta.waybill ?? {}).toMatchObject(facts ?? {});
      expect(heard).toEqual(NO_WARNINGS);
    },
  );
});

describe.each(Object.keys(SURFACES))("the same handlers without a reader, called over %s", (name) => {
  const heard: RegistryWarning[] = [];
  let surface: Surface;
  beforeAll(async () => {
    const unread = new OperationRegistry(
      MOVED.map(({ name: id, value }) => spec(`sdk.${id}`, { handler: () => value })),
      { onWarning: (warning) => heard.push(warning) },
    );
    surface = (await SURFACES[name]?.(unread)) as Surface;
  });
  afterAll(() => surface.close());

  it.each(MOVED)("X-8 $name is data, and warned of once with the fix", async ({ name: id, value, fix }) => {
    let envelope: ResponseEnvelope | undefined;
    for (let i = 0; i < 2; i++) envelope = await surface.executor.execute(`sdk.${id}`, {});
    expect(envelope && outcomeOf(envelope)).toBe("ok");
    expect(envelope?.data).toEqual(value);
    const own = heard.filter(({ operationId }) => operationId === `sdk.${id}`);
    expect(own.map(({ type }) => type)).toEqual(fix === undefined ? [] : ["result-unmarked"]);
    if (fix !== undefined) expect(own[0]?.message).toContain(fix);
  });
});
