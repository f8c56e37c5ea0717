import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { refusal } from "../../../test/sample-results.ts";
import { CallError, compileSchema } from "../../index.ts";
import {
  decodeToolResult,
  ENVELOPE_LIMITS,
  ENVELOPE_PREFIX,
  FORMATS,
  MCP_ERROR_CATEGORIES,
  McpErrorPayloadSchema,
  parseEnvelopeBlock,
  renderToolError,
  toErrorPayload,
  toToolResult,
  WorkflowEnvelopePayloadSchema,
} from "../index.ts";

/** The examples of the published specification: what they hold and their exact bytes. */
const { examples } = JSON.parse(
  readFileSync(new URL("./published-examples.json", import.meta.url), "utf8"),
) as { examples: { payload: never; meta: { tool: string; ts: string; version: 1 }; block: string }[] };

const block = (json: string) => ENVELOPE_PREFIX + Buffer.from(json).toString("base64");
const META = '"meta":{"tool":"t","ts":"2025-01-01T00:00:00Z","version":1}';

describe("the published examples", () => {
  it.each(examples)("TE-1 TE-2 are written byte for byte: $meta.tool", ({ payload, meta, block: text }) => {
    const { content } = toToolResult({ summaryMarkdown: "## Title", payload, meta });
    expect(content).toEqual([
      { type: "text", text: "## Title" },
      { type: "text", text },
    ]);
  });

  it.each(examples)("TE-2 are read back: $meta.tool", ({ payload, meta, block: text }) => {
    expect(parseEnvelopeBlock(text)).toEqual({ payload, meta });
  });

  it("TE-7 fit their schemas", () => {
    const [workflow, failure] = examples;
    expect(compileSchema(WorkflowEnvelopePayloadSchema).check(workflow?.payload)).toBe(true);
    expect(compileSchema(McpErrorPayloadSchema).check(failure?.payload)).toBe(true);
    expect(compileSchema(WorkflowEnvelopePayloadSchema).check(failure?.payload)).toBe(false);
    expect(compileSchema(McpErrorPayloadSchema).check(workflow?.payload)).toBe(false);
  });
});

describe("reading a block", () => {
  it("TE-3 says what a block without the prefix is", () => {
    expect(() => parseEnvelopeBlock("hello")).toThrow("not an envelope block");
  });

  it.each([
    ["not_an_envelope", ` ${block(`{"payload":1,${META}}`)}`],
    ["not_an_envelope", "__ENVELOPE_V01__:e30="],
    ["not_an_envelope", "__ENVELOPE_V__:e30="],
    ["unsupported_version", "__ENVELOPE_V2__:e30="],
    ["bad_base64", `${ENVELOPE_PREFIX}e30`],
    ["bad_base64", `${ENVELOPE_PREFIX}e3-_`],
    ["bad_base64", `${ENVELOPE_PREFIX}e31=`],
    ["bad_base64", `${ENVELOPE_PREFIX}e30=e30=`],
    ["bad_utf8", `${ENVELOPE_PREFIX}/w==`],
    ["bad_utf8", block(`\uFEFF{"payload":1,${META}}`)],
    ["bad_json", ENVELOPE_PREFIX],
    ["bad_json", block("{")],
    ["bad_json", block(`{"payload":${"[".repeat(512)}${"]".repeat(512)},${META}}`)],
    ["bad_shape", block("[]")],
    ["bad_shape", block(`{${META}}`)],
    ["bad_shape", block('{"payload":1,"meta":{"tool":"t","ts":1,"version":1}}')],
    ["bad_shape", block('{"payload":1,"meta":{"tool":"t","ts":"","version":"1"}}')],
    ["bad_shape", block('{"payload":1,"meta":{"ts":"","version":1}}')],
    ["version_mismatch", block('{"payload":1,"meta":{"tool":"t","ts":"","version":2}}')],
  ])("TE-4 has its own error for %s", (code, text) => {
    expect(refusal(() => parseEnvelopeBlock(text))).toBe(code);
  });

  it.each([
    ["not_an_envelope", "hello", "not an envelope block"],
    ["unsupported_version", "__ENVELOPE_V2__:e30=", "version 2 is not supported; pass acceptVersion"],
    ["bad_base64", `${ENVELOPE_PREFIX}!`, "not RFC 4648 base64"],
    ["bad_utf8", `${ENVELOPE_PREFIX}/w==`, "does not hold UTF-8"],
    ["bad_utf8", block(`\uFEFF{"payload":1,${META}}`), "begins with a byte order mark"],
    ["bad_json", block("{"), "does not hold JSON. The text is not JSON."],
    ["bad_shape", block("[]"), 'not an object with "payload" and "meta"'],
    ["bad_shape", block('{"payload":1,"meta":{}}'), 'lacks "tool" (text), "ts" (text) or "version" (number)'],
    [
      "version_mismatch",
      block('{"payload":1,"meta":{"tool":"t","ts":"","version":2}}'),
      "prefix says version 1, its meta says 2",
    ],
  ])("TE-4 says in words what is wrong, and of which format: %s", (code, text, words) => {
    expect(() => parseEnvelopeBlock(text)).toThrow(
      expect.objectContaining({ code, format: "tool-envelope", message: expect.stringContaining(words) }),
    );
  });

  it("TE-4 keeps the parser's complaint as the cause, and only there", () => {
    const thrown = (text: string) => {
      try {
        return parseEnvelopeBlock(text);
      } catch (error) {
        return error as Error;
      }
    };
    expect(thrown(block("{"))).toHaveProperty("cause.cause", expect.any(SyntaxError));
    expect(thrown("hello")).not.toHaveProperty("cause");
    expect(() => parseEnvelopeBlock(`${ENVELOPE_PREFIX}AAAA`, { maxBytes: 1 })).toThrow(
      "more than 1 bytes; raise maxBytes",
    );
  });

  it.each([undefined, null, 7, {}, ["__ENVELOPE_V1__:"]])("TE-3 takes %j for no envelope block", (value) => {
    expect(refusal(() => parseEnvelopeBlock(value as never))).toBe("not_an_envelope");
  });

  it.each(["A", "AAAAA", "AAAAB", "A===", "AA=", "AAA==", "====", "AAAA=", "A=AA", "AA=A", "AAAA!", "!AAA"])(
    "TE-4 leaves %s refused when it reads leniently",
    (encoded) => {
      expect(refusal(() => parseEnvelopeBlock(ENVELOPE_PREFIX + encoded, { lenient: true }))).toBe(
        "bad_base64",
      );
    },
  );

  it("TE-4 reads a later version when the policy says so", () => {
    const text = block('{"payload":1,"meta":{"tool":"t","ts":"","version":2}}').replace("V1", "V2");
    expect(parseEnvelopeBlock(text, { acceptVersion: (version) => version <= 2 })).toMatchObject({
      payload: 1,
    });
    expect(refusal(() => parseEnvelopeBlock(text, { acceptVersion: () => false }))).toBe(
      "unsupported_version",
    );
  });

  it("TE-4 asks the policy about a later version in meta too, behind the prefix of version 1", () => {
    const text = block('{"payload":1,"meta":{"tool":"t","ts":"","version":2}}');
    const asked: number[] = [];
    const acceptVersion = (version: number) => asked.push(version) > 0;
    expect(parseEnvelopeBlock(text, { acceptVersion }).meta.version).toBe(2);
    expect(asked).toEqual([1, 2]);
    expect(refusal(() => parseEnvelopeBlock(text, { acceptVersion: (version) => version === 1 }))).toBe(
      "version_mismatch",
    );
    const result = {
      content: [
        { type: "text", text: "One" },
        { type: "text", text },
      ],
    };
    expect(decodeToolResult(result, { acceptVersion })).toMatchObject({ format: "tool-envelope", data: 1 });
  });

  it("TE-5 keeps unknown fields, whatever their names", () => {
    const text = block(
      '{"payload":{"__proto__":1},"meta":{"tool":"t","ts":"","version":1,"x":2},"constructor":3}',
    );
    const { payload, meta, extra } = parseEnvelopeBlock(text);
    expect(JSON.stringify({ payload, meta, extra })).toBe(
      '{"payload":{"__proto__":1},"meta":{"tool":"t","ts":"","version":1,"x":2},"extra":{"constructor":3}}',
    );
  });

  it("TE-6 refuses a block over the size cap before decoding it, at one byte over", () => {
    const json = `{"payload":"é",${META}}`;
    const bytes = Buffer.byteLength(json);
    expect(parseEnvelopeBlock(block(json), { maxBytes: bytes }).payload).toBe("é");
    expect(refusal(() => parseEnvelopeBlock(block(json), { maxBytes: bytes - 1 }))).toBe("too_large");
    const junk = `${ENVELOPE_PREFIX}${"!".repeat(Math.ceil((ENVELOPE_LIMITS.bytes + 1) / 3) * 4)}`;
    expect(refusal(() => parseEnvelopeBlock(junk))).toBe("too_large");
  });

  it("TE-3 lets a lenient reader put up with sloppy base64, and says with what", () => {
    const text = `${ENVELOPE_PREFIX}${Buffer.from(`\uFEFF{"payload":"??>>!",${META}}`).toString("base64url")}`;
    const { payload, tolerated } = parseEnvelopeBlock(`${text.slice(0, 40)}\n${text.slice(40)} `, {
      lenient: true,
    });
    expect(payload).toBe("??>>!");
    expect(tolerated).toEqual(["whitespace", "url_alphabet", "missing_padding", "bom"]);
  });

  it.each(["", "x", "2025-06-17T18:30:00Z", "2025-06-17T18:30:00.123456+02:00", "\u2028"])(
    "TE-3 gives ts %j back byte for byte",
    (ts) => {
      const { content } = toToolResult({ summaryMarkdown: "", payload: null, meta: { tool: "t", ts } });
      expect(parseEnvelopeBlock((content[1] as { text: string }).text).meta.ts).toBe(ts);
    },
  );

  it("TE-3 reads and writes long text of every kind", () => {
    for (const unit of ["a", "é", "漢", "😀", "\ud800", '"', "\u0000"]) {
      for (const count of [1, 1_000, 30_000, 100_000]) {
        const payload = unit.repeat(count);
        const { content } = toToolResult({ summaryMarkdown: "", payload, meta: { tool: "t", ts: "" } });
        expect(parseEnvelopeBlock((content[1] as { text: string }).text).payload === payload).toBe(true);
      }
    }
  });
});

describe("writing a result", () => {
  it("TE-1 stamps the time and the version", () => {
    const before = Date.now();
    const { content, isError } = toToolResult({
      summaryMarkdown: "ok",
      payload: 1,
      meta: { tool: "t", extra: true },
    });
    const { meta } = parseEnvelopeBlock((content[1] as { text: string }).text);
    expect(Date.parse(meta.ts)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(meta.ts)).toBeLessThanOrEqual(Date.now());
    expect(meta).toMatchObject({ tool: "t", version: 1, extra: true });
    expect(isError).toBeUndefined();
  });

  it.each([
    ["NaN", { a: Number.NaN }],
    ["a map", { a: new Map([[1, 2]]) }],
    ["a set", new Set([1])],
    ["bytes", { a: new Uint8Array([1, 2]) }],
    ["no bytes", new Uint8Array()],
    ["an error", { a: new Error("secret") }],
    ["a bigint", 1n],
    ["undefined in a list", [undefined]],
    ["a function in a list", [() => 1]],
    ["undefined", undefined],
  ])("TE-3 refuses %s instead of writing something else", (_, payload) => {
    // Null in the text is what makes a value worth a second look.
    expect(refusal(() => toToolResult({ summaryMarkdown: "", payload, meta: { tool: "t" } }))).toBe(
      "not_json",
    );
  });

  it.each([
    null,
    { a: null },
    {},
    { a: {} },
    { "0": 1 },
    "null",
    Object.create(null),
    new Date(0),
    [],
    { a: undefined },
  ])("TE-3 writes %j as JSON does", (payload) => {
    const { content } = toToolResult({ summaryMarkdown: "", payload, meta: { tool: "t", ts: "" } });
    const read = parseEnvelopeBlock((content[1] as { text: string }).text).payload;
    expect(JSON.stringify(read)).toBe(JSON.stringify(payload));
  });

  it("TE-3 asks for the summary people need", () => {
    expect(() => toToolResult({ payload: 1, meta: { tool: "t" } })).toThrow("needs a summaryMarkdown");
  });
});

describe("errors", () => {
  const payload = {
    category: "validation",
    code: "ERR_INPUT_SCHEMA",
    message: "The provided context does not match schema.",
    details: "path.to.field is required",
    recoverable: true,
    suggestedAction: "Provide all required fields and retry.",
  };

  it("TE-8 carry both blocks and the flag, and render as published", () => {
    const result = toToolResult({ payload, meta: { tool: "mcp", ts: "" } });
    expect(result.isError).toBe(true);
    expect(result.content).toEqual([
      {
        type: "text",
        text: "❌ Validation error [ERR_INPUT_SCHEMA]: The provided context does not match schema.\nDetails: path.to.field is required\nSuggestion: Provide all required fields and retry.",
      },
      { type: "text", text: expect.stringMatching(/^__ENVELOPE_V1__:/) },
    ]);
  });

  it("TE-7 TE-8 render all nine categories, and unknown ones", () => {
    const render = (category: string) => renderToolError({ category, code: "C", message: "m" });
    expect(MCP_ERROR_CATEGORIES.map(render)).toEqual([
      "❌ Validation error [C]: m",
      "❌ Execution error [C]: m",
      "❌ Timeout error [C]: m",
      "❌ Model error [C]: m",
      "❌ Network error [C]: m",
      "❌ Authorization error [C]: m",
      "❌ Rate limit error [C]: m",
      "❌ Not found error [C]: m",
      "❌ Internal error [C]: m",
    ]);
    expect(render("quantum_decoherence")).toBe("❌ Quantum decoherence error [C]: m");
    expect(render("")).toBe("❌ Unknown error [C]: m");
  });

  it("TE-5 keep unknown categories and fields through a round trip", () => {
    const odd = { ...payload, category: "quantum", severity: 3, nextTool: "fix" };
    const result = toToolResult({ payload: odd, meta: { tool: "mcp", ts: "" } });
    const { error } = decodeToolResult(result);
    expect(error).toMatchObject({ category: "quantum", extra: { severity: 3 }, nextTool: "fix" });
    const again = FORMATS["tool-envelope"].encode(FORMATS["tool-envelope"].decode(result).result);
    expect(parseEnvelopeBlock((again.content[1] as { text: string }).text).payload).toEqual(odd);
  });

  it("TE-8 are made of anything thrown, without foreign text or stacks", () => {
    const secret = new Error("secret at /home/ada/app.ts:3");
    expect(toErrorPayload(secret)).toEqual({
      category: "execution",
      code: "EXECUTION_ERROR",
      message: "The operation failed unexpectedly.",
      recoverable: false,
    });
    const known = new CallError("TIMEOUT", "Too slow.", { details: { waitedMs: 5 }, cause: secret });
    expect(toErrorPayload(known, { suggestedAction: "Wait.", nextTool: "status" })).toEqual({
      category: "timeout",
      code: "TIMEOUT",
      message: "Too slow.",
      details: '{"waitedMs":5}',
      recoverable: true,
      suggestedAction: "Wait.",
      nextTool: "status",
    });
  });

  it("TE-8 show the stack of the original when debugging is asked for, and then only", () => {
    const secret = new Error("boom");
    expect(toErrorPayload(secret, { debug: true }).details).toContain("tool-envelope.test.ts");
    expect(toErrorPayload("text", { debug: true }).details).toBe("text");
    expect(JSON.stringify(toErrorPayload(secret))).not.toContain("boom");
  });
});
