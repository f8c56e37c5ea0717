import { describe, expect, it } from "vitest";
import {
  CallError,
  defineOperation,
  ERROR_CODES,
  httpEnvelope,
  mcpEnvelope,
  OperationRegistry,
  type OperationSpec,
  Type,
} from "../index.ts";
import {
  type CallToolResult,
  createToolCaller,
  FORMATS,
  TIERED_ERROR_CODES,
  type TieredEnvelope,
  toolOutputSchema,
} from "./index.ts";

const FIELDS = [
  "tier",
  "tool_version",
  "tool_id",
  "request_id",
  "capabilities",
  "duration_ms",
  "error",
  "upgrade_hints",
  "data",
];

/** What no error may ever repeat. */
const SECRET = "const apiKey = 'hunter2'; // SECRET_SOURCE";

const base = {
  namespace: "code",
  version: "3.2.8",
  type: "query",
  description: "Looks at code.",
  inputSchema: Type.Object({ path: Type.Optional(Type.String()), deep: Type.Optional(Type.Boolean()) }),
} as const;

/** One operation for each way to fail, every one of which quotes the source. */
const leaky: Record<string, OperationSpec["handler"]> = {
  error: () => {
    throw new Error(SECRET, { cause: new Error(SECRET) });
  },
  text: () => {
    throw SECRET;
  },
  call: () => {
    const cause = new Error(SECRET);
    throw new CallError("NOT_FOUND", `No such thing in ${SECRET}`, {
      details: { source: SECRET, [SECRET]: 1 },
      cause,
    });
  },
  declared: () => {
    throw new CallError("PARSE_FAILED", SECRET, { details: { source: SECRET } });
  },
  undeclared: () => {
    throw new CallError("SOMETHING_ELSE", SECRET);
  },
  http: () =>
    httpEnvelope(
      { line: 3 },
      {
        statusCode: 404,
        headers: {},
        isError: true,
        waybill: { code: "NOT_FOUND", message: SECRET, details: { source: SECRET } },
      },
    ),
  code: () =>
    httpEnvelope(null, {
      statusCode: 500,
      headers: {},
      isError: true,
      waybill: { code: SECRET, message: SECRET },
    }),
  mcp: () =>
    mcpEnvelope([{ type: "text", text: SECRET }], {
      isError: true,
      content: [{ type: "text", text: SECRET }],
      _meta: { source: SECRET },
    }),
  aggregate: async () => {
    throw new AggregateError([new SyntaxError(SECRET)], SECRET);
  },
};

const registry = new OperationRegistry([
  ...Object.entries(leaky).map(([name, handler]) =>
    defineOperation({
      ...base,
      name: `fail-${name}`,
      errors: { PARSE_FAILED: { description: "The file cannot be parsed." } },
      handler,
    } as OperationSpec),
  ),
  defineOperation({
    ...base,
    name: "scan",
    handler: () => ({ risk: "high" }),
    outputSchema: Type.Object({ risk: Type.String() }),
  }),
  defineOperation({ ...base, name: "id", handler: (_, { requestId }) => requestId }),
  defineOperation({
    ...base,
    name: "slow",
    handler: async () => {
      await new Promise((done) => setTimeout(done, 30));
      return null;
    },
  }),
  defineOperation({ ...base, name: "audit", tier: "enterprise", handler: () => 1 }),
  defineOperation({
    ...base,
    name: "gated",
    features: [{ name: "deep", tier: "pro", reason: "Deep scans take long.", pointer: "/deep" }],
    handler: () => 1,
  }),
  defineOperation({
    ...base,
    name: "upgrade",
    handler: () => {
      throw new CallError("UPGRADE_REQUIRED");
    },
  }),
]);

const callTool = createToolCaller(registry, {
  format: "tiered-envelope",
  capabilities: ["ranges", "envelope-v1"],
});

function envelopeOf(result: CallToolResult): TieredEnvelope {
  const [first] = result.content as unknown as { text: string }[];
  expect(JSON.parse(String(first?.text))).toEqual(result.structuredContent);
  expect(result.isError === true).toBe(
    (result.structuredContent as unknown as TieredEnvelope).error !== null,
  );
  return result.structuredContent as unknown as TieredEnvelope;
}

const call = async (name: string, input: unknown = {}, options = {}) =>
  envelopeOf(await callTool(`code.${name}`, input, options));

describe("a wrapped operation", () => {
  it("CS-1 CS-11 answers with nine fields in order, as structured content and as the first text", async () => {
    const envelope = await call("scan", {}, { identity: { subject: "ada", tier: "pro" }, requestId: "r-1" });
    expect(Object.keys(envelope)).toEqual(FIELDS);
    expect(envelope).toEqual({
      tier: "pro",
      tool_version: "3.2.8",
      tool_id: "code.scan",
      request_id: "r-1",
      capabilities: ["envelope-v1", "ranges"],
      duration_ms: expect.any(Number),
      error: null,
      upgrade_hints: [],
      data: { risk: "high" },
    });
  });

  it("CS-1 answers with the same nine fields on error", async () => {
    for (const name of Object.keys(leaky)) expect(Object.keys(await call(`fail-${name}`))).toEqual(FIELDS);
    expect(Object.keys(await call("nowhere"))).toEqual(FIELDS);
  });

  it.each([
    [undefined, "community"],
    [{ subject: "a" }, "community"],
    [{ subject: "a", tier: "gold" }, "community"],
    [{ subject: "a", tier: "enterprise" }, "enterprise"],
  ])("CS-2 takes the tier of %j for %s", async (identity, tier) => {
    expect(await call("scan", {}, { identity })).toMatchObject({ tier });
  });

  it("CS-3 takes the caller's request id over, and the handler sees the same", async () => {
    expect(await call("id", {}, { requestId: "mine" })).toMatchObject({ request_id: "mine", data: "mine" });
  });

  it.each([undefined, "", "a b", "x".repeat(201), "line\nbreak"])(
    "CS-3 makes 32 hex digits in place of %j, and the handler sees the same",
    async (requestId) => {
      const { request_id, data } = await call("id", {}, { requestId });
      expect(request_id).toMatch(/^[0-9a-f]{32}$/);
      expect(data).toBe(request_id);
    },
  );

  it("CS-4 counts asynchronous work on a clock that never goes back", async () => {
    const now = Date.now;
    Date.now = () => 0;
    try {
      const start = performance.now();
      const { duration_ms = 0 } = await call("slow");
      expect(duration_ms).toBeGreaterThan(25);
      expect(duration_ms).toBeLessThanOrEqual(Math.ceil(performance.now() - start));
    } finally {
      Date.now = now;
    }
  });

  it("CS-8 answers upgrade_required with a hint, for an operation and for a feature", async () => {
    expect(await call("audit")).toMatchObject({
      error: { error_code: "upgrade_required", error_details: null },
      upgrade_hints: [{ feature: "code.audit", tier: "enterprise", reason: expect.any(String) }],
      data: null,
    });
    expect(await call("gated", { deep: true })).toMatchObject({
      error: { error_code: "upgrade_required" },
      upgrade_hints: [{ feature: "deep", tier: "pro", reason: "Deep scans take long." }],
    });
    expect(await call("gated", { deep: true }, { identity: { subject: "a", tier: "pro" } })).toMatchObject({
      data: 1,
    });
  });

  it("CS-8 hints at something even when the handler that asks for an upgrade says nothing", async () => {
    expect((await call("upgrade")).upgrade_hints).toHaveLength(1);
  });

  it("CS-7 maps every code of the table to a registered one, by the code and never by the message", async () => {
    for (const [code, { tieredCode }] of Object.entries(ERROR_CODES)) {
      const encoded = FORMATS["tiered-envelope"].encode({
        isError: true,
        error: { message: "timeout not found", code },
      });
      expect((encoded.structuredContent as unknown as TieredEnvelope).error?.error_code).toBe(tieredCode);
      expect(TIERED_ERROR_CODES).toContain(tieredCode);
    }
  });

  it("CS-11 writes a semantic version even for a tool that has none", () => {
    const { structuredContent } = FORMATS["tiered-envelope"].encode({
      isError: false,
      toolVersion: "latest",
    });
    expect(structuredContent).toMatchObject({ tool_version: "0.0.0", capabilities: ["envelope-v1"] });
  });

  it("CS-11 advertises a schema of the envelope that admits success and error", async () => {
    const operation = registry.get("code.scan");
    if (operation === undefined) throw new Error("missing");
    const schema = toolOutputSchema(operation, "tiered-envelope") as never as {
      "~standard": { validate(value: unknown): Promise<{ issues?: unknown }> };
    };
    const { validate } = schema["~standard"];
    expect((await validate(await call("scan"))).issues).toBeUndefined();
    expect((await validate(await call("fail-error"))).issues).toBeUndefined();
    expect((await validate({ ...(await call("scan")), data: { risk: 1 } })).issues).not.toBeUndefined();
  });
});

describe("code contents", () => {
  it.each(Object.keys(leaky))("CS-6 stay out of the error of fail-%s", async (name) => {
    const result = await callTool(`code.fail-${name}`, {});
    expect(JSON.stringify(result)).not.toMatch(/hunter2|SECRET_SOURCE|at .*\.ts/);
    expect(result.isError).toBe(true);
  });

  it("CS-6 stay out of what is said about a bad input", async () => {
    const result = await callTool("code.scan", { path: 1, [SECRET]: SECRET, deep: SECRET });
    expect(JSON.stringify(result)).not.toContain("SECRET_SOURCE");
    expect(envelopeOf(result).error).toEqual({
      error: "The input does not match what the operation declares.",
      error_code: "invalid_argument",
      error_details: { issues: expect.arrayContaining([{ pointer: "/path" }, { pointer: "/deep" }]) },
    });
  });

  it("CS-6 stay out of the name of an operation that is not there", async () => {
    expect((await call("nowhere")).error).toMatchObject({
      error: "There is no such operation.",
      error_code: "not_found",
    });
  });

  it("CS-5 CS-6 leave a declared error its declared description, and the data a handler returned on purpose", async () => {
    expect((await call("fail-declared")).error).toEqual({
      error: "The file cannot be parsed.",
      error_code: "internal_error",
      error_details: null,
    });
    expect(await call("fail-http")).toMatchObject({ data: { line: 3 }, error: { error_code: "not_found" } });
    expect(await call("fail-call")).toMatchObject({ data: null });
  });

  it("CS-5 lets through what the author exposes on purpose", async () => {
    const open = createToolCaller(registry, {
      format: "tiered-envelope",
      exposeError: ({ code }) =>
        code === "NOT_FOUND" ? { message: "No such file.", details: { kind: "file" } } : undefined,
    });
    expect(envelopeOf(await open("code.fail-http", {})).error).toEqual({
      error: "No such file.",
      error_code: "not_found",
      error_details: { kind: "file" },
    });
    expect(envelopeOf(await open("code.fail-error", {})).error?.error).toBe(
      "The operation failed unexpectedly.",
    );
  });
});
