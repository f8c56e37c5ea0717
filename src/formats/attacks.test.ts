import { describe, expect, it } from "vitest";
import { cpuMs } from "../../test/cpu-ms.ts";
import { envelope, refusal, STATUS, TIERED, text, withMeta } from "../../test/sample-results.ts";
import {
  CallError,
  defineOperation,
  httpEnvelope,
  OperationRegistry,
  type OperationSpec,
  Type,
} from "../index.ts";
import {
  type CallToolResult,
  createToolCaller,
  createToolResponseEnvelopeSchema,
  decodeToolResult,
  FORMATS,
  parseEnvelopeBlock,
  type ToolFormat,
  toolOutputSchema,
  toToolResult,
  transcode,
} from "./index.ts";

const codes = (value: unknown) => decodeToolResult(value).odd.map(({ code }) => code);
const TOOL_FORMATS: readonly ToolFormat[] = ["tool-envelope", "tiered-envelope", "status-envelope", "mcp"];
const SECRET = "SECRET_SOURCE";

describe("a residual that takes something away to put something else in its place", () => {
  const community = { content: [], structuredContent: { ...TIERED, tier: "community", data: null } };

  it("X-4 does not raise the tier", () => {
    const forged = withMeta(community, { unset: ["/tier"], set: { "/tier": "enterprise" } });
    expect(decodeToolResult(forged).result?.tier).not.toBe("enterprise");
    expect(transcode(forged, "tiered-envelope").structuredContent?.["tier"]).toBe("community");
    expect(codes(forged)).toContain("residual_refused");
  });

  it("X-4 does not lower a tier that no format makes up", () => {
    const forged = withMeta({ content: [], structuredContent: TIERED }, { unset: ["/tier"] });
    expect(decodeToolResult(forged).result?.tier).toBe("pro");
  });

  it("X-4 does not replace data, not even null", () => {
    const forged = withMeta(community, { unset: ["/data"], set: { "/data": { admin: true } } });
    expect(decodeToolResult(forged).data).not.toEqual({ admin: true });
  });

  it("X-4 does not say who answered whom where the envelope says it", () => {
    const forged = withMeta(community, { set: { "/tool": "bank.transfer", "/requestId": "forged" } });
    expect(decodeToolResult(forged).result).toMatchObject({ tool: "scan", requestId: "r" });
  });

  it("X-4 is not silent about content other than what is shown", () => {
    const forged = withMeta(
      { content: [text("benign")] },
      { format: "mcp", set: { "/content": [text("evil")] } },
    );
    expect(codes(forged)).toEqual(["content_replaced"]);
  });
});

describe("unusual layout from a residual", () => {
  const failed = { content: [text("boom")], isError: true };

  it.each([false, null])("X-4 never keeps an error from being written as one: %s", (isError) => {
    for (const name of TOOL_FORMATS) {
      const forged = withMeta(failed, {
        format: "mcp",
        set: { [`/extra/${name}`]: { isError, omitsError: true } },
      });
      expect([name, transcode(forged, name)]).toMatchObject([name, { isError: true }]);
    }
  });

  it("CS-11 never writes an envelope without its capability, its version or its error", () => {
    const extra = { lacksCapability: true, oddVersion: true, omitsError: true };
    const forged = withMeta(failed, { set: { "/extra/tiered-envelope": extra, "/toolVersion": "banana" } });
    expect(transcode(forged, "tiered-envelope").structuredContent).toMatchObject({
      capabilities: ["envelope-v1"],
      tool_version: "0.0.0",
      error: { error_code: "internal_error" },
    });
  });

  it("TE-1 never repeats a block without end", () => {
    const at = Array.from({ length: 20_000 }, () => 1);
    const forged = withMeta({ content: [text("x")] }, { set: { "/extra/tool-envelope": { at } } });
    expect(transcode(forged, "tool-envelope").content).toHaveLength(2);
  });

  it("X-4 never slips in data, content or an outcome", () => {
    const result = { structuredContent: { evil: 1 }, content: [text("evil")], isError: true, ttlMs: 5 };
    for (const name of TOOL_FORMATS) {
      const extra = { result, structured: { evil: 1 } };
      const forged = withMeta(
        { content: [text("x")] },
        { format: "mcp", set: { [`/extra/${name}`]: extra } },
      );
      const written = transcode(forged, name);
      expect(JSON.stringify({ ...written, _meta: 0 })).not.toContain("evil");
      expect([name, written.isError === true, written["ttlMs"]]).toEqual([name, false, 5]);
    }
  });

  it("X-2 survives keys and values nobody expects", () => {
    const odd = { toString: 0, valueOf: 0 };
    for (const residual of [{ unset: [odd] }, { set: { "/extra/response-envelope": { wire: true } } }]) {
      const forged = withMeta({ content: [], structuredContent: { $waybill: ["x"] } }, residual);
      expect(decodeToolResult(forged).data).toEqual({ $waybill: ["x"] });
    }
  });
});

describe("claims about the format", () => {
  it("X-2 do not settle which of two envelope blocks is right", () => {
    const two = { content: [...envelope(1).content, ...envelope(2).content.slice(1)] };
    expect(decodeToolResult(withMeta(two, { format: "tool-envelope" })).format).toBe("ambiguous");
  });

  it("X-2 do not settle whether the block or the structured content is right", () => {
    const both = { ...envelope(1), structuredContent: { a: 2 } };
    expect(decodeToolResult(withMeta(both, { format: "tool-envelope" })).format).toBe("ambiguous");
  });

  it("X-2 are told where they change how a result is read", () => {
    const claimed = withMeta({ content: [], structuredContent: STATUS }, { format: "mcp" });
    expect(codes(claimed)).toEqual(["format_claimed"]);
  });
});

describe("base64 and text", () => {
  it("TE-4 wide characters do not pass for the letters they end in", () => {
    const block = (envelope({ a: 1 }).content[1] as { text: string }).text;
    const letters = block.slice(16);
    const wide = [...letters].map((letter) => String.fromCharCode(0x4100 + letter.charCodeAt(0))).join("");
    expect(refusal(() => parseEnvelopeBlock(block.slice(0, 16) + wide))).toBe("bad_base64");
    for (const at of [0, 5, letters.length - 1]) {
      const one = letters.slice(0, at) + wide.charAt(at) + letters.slice(at + 1);
      expect(refusal(() => parseEnvelopeBlock(block.slice(0, 16) + one))).toBe("bad_base64");
      expect(refusal(() => parseEnvelopeBlock(block.slice(0, 16) + one, { lenient: true }))).toBe(
        "bad_base64",
      );
    }
  });

  it("TE-4 depth counts in the text, also under a key that is given again", () => {
    const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    const json = (levels: number) =>
      `{"payload":${deep(levels)},"payload":1,"meta":{"tool":"t","ts":"","version":1}}`;
    const read = (levels: number) =>
      parseEnvelopeBlock(`__ENVELOPE_V1__:${Buffer.from(json(levels)).toString("base64")}`);
    expect(read(511).payload).toBe(1);
    expect(refusal(() => read(512))).toBe("bad_json");
    const strings = JSON.stringify({ payload: "[{".repeat(2_000), meta: { tool: "t", ts: "", version: 1 } });
    const block = `__ENVELOPE_V1__:${Buffer.from(strings).toString("base64")}`;
    expect(parseEnvelopeBlock<string>(block).payload).toHaveLength(4_000);
  });

  it("X-2 thousands of different envelope blocks are answered at once", () => {
    const content = Array.from({ length: 20_000 }, (_, i) => envelope(i).content[1]);
    const before = cpuMs();
    expect(decodeToolResult({ content }).format).toBe("ambiguous");
    expect(cpuMs() - before).toBeLessThan(2_000);
  });

  it("TE-6 people's text leaves out what is for the machine, and nothing else", () => {
    const tiered = { content: [text("{3 files} scanned"), text("more")], structuredContent: TIERED };
    expect(decodeToolResult(tiered).text).toBe("{3 files} scanned\n\nmore");
    const pretty = {
      content: [text(JSON.stringify(TIERED, null, 2)), text("more")],
      structuredContent: TIERED,
    };
    expect(decodeToolResult(pretty).text).toBe("more");
  });
});

describe("round trips of unusual results", () => {
  const { data, ...others } = TIERED;
  const REORDERED = { data, ...others };
  const annotated = { ...envelope(1).content[1], annotations: { priority: 1 }, _meta: { a: 1 } };

  it.each([
    ["tool-envelope", { content: [text("x"), annotated] }],
    ["tiered-envelope", { content: [text(JSON.stringify(REORDERED))], structuredContent: REORDERED }],
    ["mcp", { content: [], structuredContent: { $waybill: ["bigint", "1"] } }],
    [
      "response-envelope",
      { data: 1, meta: { source: "local", operationId: "a.b", timestamp: 1, later: true }, more: 2 },
    ],
    [
      "response-envelope",
      { data: 0, meta: { source: "http", statusCode: 200, headers: {}, contentType: "", later: [] } },
    ],
  ] as const)("X-3 %s comes back from every format: %j", (from, carrier) => {
    for (const to of Object.keys(FORMATS) as (keyof typeof FORMATS)[]) {
      expect(transcode(transcode(carrier, to, { from }), from)).toEqual(carrier);
    }
  });
});

const base = { namespace: "a", version: "1.0.0", type: "query", description: "Tries." } as const;
const operation = (name: string, spec: Partial<OperationSpec>) =>
  defineOperation({ ...base, name, handler: () => null, ...spec } as OperationSpec);

describe("operations behind a format", () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const unwritable: Record<string, unknown> = {
    function: () => 1,
    cycle,
    error: new Error(SECRET),
    proxy: new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error(SECRET);
        },
      },
    ),
  };

  it.each(TOOL_FORMATS)("X-2 never throw, whatever the handler returns: %s", async (format) => {
    for (const [name, value] of Object.entries(unwritable)) {
      const registry = new OperationRegistry([operation(name, { handler: () => value })], {
        outputPolicy: "off",
      });
      const result = await createToolCaller(registry, { format })(`a.${name}`);
      expect([name, result.isError]).toEqual([name, true]);
      expect(JSON.stringify(result)).not.toContain(SECRET);
    }
  });

  it.each(TOOL_FORMATS)("TR-4 CS-11 write data as its schema describes it: %s", async (format) => {
    const outputSchema = Type.Object({
      n: Type.Number(),
      at: Type.String(),
      b: Type.Optional(Type.String()),
    });
    const handler = () => ({ n: -0, at: new Date(0), b: undefined });
    const op = operation("odd", { outputSchema, handler, outputPolicy: "off" });
    const result = await createToolCaller(new OperationRegistry([op]), { format })(op);
    const { data } = decodeToolResult(JSON.parse(JSON.stringify(result)));
    expect(data).toEqual({ n: 0, at: "1970-01-01T00:00:00.000Z" });
    const schema = toolOutputSchema(op, format);
    const checked = await schema?.["~standard"].validate(
      JSON.parse(JSON.stringify(result.structuredContent ?? null)),
    );
    expect(checked && "issues" in checked ? checked.issues : undefined).toBeUndefined();
  });

  it.each(TOOL_FORMATS)("CS-6 keep headers and cookies of where a result came from: %s", async (format) => {
    const handler = () =>
      httpEnvelope(null, { statusCode: 500, headers: { x: SECRET }, setCookie: [SECRET], isError: true });
    const registry = new OperationRegistry([operation("http", { handler })]);
    expect(JSON.stringify(await createToolCaller(registry, { format })("a.http"))).not.toContain(SECRET);
  });

  it("CS-6 hint only at what the operation declares", async () => {
    const upgradeHints = [{ feature: SECRET, tier: SECRET, reason: SECRET }];
    const handler = () => {
      throw new CallError("UPGRADE_REQUIRED", SECRET, { details: { upgradeHints } });
    };
    const registry = new OperationRegistry([operation("up", { handler, tier: "community" })]);
    const result = await createToolCaller(registry, { format: "tiered-envelope" })("a.up");
    expect(JSON.stringify(result)).not.toContain(SECRET);
    expect(result.structuredContent?.["upgrade_hints"]).toHaveLength(1);
  });

  it("CS-6 say nothing a caller or handler made up: ids, pointers, what exposing throws", async () => {
    const handler = () => {
      const issues = [
        { pointer: `/${SECRET}` },
        { pointer: "/4111111/11111111" },
        { pointer: { toString: 1 } },
      ];
      throw new CallError("VALIDATION_ERROR", SECRET, { details: { issues } });
    };
    const op = operation("bad", { handler, inputSchema: Type.Any() });
    const exposeError = () => {
      throw new Error(SECRET);
    };
    const callTool = createToolCaller(new OperationRegistry([op]), {
      format: "tiered-envelope",
      exposeError,
    });
    for (const id of ["a.bad", `a.${SECRET}`, `${SECRET}()`]) {
      expect(JSON.stringify(await callTool(id, {}))).not.toMatch(/SECRET_SOURCE|4111111/);
    }
  });

  it("CS-8 CS-9 a default does not open a gate", async () => {
    const inputSchema = Type.Object({ deep: Type.Optional(Type.Boolean({ default: true })) });
    const features = [{ name: "deep", tier: "pro", pointer: "/deep" }] as const;
    const registry = new OperationRegistry([
      operation("gate", { inputSchema, features, handler: (input) => input }),
    ]);
    await expect(registry.execute("a.gate", {})).rejects.toMatchObject({ code: "UPGRADE_REQUIRED" });
    expect(await registry.execute("a.gate", { deep: false })).toMatchObject({ data: { deep: false } });
    const identity = { subject: "ada", tier: "pro" };
    expect(await registry.execute("a.gate", {}, { identity })).toMatchObject({ data: { deep: true } });
  });

  it("X-5 keep the code, the data and the hints of a failure in every format", async () => {
    const { toolError } = await import("../index.ts");
    const handler = () => toolError({ why: 1 }, { code: "CONFLICT", message: "Taken." });
    const registry = new OperationRegistry([operation("no", { handler })]);
    for (const format of TOOL_FORMATS) {
      const result: CallToolResult = await createToolCaller(registry, { format })("a.no");
      const { error, data } = decodeToolResult(result);
      expect([format, error?.code, error?.correctable, data]).toEqual([format, "CONFLICT", true, { why: 1 }]);
    }
  });

  it("TR-3 refuses a format that is no tool result", () => {
    const registry = new OperationRegistry([]);
    expect(() => createToolCaller(registry, { format: "response-envelope" as never })).toThrow(
      "no tool result",
    );
    expect(() => createToolCaller(registry, { format: "status" as never })).toThrow(
      'There is no format "status"',
    );
    expect(() => transcode({ content: [] }, "status" as never)).toThrow('There is no format "status"');
  });
});

describe("schemas with references of every kind", () => {
  const issues = async (schema: object, data: unknown) => {
    const envelopeSchema = createToolResponseEnvelopeSchema(schema);
    const result = await envelopeSchema["~standard"].validate({
      meta: { status: "ok", summary: "s" },
      data,
    } as never);
    return "issues" in result ? (result.issues?.length ?? 0) : 0;
  };

  it.each([
    ["$dynamicRef to the root", { properties: { v: { type: "number" }, n: { $dynamicRef: "#" } } }],
    [
      "$dynamicRef to a definition",
      { properties: { v: { $dynamicRef: "#/$defs/v" } }, $defs: { v: { type: "number" } } },
    ],
    [
      "an unknown place",
      {
        properties: { v: { $ref: "#/components/v" } },
        components: { v: { $ref: "#/components/w" }, w: { type: "number" } },
      },
    ],
    [
      "$recursiveRef",
      {
        $schema: "https://json-schema.org/draft/2019-09/schema",
        properties: { v: { type: "number" }, n: { $recursiveRef: "#" } },
      },
    ],
  ])("TR-4 %s", async (_, schema) => {
    expect(await issues(schema, { v: 1, n: { v: 1 } })).toBe(0);
    expect(await issues(schema, { v: "1" })).toBeGreaterThan(0);
  });
});

describe("the writer", () => {
  it("TE-1 asks a value once how it is written, and tells it its key", () => {
    const asked: unknown[] = [];
    const witness = { toJSON: (key: string) => asked.push(key) };
    const rows = Array.from({ length: 100 }, (_, i) => i as unknown);
    rows[70] = witness;
    toToolResult({ summaryMarkdown: "", payload: { rows, own: witness }, meta: { tool: "t", ts: "" } });
    expect(asked).toEqual(["70", "own"]);
  });
});
