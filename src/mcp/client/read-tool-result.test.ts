import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isMarkedEnvelope, isResponseEnvelope, type MCPResponseMeta } from "../../core/envelope/envelope.ts";
import { ERROR_CODES } from "../../core/errors/error-codes.ts";
import { type CallError, isCallError } from "../../core/errors/errors.ts";
import { asJson } from "../../core/json/json-value.ts";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import { toWire } from "../../core/wire/wire.ts";
import { createResultReader, toToolResult } from "../../formats/index.ts";
import { readToolResult, schemaInside, valueInside } from "./read-tool-result.ts";

const READING = { tool: "t" };
const text = (value: string) => ({ type: "text", text: value });

function thrown(run: () => unknown): CallError {
  try {
    run();
  } catch (error) {
    if (isCallError(error)) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe("readToolResult", () => {
  it.each([null, 0, false, "", [], {}, { a: 1 }, "text", 42])(
    "RE-23 data is the structured content by presence: %j",
    (structuredContent) => {
      const { data, meta } = readToolResult({ content: [text("x")], structuredContent }, READING);
      expect(data).toEqual(structuredContent);
      expect(meta).toEqual({
        source: "mcp",
        isError: false,
        content: [text("x")],
        structuredContent,
        waybill: { obtained: "structured-content" },
      });
    },
  );

  it("RE-23 data is the mapped content blocks without structured content", () => {
    const content = [text("a"), { type: "hologram" }];
    const { data, meta } = readToolResult({ content, _meta: { "x/y": 1 } }, READING);
    expect(data).toEqual([text("a"), text('{"type":"hologram"}')]);
    expect(meta).toMatchObject({ _meta: { "x/y": 1 }, waybill: { obtained: "content" } });
    expect(Object.hasOwn(meta, "structuredContent")).toBe(false);
  });

  it("RE-23 isError comes back as an envelope, and only true is true", () => {
    expect(readToolResult({ content: [text("no")], isError: true }, READING).meta.isError).toBe(true);
    for (const isError of [false, null, undefined]) {
      expect(readToolResult({ content: [], isError }, READING).meta.isError).toBe(false);
    }
    for (const isError of ["true", 1, "false", "", 0, {}, []]) {
      const { meta } = readToolResult({ content: [], isError }, READING);
      expect([meta.isError, meta.waybill?.unknown]).toEqual([true, { isError }]);
    }
  });

  it.each([null, undefined, "x", 1, []])(
    "RE-23 what is no result is OUTPUT_INVALID, and kept as the cause: %j",
    (result) => {
      const error = thrown(() => readToolResult(result, READING));
      expect(error.code).toBe("OUTPUT_INVALID");
      expect(error.details).toMatchObject({ tool: "t" });
      expect(error.cause).toBe(result);
    },
  );

  it.each([
    [{ message: "Hi." }, { message: "Hi." }],
    [{ toolResult: 1 }, { toolResult: 1 }],
    [{ content: "x" }, { content: "x" }],
    [
      { content: null, more: 1 },
      { content: null, more: 1 },
    ],
    [{ a: 1, _meta: { "x/y": 1 }, resultType: "complete" }, { a: 1 }],
    [{ isError: true }, {}],
    [{}, {}],
  ])("RE-23 the members of a result without content are its data: %j", (result, data) => {
    const envelope = readToolResult(result, READING);
    expect(envelope).toMatchObject({ data, meta: { content: [], waybill: { obtained: "members" } } });
    expect(envelope.meta.isError).toBe("isError" in result);
    expect(envelope.meta.waybill).not.toHaveProperty("unknown");
  });

  it("RE-23 keeps members beside content that MCP does not define", () => {
    const beside = { total: 3, items: [1], __proto__x: 1 };
    const { data, meta } = readToolResult({ content: [], ...beside, isError: "true" }, READING);
    expect([data, meta.isError, meta.waybill?.unknown]).toEqual([[], true, { ...beside, isError: "true" }]);
    const odd = readToolResult({ content: "x", structuredContent: 1 }, READING);
    expect([odd.data, odd.meta.waybill?.unknown]).toEqual([1, { content: "x" }]);
  });

  it("RE-23 takes structured content without content, of which nothing is lost", () => {
    expect(readToolResult({ structuredContent: 1 }, READING)).toMatchObject({
      data: 1,
      meta: { content: [] },
    });
  });

  it("Mcp: takes 512 levels, and refuses one more", () => {
    const nested = (levels: number) => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    // The result itself is one of them.
    expect(readToolResult({ content: [], structuredContent: nested(511) }, READING).meta.isError).toBe(false);
    const error = thrown(() => readToolResult({ content: [], structuredContent: nested(512) }, READING));
    expect(error.code).toBe("OUTPUT_INVALID");
    expect(thrown(() => readToolResult({ content: nested(1_000_000) }, READING)).code).toBe("OUTPUT_INVALID");
  });

  it("X-2 any JSON makes an envelope that passes for one, or OUTPUT_INVALID", () => {
    const block = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constant(text("x")));
    const result = fc.record(
      {
        content: fc.array(block, { maxLength: 4 }),
        structuredContent: fc.jsonValue(),
        isError: fc.jsonValue(),
        _meta: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(result, (value) => {
        try {
          const envelope = readToolResult(value, READING);
          expect(isMarkedEnvelope(envelope) && isResponseEnvelope(envelope)).toBe(true);
        } catch (error) {
          expect(isCallError(error) && error.code).toBe("OUTPUT_INVALID");
        }
      }),
    );
  });
});

describe("readToolResult, JSON in text", () => {
  it("RE-31 takes it only where it was asked for, and says so", () => {
    const result = { content: [text('{"a":1}')] };
    expect(readToolResult(result, READING).meta.waybill).toEqual({ obtained: "content" });
    const recovered = readToolResult(result, { ...READING, recoverJson: true });
    expect(recovered).toMatchObject({ data: { a: 1 }, meta: { waybill: { obtained: "text-json" } } });
  });

  it('RE-31 a schema asks for it too; "42" becomes a number only where one is wanted', () => {
    const result = { content: [text("42")] };
    expect(readToolResult(result, { ...READING, schema: { type: "integer" } }).data).toBe(42);
    expect(readToolResult(result, { ...READING, schema: { type: "string" } }).data).toEqual([text("42")]);
    expect(readToolResult(result, { ...READING, recoverJson: true }).data).toEqual([text("42")]);
  });

  it("RE-31 never where structured content exists, of several blocks, or of an error by its schema", () => {
    const asked = { ...READING, recoverJson: true, schema: { type: "object" } };
    expect(readToolResult({ content: [text("{}")], structuredContent: null }, asked).data).toBeNull();
    expect(readToolResult({ content: [text("{}"), text("{}")] }, asked).data).toHaveLength(2);
    const failed = { content: [text("{}")], isError: true };
    expect(readToolResult(failed, { ...READING, schema: { type: "object" } }).data).toEqual([text("{}")]);
  });
});

describe("readToolResult, wrapped results and published envelopes", () => {
  it("RE-23 unwraps { result } where the schema says so and nothing else is in it", () => {
    const wrapped = { ...READING, wrapped: true };
    expect(readToolResult({ content: [], structuredContent: { result: null } }, wrapped)).toMatchObject({
      data: null,
      meta: { structuredContent: { result: null } },
    });
    expect(readToolResult({ content: [], structuredContent: { result: 1, b: 2 } }, wrapped).data).toEqual({
      result: 1,
      b: 2,
    });
    expect(readToolResult({ content: [], structuredContent: { result: 1 } }, READING).data).toEqual({
      result: 1,
    });
  });

  it("X-2 a reader finds the data of published envelopes", () => {
    const payload = {
      displayName: "W",
      instructionId: "i",
      model: "m",
      steps: [],
      recommendations: [],
      artifacts: [],
    };
    const result = toToolResult({
      summaryMarkdown: "done",
      payload,
      meta: { tool: "t", ts: "2026-01-01T00:00:00.000Z", version: 1 },
    });
    const { data, meta } = readToolResult(result, { ...READING, reader: createResultReader() });
    expect(data).toEqual(payload);
    expect(meta.waybill?.obtained).toBe("envelope-block");
    expect(readToolResult(result, READING).meta.waybill?.obtained).toBe("content");
  });

  it("X-2 a reader that throws has found nothing", () => {
    const reader = {
      read: () => {
        throw new Error("no");
      },
    };
    expect(readToolResult({ content: [], structuredContent: 1 }, { ...READING, reader }).data).toBe(1);
  });
});

describe("readToolResult, what Waybill says of its own results", () => {
  const said = (facts: object, more: object = {}) => ({
    content: [text("No.")],
    _meta: { "dev.waybill/result": facts },
    ...more,
  });

  it("X-4 a call error is thrown with its code, message and details", () => {
    const facts = {
      outcome: "call-error",
      code: "CONFLICT",
      message: "Taken.",
      details: { by: "x" },
      retryable: true,
    };
    const result = said(facts, { isError: true });
    const error = thrown(() => readToolResult(result, { ...READING, isTrusted: true }));
    expect(error).toMatchObject({
      code: "CONFLICT",
      message: "Taken.",
      details: { by: "x" },
      retryable: true,
    });
  });

  it("X-11 a sentence of a server that is not trusted is its words, and no sentence of ours", () => {
    const read = (details: unknown) => {
      const facts = { outcome: "call-error", code: "CONFLICT", message: "Taken.", details };
      return thrown(() => readToolResult(said(facts, { isError: true }), READING));
    };
    expect(read({ by: "x" })).toMatchObject({
      message: ERROR_CODES.CONFLICT.message,
      details: { by: "x", said: "Taken." },
    });
    expect(read(undefined).details).toEqual({ said: "Taken." });
    expect(read({ said: "What stands behind it said this." }).details).toEqual({
      said: "What stands behind it said this.",
    });
  });

  it("X-4 a declared code is one, and no other", () => {
    const facts = { outcome: "call-error", code: "OUT_OF_STOCK" };
    const declared = new Set(["OUT_OF_STOCK"]);
    const result = said(facts, { isError: true });
    expect(thrown(() => readToolResult(result, { ...READING, declared })).code).toBe("OUT_OF_STOCK");
    expect(readToolResult(result, READING).meta.isError).toBe(true);
  });

  it("X-4 a tool error comes back as an envelope with its facts, and its data where it carries some", () => {
    const facts = {
      outcome: "tool-error",
      code: "SOLD_OUT",
      message: "a\u001B[31mb\u202E",
      details: [1],
      wire: toWire({ left: 0n }),
    };
    const content = [text("No."), text(JSON.stringify(asJson({ left: 0n })))];
    const { data, meta } = readToolResult(said(facts, { isError: true, content }), READING);
    expect(data).toEqual({ left: 0n });
    expect(meta.isError).toBe(true);
    expect(meta.waybill).toEqual({ obtained: "content", code: "SOLD_OUT", message: "ab", details: [1] });
    expect((meta as MCPResponseMeta).content).toEqual(content);
  });

  it("X-4 the data an error carries is believed only where a text shows it", () => {
    const wire = toWire({ approved: true });
    const contents = [
      [],
      [text("No.")],
      [text("No."), text('{"approved":false}')],
      [text('It says {"approved":true}.')],
    ];
    for (const content of contents) {
      const result = said({ outcome: "tool-error", wire }, { isError: true, content });
      expect(readToolResult(result, READING).data).toEqual(content);
    }
    const shown = said(
      { outcome: "tool-error", wire },
      { isError: true, content: [text('{"approved":true}')] },
    );
    expect(readToolResult(shown, READING).data).toEqual({ approved: true });
    const above = said(
      { outcome: "tool-error", wire },
      { isError: true, content: [text('{"approved":true}'), text("Next steps:\n- Ask.")] },
    );
    expect(readToolResult(above, READING).data).toEqual({ approved: true });
    const plain = said(
      { outcome: "tool-error", wire: toWire("why") },
      { isError: true, content: [text("why")] },
    );
    expect(readToolResult(plain, READING).data).toBe("why");
    const nothing = { outcome: "tool-error", wire: toWire(undefined) };
    expect(readToolResult(said(nothing, { isError: true }), READING).data).toBeUndefined();
    const something = said(nothing, { isError: true, content: [text("a"), text("b")] });
    expect(readToolResult(something, READING).data).toEqual([text("a"), text("b")]);
  });

  it.each([false, undefined])("X-4 never makes an error of a result whose isError is %s", (isError) => {
    const facts = { outcome: "call-error", code: "TIMEOUT", message: "x" };
    const { meta } = readToolResult(said(facts, { isError, structuredContent: 1 }), READING);
    expect(meta.isError).toBe(false);
    expect(meta.waybill).toEqual({ obtained: "structured-content" });
  });

  it.each([
    { outcome: "call-error" },
    { outcome: "call-error", code: "__proto__" },
    { outcome: "call-error", code: "constructor" },
    { outcome: "other", code: "TIMEOUT" },
    { outcome: "tool-error", code: "two\nlines" },
    { outcome: "tool-error", code: 7 },
    "call-error",
    null,
  ])("X-4 makes nothing of facts that do not hold together: %j", (facts) => {
    const { meta } = readToolResult(said(facts as object, { isError: true }), READING);
    expect(meta.waybill).toEqual({ obtained: "content" });
  });

  it("X-4 bounds what it is told", () => {
    const facts = {
      outcome: "call-error",
      code: "TIMEOUT",
      message: "x".repeat(100_000),
      details: "y".repeat(100_000),
    };
    const trusting = { ...READING, isTrusted: true };
    const error = thrown(() => readToolResult(said(facts, { isError: true }), trusting));
    expect(error.message).toHaveLength(500);
    expect(error.details).toBe("[string of 100000 characters]");
    const { meta } = readToolResult(said({ ...facts, outcome: "tool-error" }, { isError: true }), READING);
    expect(meta.waybill?.message).toHaveLength(8_192);
  });

  it.each([
    [`${"x".repeat(499)}y`, `${"x".repeat(499)}y`],
    [`${"x".repeat(500)}y`, "x".repeat(500)],
    [`${"x".repeat(499)}😀`, "x".repeat(499)],
    ["Send \u202Eit\u001B[2J", "Send it"],
  ])(
    "X-4 the message of an error that is thrown has at most 500 characters, and none is hidden",
    (message, kept) => {
      const facts = { outcome: "call-error", code: "TIMEOUT", message };
      const trusting = { ...READING, isTrusted: true };
      expect(thrown(() => readToolResult(said(facts, { isError: true }), trusting)).message).toBe(kept);
    },
  );

  it("RE-27 tells where the next page is, within bounds", () => {
    const page = (next: unknown) =>
      readToolResult(said({ page: next }, { structuredContent: 1 }), READING).meta.waybill?.page;
    expect(page({ next: "c1", more: 1 })).toEqual({ next: "c1" });
    expect(page({})).toEqual({});
    expect(page({ next: "c".repeat(8_192) })).toEqual({ next: "c".repeat(8_192) });
    for (const odd of [{ next: "c".repeat(8_193) }, { next: 7 }, { next: null }, "c1", null, [1]])
      expect(page(odd)).toBeUndefined();
  });

  it("X-6 the wire form refines data that shows the same, and is ignored where it shows something else", () => {
    const date = new Date(0);
    const wire = toWire({ at: date });
    const visible = { at: date.toISOString() };
    expect(readToolResult(said({ wire }, { structuredContent: visible }), READING).data).toEqual({
      at: date,
    });
    const other = { at: "1999-01-01T00:00:00.000Z" };
    expect(readToolResult(said({ wire }, { structuredContent: other }), READING).data).toEqual(other);
    expect(readToolResult(said({ wire }), READING).data).toEqual([text("No.")]);
    const broken = { $waybill: ["nonsense"] };
    expect(readToolResult(said({ wire: broken }, { structuredContent: 1 }), READING).data).toBe(1);
  });

  it("X-6 a result may say that it is wrapped for clients that take objects alone", () => {
    const result = said({ wrapsResult: true }, { structuredContent: { result: [1] } });
    expect(readToolResult(result, { ...READING, mayWrap: true }).data).toEqual([1]);
    expect(readToolResult(result, READING).data).toEqual({ result: [1] });
    const other = said({ wrapsResult: true }, { structuredContent: { result: [1], more: 1 } });
    expect(readToolResult(other, { ...READING, mayWrap: true }).data).toEqual({ result: [1], more: 1 });
  });

  it("X-6 nothing at all comes back as nothing at all", () => {
    const result = { content: [], _meta: { "dev.waybill/result": { wire: toWire(undefined) } } };
    expect(readToolResult(result, READING).data).toBeUndefined();
  });
});

const wrapper = (inner: unknown, more: object = {}) => ({
  type: "object",
  properties: { result: inner },
  required: ["result"],
  ...more,
});

describe("schemaInside", () => {
  it.each([
    ["a plain schema", wrapper({ type: "integer" }), { type: "integer" }],
    ["anything", wrapper(true), true],
    ["a closed wrapper", wrapper({ type: "string" }, { additionalProperties: false }), { type: "string" }],
    [
      "a marked and titled one",
      wrapper({ type: "array" }, { title: "fooOutput", "x-fastmcp-wrap-result": true }),
      { type: "array" },
    ],
    [
      "a dialect and definitions",
      wrapper(
        { type: "array", items: { $ref: "#/$defs/Row" } },
        { $schema: "x:y", $defs: { Row: { type: "null" } } },
      ),
      { $schema: "x:y", type: "array", items: { $ref: "#/$defs/Row" }, $defs: { Row: { type: "null" } } },
    ],
    [
      "references into the wrapped schema itself",
      wrapper({ anyOf: [{ type: "null" }, { type: "array", items: { $ref: "#/properties/result" } }] }),
      { anyOf: [{ type: "null" }, { type: "array", items: { $ref: "#" } }] },
    ],
    ["a name such as $ref that is data", wrapper({ const: { $ref: "#" } }), { const: { $ref: "#" } }],
  ])("RE-23 takes out of the wrapper %s", (_, schema, inner) => {
    expect(schemaInside(schema, "result")).toEqual(inner);
  });

  it.each([
    ["more properties", { ...wrapper(true), properties: { result: true, more: true } }],
    ["another name", { type: "object", properties: { value: true }, required: ["value"] }],
    ["an optional member", { type: "object", properties: { result: true } }],
    ["an open wrapper that says so", wrapper(true, { additionalProperties: true })],
    ["a rule of its own", wrapper(true, { minProperties: 1 })],
    ["the mark alone", { type: "object", "x-fastmcp-wrap-result": true }],
    ["no type", { properties: { result: true }, required: ["result"] }],
    ["a member that cannot be", wrapper(false)],
    ["a member that is no schema", wrapper("x")],
    ["a reference to the wrapper", wrapper({ anyOf: [{ type: "null" }, { $ref: "#" }] })],
    [
      "a reference from a definition to it",
      wrapper({ $ref: "#/$defs/a" }, { $defs: { a: { not: { $ref: "#" } } } }),
    ],
    ["definitions on both sides", wrapper({ $defs: { a: true } }, { $defs: { b: true } })],
    ["no schema", null],
    ["a boolean", true],
  ])("RE-23 leaves alone what has %s", (_, schema) => {
    expect(schemaInside(schema, "result")).toBeUndefined();
  });

  it("RE-32 gives a schema that still works, in old dialects too", () => {
    const $schema = "http://json-schema.org/draft-07/schema#";
    const schema = wrapper({ $ref: "#/definitions/n" }, { $schema, definitions: { n: { type: "integer" } } });
    const compiled = compileSchema(schemaInside(schema, "result"));
    expect([compiled.check(1), compiled.check("1")]).toEqual([true, false]);
  });
});

describe("valueInside", () => {
  it("RE-23 takes the value of the one member, whatever it is", () => {
    for (const value of [null, 0, false, "", [], undefined]) {
      expect(valueInside({ result: value }, "result")).toEqual({ value });
    }
  });

  it("RE-23 leaves anything else alone", () => {
    for (const value of [{}, { result: 1, more: 2 }, { other: 1 }, [1], null, "result"]) {
      expect(valueInside(value, "result")).toBeUndefined();
    }
  });
});
