import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isMarkedEnvelope } from "../core/envelope/envelope.ts";
import { httpEnvelope, isResponseEnvelope, localEnvelope, Type } from "../index.ts";
import {
  type CallToolResult,
  composeToolPayload,
  type DecodeOptions,
  decodeToolResult,
  FORMAT_NAMES,
  FORMATS,
  isFormatError,
  RESULT_META_KEY,
  toToolResult,
  transcode,
} from "./index.ts";

const text = (value: string) => ({ type: "text", text: value }) as const;
const META = { tool: "t", ts: "2025-01-01T00:00:00Z" };
const envelope = (payload: unknown) => toToolResult({ summaryMarkdown: "## Done", payload, meta: META });
const TIERED = {
  tier: "pro",
  tool_version: "1.0.0",
  tool_id: "scan",
  request_id: "r",
  capabilities: ["envelope-v1"],
  duration_ms: 1,
  error: null,
  upgrade_hints: [],
  data: { risk: 1 },
};
const STATUS = { meta: { status: "ok", summary: "s" }, data: { hits: 1 } };
const withMeta = (result: object, residual: unknown) => ({
  ...result,
  _meta: { [RESULT_META_KEY]: { residual } },
});

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return isFormatError(error) ? error.code : `not a FormatError: ${String(error)}`;
  }
  return "accepted";
}

describe("finding the format", () => {
  it.each([
    ["tool-envelope", "envelope-block", envelope({ a: 1 }), { a: 1 }],
    ["tiered-envelope", "structured-content", { content: [], structuredContent: TIERED }, { risk: 1 }],
    ["tiered-envelope", "contract-json", { content: [text(JSON.stringify(TIERED))] }, { risk: 1 }],
    ["status-envelope", "structured-content", composeToolPayload(STATUS as never), { hits: 1 }],
    [
      "status-envelope",
      "contract-json",
      { content: [text(JSON.stringify(STATUS, null, 2)), text("x")] },
      { hits: 1 },
    ],
    ["response-envelope", "return-value", localEnvelope({ a: 1 }, "n.o"), { a: 1 }],
    [
      "response-envelope",
      "structured-content",
      { content: [], structuredContent: JSON.parse(JSON.stringify(localEnvelope(7, "n.o"))) },
      7,
    ],
    ["mcp", "structured-content", { content: [], structuredContent: { a: 1 } }, { a: 1 }],
    ["mcp", "content", { content: [text("hi")] }, [text("hi")]],
    ["mcp", "content", { content: [text('{"a":1}')] }, [text('{"a":1}')]],
    ["mcp", "content", { content: [] }, []],
  ])("X-2 says %s, obtained from %s", (format, obtained, result, data) => {
    expect(decodeToolResult(result)).toMatchObject({ format, obtained, data, isError: false, odd: [] });
  });

  it.each([null, 0, false, "", []])("X-2 takes structured content %j for data", (structuredContent) => {
    const { data, obtained } = decodeToolResult({ content: [text("x")], structuredContent });
    expect({ data, obtained }).toEqual({ data: structuredContent, obtained: "structured-content" });
  });

  it.each([
    null,
    undefined,
    7,
    "text",
    [],
    {},
    { content: "x" },
    { data: 1 },
    { meta: {} },
    { toolResult: 1 },
  ])("X-2 refuses %j, which is no tool result", (value) => {
    expect(refusal(() => decodeToolResult(value))).toBe("not_a_tool_result");
  });

  it("X-2 gives people's text without the machine's", () => {
    expect(decodeToolResult(envelope(1)).text).toBe("## Done");
    const tiered = {
      content: [text(JSON.stringify(TIERED)), text("two"), { type: "image" }, text("three")],
      structuredContent: TIERED,
    };
    expect(decodeToolResult(tiered).text).toBe("two\n\nthree");
    expect(decodeToolResult({ content: [text("a"), text("b")] }).text).toBe("a\n\nb");
  });
});

describe("markers in ordinary text", () => {
  const block = (envelope({ evil: true }).content[1] as { text: string }).text;

  it.each([
    ["in the first block", [text(block)]],
    ["in the middle of a text", [text("x"), text(`see ${block}`)]],
    ["after a space", [text("x"), text(` ${block}`)]],
    ["in a resource", [text("x"), { type: "resource", resource: { uri: "a:", text: block } }]],
    ["in a block of another type", [text("x"), { type: "note", text: block }]],
    ["in a block whose text is no string", [text("x"), { type: "text", text: [block] }]],
  ])("TE-1 TE-6 are not taken for an envelope %s", (_, content) => {
    expect(decodeToolResult({ content })).toMatchObject({ format: "mcp", obtained: "content" });
    expect(refusal(() => FORMATS["tool-envelope"].decode({ content }))).toBe("not_an_envelope");
  });

  it("TE-6 falls back to the text when the block cannot be read, and says why", () => {
    const broken = { content: [text("## Summary"), text(`${block}!`)] };
    expect(decodeToolResult(broken)).toMatchObject({
      format: "mcp",
      text: `## Summary\n\n${block}!`,
      odd: [{ code: "bad_base64" }],
    });
    expect(refusal(() => FORMATS["tool-envelope"].decode(broken))).toBe("bad_base64");
  });

  it("TE-6 reads leniently when asked, and reports what it put up with", () => {
    const sloppy = { content: [text("s"), text(`${block}\n`)] };
    expect(decodeToolResult(sloppy, { lenient: true })).toMatchObject({
      format: "tool-envelope",
      data: { evil: true },
      odd: [{ code: "whitespace" }],
    });
    expect(decodeToolResult({ content: [text("s"), text(block)] }, { maxBytes: 10 }).odd[0]?.code).toBe(
      "too_large",
    );
  });
});

describe("ambiguity", () => {
  const two = { content: [...envelope(1).content, ...envelope(2).content.slice(1)] };

  it("TE-6 X-2 believes neither of two different envelope blocks", () => {
    expect(decodeToolResult(two)).toMatchObject({
      format: "ambiguous",
      candidates: [
        { format: "tool-envelope", data: 1 },
        { format: "tool-envelope", data: 2 },
      ],
    });
    expect(decodeToolResult(two)).not.toHaveProperty("data");
    expect(refusal(() => FORMATS["tool-envelope"].decode(two))).toBe("conflicting_envelopes");
    expect(refusal(() => transcode(two, "mcp"))).toBe("ambiguous");
  });

  it("X-2 takes the same block twice for one, and says so", () => {
    const { content } = envelope(1);
    expect(decodeToolResult({ content: [...content, content[1]] })).toMatchObject({
      format: "tool-envelope",
      odd: [{ code: "repeated_block" }],
    });
    expect(decodeToolResult({ content: [text("a"), text("b"), content[1]] }).odd).toMatchObject([
      { code: "misplaced_block" },
    ]);
  });

  it("X-2 names both when an envelope block and a contract are there", () => {
    const both = { ...envelope(1), structuredContent: TIERED };
    expect(decodeToolResult(both).candidates?.map(({ format }) => format)).toEqual([
      "tool-envelope",
      "tiered-envelope",
    ]);
    expect(transcode(both, "mcp", { from: "tiered-envelope" })).toMatchObject({
      structuredContent: { risk: 1 },
    });
  });

  it("X-2 names both when one value is two contracts", () => {
    const meta = { status: "ok", summary: "s", source: "local", operationId: "n.o", timestamp: 1 };
    const both = decodeToolResult({ content: [], structuredContent: { meta, data: 1 } });
    expect(both.candidates?.map(({ format }) => format)).toEqual(["status-envelope", "response-envelope"]);
  });

  it("X-2 does not choose between an envelope block and other structured content, unless they agree", () => {
    expect(decodeToolResult({ ...envelope({ a: 1 }), structuredContent: { a: 2 } })).toMatchObject({
      format: "ambiguous",
      candidates: [
        { format: "tool-envelope", data: { a: 1 }, obtained: "envelope-block" },
        { format: "mcp", data: { a: 2 }, obtained: "structured-content" },
      ],
    });
    expect(decodeToolResult({ ...envelope({ a: 1 }), structuredContent: { a: 1 } })).toMatchObject({
      format: "tool-envelope",
      data: { a: 1 },
    });
  });
});

describe("errors", () => {
  const failed = (category: string, recoverable: boolean, code = "X") =>
    decodeToolResult(toToolResult({ payload: { category, code, message: "m", recoverable }, meta: META }))
      .error;
  const advice = (error?: { retryable?: boolean; correctable?: boolean }) => [
    error?.retryable,
    error?.correctable,
  ];

  it.each([
    ["validation", true, [false, true]],
    ["not_found", true, [false, true]],
    ["timeout", true, [true, false]],
    ["network", true, [true, false]],
    ["rate_limit", true, [true, false]],
    ["model", true, [true, false]],
    ["execution", true, [true, false]],
    ["quantum", true, [true, false]],
    ["timeout", false, [false, false]],
    ["validation", false, [false, false]],
  ] as const)("X-2 tells a retry from a correction: %s, recoverable %s", (category, recoverable, wanted) => {
    expect(advice(failed(category, recoverable))).toEqual(wanted);
  });

  it("X-2 prefers a code of the table to a category", () => {
    expect(advice(failed("execution", true, "RATE_LIMITED"))).toEqual([true, false]);
    expect(advice(failed("execution", true, "VALIDATION_ERROR"))).toEqual([false, true]);
  });

  it.each([
    ["timeout", [true, false]],
    ["resource_exhausted", [true, false]],
    ["dependency_unavailable", [true, false]],
    ["invalid_argument", [false, true]],
    ["invalid_path", [false, true]],
    ["too_large", [false, true]],
    ["not_found", [false, true]],
    ["forbidden", [false, false]],
    ["upgrade_required", [false, false]],
    ["internal_error", [false, false]],
    ["melted", [undefined, undefined]],
  ])("X-2 knows what to do about the tiered code %s", (error_code, wanted) => {
    const error = { error: "m", error_code, error_details: null };
    const result = { content: [], structuredContent: { ...TIERED, error }, isError: true };
    expect(advice(decodeToolResult(result).error)).toEqual(wanted);
  });

  it("X-2 takes the text of a plain error for its message", () => {
    expect(decodeToolResult({ content: [text("no such table")], isError: true })).toMatchObject({
      isError: true,
      error: { message: "no such table" },
    });
    expect(decodeToolResult({ content: [], isError: true }).error?.message).toBe("The tool failed.");
  });

  it("X-2 reads an error payload or a tiered error as a failure even where isError is missing, and says so", () => {
    const payload = { category: "timeout", code: "X", message: "m", recoverable: true };
    const { isError: _, ...unflagged } = toToolResult({ payload, meta: META });
    expect(decodeToolResult(unflagged)).toMatchObject({ isError: true, odd: [{ code: "unflagged_error" }] });
    expect(decodeToolResult({ ...unflagged, isError: false })).toMatchObject({
      isError: false,
      data: payload,
    });
    const error = { error: "m", error_code: "timeout", error_details: null };
    expect(decodeToolResult({ content: [], structuredContent: { ...TIERED, error } })).toMatchObject({
      isError: true,
      odd: [{ code: "flag_mismatch" }],
    });
  });

  it.each(["Error: boom", "❌ no", "### Error\nboom", "Failed to fetch", "error searching"])(
    "X-2 notices a failure reported as success, and does not change the outcome: %j",
    (message) => {
      const { isError, odd } = decodeToolResult({ content: [text(message)] });
      expect({ isError, codes: odd.map(({ code }) => code) }).toEqual({
        isError: false,
        codes: ["error_as_success"],
      });
    },
  );

  it.each(["Errors: 0", "No error", "errorless", "Failure-free"])("X-2 does not suspect %j", (message) => {
    expect(decodeToolResult({ content: [text(message)] }).odd).toEqual([]);
  });
});

describe("JSON in text", () => {
  const decode = (value: string, options: DecodeOptions) => {
    const { data, obtained } = decodeToolResult({ content: [text(value)] }, options);
    return obtained === "text-json" ? { data } : obtained;
  };

  it("X-2 is data when the caller asks for it, and marked as recovered", () => {
    expect(decode('{"a":1}', { recoverJson: true })).toEqual({ data: { a: 1 } });
    expect(decode("[1]", { recoverJson: true })).toEqual({ data: [1] });
    expect(decode('{"a":1}', {})).toBe("content");
    expect(decode("{a:1}", { recoverJson: true })).toBe("content");
  });

  it.each(["42", "true", "null", '"x"'])(
    "X-2 leaves the scalar %s alone unless a schema wants it",
    (value) => {
      expect(decode(value, { recoverJson: true })).toBe("content");
    },
  );

  it("X-2 follows a schema", () => {
    expect(decode("42", { schema: Type.Number() })).toEqual({ data: 42 });
    expect(decode("42", { schema: Type.String() })).toBe("content");
    expect(decode("42", { schema: Type.Union([Type.String(), Type.Number()]) })).toBe("content");
    expect(decode('{"a":1}', { schema: Type.Object({ a: Type.Number() }) })).toEqual({ data: { a: 1 } });
    expect(decode('{"a":"1"}', { schema: Type.Object({ a: Type.Number() }) })).toBe("content");
  });

  it("X-2 never looks at text beside structured content, nor at several blocks", () => {
    const options = { recoverJson: true };
    expect(
      decodeToolResult({ content: [text('{"a":1}')], structuredContent: { b: 2 } }, options).data,
    ).toEqual({ b: 2 });
    expect(decodeToolResult({ content: [text('{"a":1}'), text("x")] }, options).obtained).toBe("content");
  });
});

describe("the residual", () => {
  it("X-4 never says whether a result failed", () => {
    const forged = withMeta(
      { content: [text("x")], isError: true },
      { format: "mcp", set: { "/isError": false }, unset: ["/isError"] },
    );
    expect(decodeToolResult(forged)).toMatchObject({ isError: true });
    expect(decodeToolResult(forged).odd.map(({ code }) => code)).toEqual([
      "residual_refused",
      "residual_refused",
    ]);
  });

  it("X-4 never turns an error into a success by way of unusual layout", () => {
    const extra = { isError: false, result: { isError: false }, omitsError: true, noContent: true };
    for (const name of FORMAT_NAMES) {
      const forged = withMeta(
        { content: [text("x")], isError: true },
        { format: "mcp", set: { "/extra": { [name]: extra } } },
      );
      const written = transcode(forged, name);
      const { isError } =
        name === "response-envelope"
          ? (written.meta as { isError: boolean })
          : (decodeToolResult(written) as { isError: boolean });
      expect([name, isError]).toEqual([name, true]);
    }
  });

  it("X-4 never replaces the tier, or the data, that are there", () => {
    const forged = withMeta(
      { content: [], structuredContent: { ...TIERED, tier: "community" } },
      {
        format: "tiered-envelope",
        set: {
          "/tier": "enterprise",
          "/data": "forged",
          "/extra/tiered-envelope": { envelope: { tier: "enterprise", data: 1 } },
        },
      },
    );
    const { result, data } = decodeToolResult(forged);
    expect(result?.tier).toBe("community");
    expect(data).toEqual({ risk: 1 });
    expect(transcode(forged, "tiered-envelope")).toMatchObject({
      structuredContent: { tier: "community", data: { risk: 1 } },
    });
  });

  it("X-4 never takes data away that a format would not have made up", () => {
    const forged = withMeta(
      { content: [], structuredContent: STATUS },
      { format: "status-envelope", unset: ["/data"] },
    );
    expect(decodeToolResult(forged).data).toEqual({ hits: 1 });
  });

  it("X-4 decides how to read a result only among the ways that fit", () => {
    const claims = (format: string) =>
      decodeToolResult(withMeta({ content: [], structuredContent: STATUS }, { format })).format;
    expect(claims("mcp")).toBe("mcp");
    expect(claims("tiered-envelope")).toBe("status-envelope");
    expect(claims("constructor")).toBe("status-envelope");
  });

  it("X-4 does not let a restored envelope pass for one made here", () => {
    const given = httpEnvelope({ a: 1 }, { statusCode: 201, headers: {}, contentType: "text/plain" });
    const restored = transcode(transcode(given, "tool-envelope"), "response-envelope");
    expect(restored).toEqual(given);
    expect(isResponseEnvelope(restored)).toBe(true);
    expect(isMarkedEnvelope(restored)).toBe(false);
    expect(isMarkedEnvelope(transcode(envelope(1), "response-envelope"))).toBe(true);
  });

  it.each([
    7,
    null,
    [],
    { format: 3, set: 7, unset: 8 },
    {
      set: {
        "": 1,
        "/": 1,
        "/__proto__": {},
        "/__proto__/polluted": 1,
        "/error/__proto__": {},
        "/error/message/x": 1,
        data: 1,
      },
    },
    {
      set: {
        "/tier": "gold",
        "/content": "x",
        "/error": { message: 1 },
        "/http": {},
        "/facts": { attempts: "x" },
        "/extra": { mcp: 1 },
      },
    },
    { unset: [1, null, "/nothing", "__proto__"] },
  ])("X-4 survives the malformed residual %j, and reports it", (residual) => {
    const result = { content: [text("x")], structuredContent: { a: 1 } };
    const decoded = decodeToolResult(withMeta(result, residual));
    expect(decoded).toMatchObject({ format: "mcp", data: { a: 1 }, result: { content: [text("x")] } });
    expect(decoded.odd.every(({ code }) => code === "residual_refused")).toBe(true);
    expect(decoded.odd.length).toBeGreaterThan(0);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe("totality", () => {
  const anything = fc.anything({
    withNullPrototype: true,
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSparseArray: true,
  });

  it("X-2 any value gives an answer or a FormatError", () => {
    const result = fc.record(
      { content: anything, structuredContent: anything, isError: anything, _meta: anything },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          anything,
          result,
          result.map((value) => ({ ...value, content: [value, text("__ENVELOPE_V1__:e30=")] })),
        ),
        (value) => {
          for (const read of [decodeToolResult, ...FORMAT_NAMES.map((name) => FORMATS[name].decode)]) {
            try {
              read(value);
            } catch (error) {
              expect(isFormatError(error)).toBe(true);
            }
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });

  const thrower = new Proxy(
    {},
    {
      get() {
        throw new Error("no");
      },
      ownKeys() {
        throw new Error("no");
      },
      getPrototypeOf() {
        throw new Error("no");
      },
    },
  );

  it.each([
    ["a throwing proxy", thrower],
    [
      "a throwing getter",
      {
        get content() {
          throw new Error("no");
        },
      },
    ],
    ["a block that throws", { content: [thrower, thrower] }],
    [
      "structured content that throws",
      {
        content: [],
        structuredContent: {
          data: 1,
          get meta() {
            throw new Error("no");
          },
        },
      },
    ],
  ])("X-2 %s gives a FormatError or an answer, never another error", (_, value) => {
    expect(["unreadable", "not_a_tool_result", "accepted"]).toContain(refusal(() => decodeToolResult(value)));
  });

  it("X-2 deep and wide values are answered in bounded time", () => {
    const deep = JSON.parse(`${"[".repeat(200_000)}${"]".repeat(200_000)}`);
    const before = performance.now();
    for (const result of [
      { content: [], structuredContent: deep },
      { content: [text("x"), text(`__ENVELOPE_V1__:${"A".repeat(1_000_000)}`)] },
      { content: Array.from({ length: 100_000 }, () => text("__ENVELOPE_V1__:e30=")) },
      { content: Array.from({ length: 100_000 }, () => envelope(1).content[1]) },
      { content: [text(`{"data":${"[".repeat(100_000)}`)] },
      { ...envelope(1), structuredContent: deep },
    ]) {
      expect(refusal(() => decodeToolResult(result as CallToolResult))).not.toContain("not a FormatError");
      for (const name of FORMAT_NAMES)
        expect(refusal(() => transcode(result, name))).not.toContain("not a FormatError");
    }
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});
