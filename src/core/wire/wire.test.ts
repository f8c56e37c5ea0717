import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import type { MCPContentBlock } from "../envelope/content-block.ts";
import {
  httpEnvelope,
  isMarkedEnvelope,
  localEnvelope,
  mcpEnvelope,
  type ResponseEnvelope,
  toolError,
  withFacts,
} from "../envelope/envelope.ts";
import { CallError } from "../errors/errors.ts";
import { isPlainObject } from "../json/json-value.ts";
import { decodeEnvelope, encodeEnvelope, fromWire, toWire, WIRE_LIMITS } from "./wire.ts";

const overTheWire = (value: unknown): unknown => fromWire(JSON.parse(JSON.stringify(toWire(value))));

/** What can cross, nested in every way: containers hold each other and the reserved key. */
const { crossing } = fc.letrec((tie) => ({
  crossing: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.jsonValue(),
    fc.double(),
    fc.bigInt(),
    fc.date({ noInvalidDate: true }),
    fc.uint8Array({ maxLength: 10 }),
    fc.constantFrom(undefined, -0, Number.NaN, Number.POSITIVE_INFINITY, "\ud800"),
    fc.array(tie("crossing"), { maxLength: 4 }),
    fc.dictionary(
      fc.oneof(fc.string(), fc.constantFrom("$waybill", "__proto__", "toString")),
      tie("crossing"),
      {
        maxKeys: 4,
        noNullPrototype: true,
      },
    ),
    fc
      .array(fc.tuple(fc.oneof(fc.string(), fc.bigInt(), tie("crossing")), tie("crossing")), { maxLength: 3 })
      .map((entries) => new Map(entries)),
    fc.array(tie("crossing"), { maxLength: 3 }).map((items) => new Set(items)),
  ),
}));

const text = fc.string();
const meta = fc.dictionary(text, crossing, { maxKeys: 3, noNullPrototype: true });
const blocks: fc.Arbitrary<MCPContentBlock[]> = fc.array(
  fc.oneof(
    text.map((value) => ({ type: "text" as const, text: value })),
    text.map((value) => ({ type: "image" as const, data: value, mimeType: "image/png" })),
    text.map((value) => ({ type: "audio" as const, data: value, mimeType: "audio/wav" })),
    text.map((value) => ({ type: "resource" as const, resource: { uri: value, text: value } })),
    text.map((value) => ({ type: "resource_link" as const, uri: value, name: value, size: 3 })),
  ),
  { maxLength: 3 },
);

const facts = fc.record(
  {
    durationMs: fc.nat(),
    attempts: fc.nat(),
    cursor: text,
    code: text,
    details: crossing.filter((v) => v !== undefined),
  },
  { noNullPrototype: true, requiredKeys: [] },
);

const envelopes: fc.Arbitrary<ResponseEnvelope> = fc
  .oneof(
    fc.tuple(crossing, text).map(([data, id]) => localEnvelope(data, id)),
    fc
      .tuple(crossing, fc.record({ code: text, details: crossing.map((fact) => ({ fact })) }))
      .map(([data, why]) => toolError(data, why)),
    fc
      .tuple(
        crossing,
        fc.record(
          {
            statusCode: fc.integer(),
            headers: fc.dictionary(text, text, { noNullPrototype: true }),
            contentType: text,
            setCookie: fc.array(text),
            isError: fc.boolean(),
          },
          { noNullPrototype: true, requiredKeys: ["statusCode", "headers"] },
        ),
      )
      .map(([data, http]) => httpEnvelope(data, http)),
    fc
      .tuple(
        crossing,
        fc.record(
          { isError: fc.boolean(), content: blocks, structuredContent: crossing, _meta: meta },
          { noNullPrototype: true, requiredKeys: ["isError", "content"] },
        ),
      )
      .map(([data, mcp]) => mcpEnvelope(data, mcp)),
  )
  .chain((envelope) => facts.map((more) => withFacts(envelope, more)));

describe("values over a wire", () => {
  it("What JSON cannot hold: whatever crosses comes back exactly", () => {
    fc.assert(
      fc.property(crossing, (value) => {
        expect(overTheWire(value)).toStrictEqual(value);
      }),
      runs(500),
    );
  });

  it("What JSON cannot hold: JSON without the reserved key is written as it is", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.parse(JSON.stringify(value));
        expect(toWire(json)).toBe(json);
        expect(fromWire(json)).toBe(json);
      }),
    );
  });

  it("What JSON cannot hold: the source is never changed", () => {
    fc.assert(
      fc.property(crossing, (value) => {
        const before = structuredClone(value);
        toWire(value);
        expect(value).toStrictEqual(before);
      }),
    );
  });

  it("What JSON cannot hold: anything at all crosses or is refused with a CallError, never as an empty object", () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withBoxedValues: true,
      withNullPrototype: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    fc.assert(
      fc.property(anything, (value) => {
        let back: unknown;
        try {
          back = overTheWire(value);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(CallError);
          return;
        }
        const emptied = isPlainObject(back) && Object.keys(back).length === 0;
        expect(emptied).toBe(isPlainObject(value) && Object.keys(value).length === 0);
      }),
    );
  });

  it("What JSON cannot hold: the limits are these", () => {
    expect(WIRE_LIMITS).toEqual({
      depth: 512,
      maxDepth: 1_000,
      bigintDigits: 10_000,
      errorName: 200,
      errorMessage: 8_192,
    });
  });

  it.each([
    ["maps", (inner: unknown) => new Map([[1, inner]])],
    ["escaped objects", (inner: unknown) => ({ $waybill: inner })],
  ])("What JSON cannot hold: the deepest %s allowed come back through text", (_, wrap) => {
    let value: unknown = 0;
    for (let i = 0; i < WIRE_LIMITS.maxDepth; i++) value = wrap(value);
    const options = { maxDepth: WIRE_LIMITS.maxDepth };
    const wire = JSON.stringify(toWire(value, options));
    expect(JSON.stringify(toWire(fromWire(JSON.parse(wire), options), options))).toBe(wire);
  });
});

describe("envelopes over a wire", () => {
  it("What JSON cannot hold: every envelope comes back exactly, marked as ours", () => {
    fc.assert(
      fc.property(envelopes, (envelope) => {
        const back = decodeEnvelope(encodeEnvelope(envelope));
        expect(back).toStrictEqual(envelope);
        expect(isMarkedEnvelope(back)).toBe(true);
      }),
      runs(500),
    );
  });

  it("What JSON cannot hold: an envelope without data to speak of keeps its data key", () => {
    const back = decodeEnvelope(encodeEnvelope(localEnvelope(undefined, "a.b")));
    expect(Object.keys(back)).toEqual(["data", "meta"]);
  });

  it("What JSON cannot hold: data that looks like an envelope stays data", () => {
    const inner = localEnvelope(1, "a.b");
    const back = decodeEnvelope(encodeEnvelope(localEnvelope(inner, "c.d")));
    expect(back.data).toStrictEqual(inner);
    expect(isMarkedEnvelope(back.data)).toBe(false);
  });

  function refusal(act: () => unknown): CallError {
    try {
      act();
    } catch (thrown) {
      if (thrown instanceof CallError) return thrown;
      throw thrown;
    }
    throw new Error("nothing was refused");
  }

  it("What JSON cannot hold: a result that cannot cross names its place", () => {
    const error = refusal(() => encodeEnvelope(localEnvelope({ run: () => 1 }, "a.b")));
    expect(error.code).toBe("OUTPUT_INVALID");
    expect(error.details).toEqual({ pointer: "/data/run" });
  });

  it("What JSON cannot hold: the levels of the envelope do not count against its contents", () => {
    let structuredContent: unknown = 0;
    for (let i = 0; i < 512; i++) structuredContent = [structuredContent];
    const fits = mcpEnvelope(null, { isError: false, content: [], structuredContent });
    expect(decodeEnvelope(encodeEnvelope(fits))).toStrictEqual(fits);
    const over = mcpEnvelope(null, { isError: false, content: [], structuredContent: [structuredContent] });
    expect(refusal(() => encodeEnvelope(over)).message).toMatch(/nested deeper/);
    const wire = JSON.stringify({ ...over, meta: { ...over.meta } });
    expect(refusal(() => decodeEnvelope(wire)).code).toBe("OUTPUT_INVALID");
  });

  it("What JSON cannot hold: a getter that changes its mind is a typed error", () => {
    let reads = 0;
    const data = Object.defineProperty({}, "n", { get: () => (reads++ === 0 ? 1 : 1n), enumerable: true });
    const error = refusal(() => encodeEnvelope(localEnvelope(data, "a.b")));
    expect(error).toMatchObject({ code: "OUTPUT_INVALID", message: "The result cannot be written as JSON." });
    expect(error.cause).toBeInstanceOf(TypeError);
  });

  it("What JSON cannot hold: text that is not JSON is a typed error that does not repeat it", () => {
    const error = refusal(() => decodeEnvelope("secret"));
    expect(error).toMatchObject({ code: "OUTPUT_INVALID", message: "What came back is not JSON." });
    expect(JSON.stringify(error)).not.toContain("secret");
    expect(error.cause).toBeInstanceOf(SyntaxError);
  });

  it.each([
    "null",
    "{}",
    '{"data":1}',
    '{"data":1,"meta":{"source":"local"}}',
    '{"data":1,"meta":{"$waybill":["map",[]]}}',
    '{"data":1,"meta":{"source":"local","operationId":"a","timestamp":{"$waybill":["number","NaN"]}}}',
  ])("What JSON cannot hold: %s is not an envelope", (json) => {
    expect(refusal(() => decodeEnvelope(json))).toMatchObject({
      code: "OUTPUT_INVALID",
      message: "What came back is JSON, but not a response envelope.",
    });
  });

  it("What JSON cannot hold: a malformed tag inside is a typed error", () => {
    expect(refusal(() => decodeEnvelope('{"data":{"$waybill":1},"meta":{}}')).code).toBe("OUTPUT_INVALID");
  });

  it("What JSON cannot hold: fields the source does not know are dropped", () => {
    const json = '{"data":1,"meta":{"source":"local","operationId":"a","timestamp":1,"role":"admin"},"x":1}';
    expect(decodeEnvelope(json)).toStrictEqual({
      data: 1,
      meta: { source: "local", operationId: "a", timestamp: 1 },
    });
  });
});
