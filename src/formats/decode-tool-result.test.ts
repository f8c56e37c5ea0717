import { describe, expect, it } from "vitest";
import { envelope, refusal, STATUS, TIERED, text } from "../../test/sample-results.ts";
import { localEnvelope } from "../index.ts";
import { composeToolPayload, decodeToolResult, FORMATS, transcode } from "./index.ts";

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
      text: "## Summary",
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

describe("people's text", () => {
  const block = (envelope(1).content[1] as { text: string }).text;
  const json = (value: object) => text(JSON.stringify(value));
  const local = { data: 1, meta: { source: "local", operationId: "a.b", timestamp: 1 } };
  const mcp = {
    data: 1,
    meta: { source: "mcp", isError: false, content: [text("inner")], structuredContent: 1 },
  };

  it.each([
    ["a status envelope in text", { content: [json(STATUS), text("more")] }, "more"],
    ["a response envelope in text", { content: [json(local), text("more")] }, "more"],
    [
      "a status envelope beside text",
      { content: [text("one"), text("two")], structuredContent: STATUS },
      "one\n\ntwo",
    ],
    [
      "a status envelope and a broken block",
      { content: [json(STATUS), text(`${block}!`), text("more")] },
      "more",
    ],
    ["an envelope by itself", mcp, "inner"],
    ["a local envelope by itself", local, ""],
    [
      "a tiered envelope beside other JSON",
      { content: [text('{"a":1}')], structuredContent: TIERED },
      '{"a":1}',
    ],
    ["a tiered envelope beside broken JSON", { content: [text("{")], structuredContent: TIERED }, "{"],
    ["an ambiguous result", { content: [text("one"), text(block)], structuredContent: TIERED }, "one"],
    ["structured content alone", { structuredContent: 1 }, ""],
  ])("TE-6 of %s", (_, result, expected) => {
    expect(decodeToolResult(result).text).toBe(expected);
  });

  it("X-2 of a failure that only reads like one is noticed in plain results alone", () => {
    const failing = { ...STATUS, meta: { status: "warn", summary: "s" } };
    expect(
      decodeToolResult({ content: [text("Error: x")], structuredContent: failing, isError: false }).odd,
    ).toEqual([]);
    expect(decodeToolResult({ content: [text("Error: x")], isError: true }).odd).toEqual([]);
    expect(decodeToolResult({ content: [text("fine")] })).not.toHaveProperty("error");
    expect(
      decodeToolResult({ content: [], structuredContent: { errorCode: 7 }, isError: true }).error,
    ).not.toHaveProperty("code");
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
    expect(decodeToolResult(two).odd).toEqual([
      { code: "conflicting_envelopes", message: "The result holds different envelope blocks." },
    ]);
    const broken = { content: [text("x"), text("__ENVELOPE_V1__:!"), text("__ENVELOPE_V1__:?")] };
    expect(decodeToolResult(broken)).toMatchObject({
      format: "mcp",
      odd: [{ code: "bad_base64" }, { code: "bad_base64" }],
    });
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

describe("an isError that is no boolean", () => {
  it.each(["true", "false", 1, 0, {}, []])("X-2 is read as an error, and noted: %j", (isError) => {
    const value = { content: [{ type: "text", text: "no" }], isError };
    const { isError: read, odd } = decodeToolResult(value as never);
    expect([read, odd.map(({ code }) => code)]).toEqual([true, ["odd_flag"]]);
  });

  it("X-2 counts as absent where it is null", () => {
    const value = { content: [{ type: "text", text: "fine" }], isError: null };
    expect(decodeToolResult(value as never)).toMatchObject({ isError: false, odd: [] });
  });
});
