import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { callErrorOf, nest } from "../../../test/wire-values.ts";
import { CallError } from "../errors/errors.ts";
import { fromWire } from "./wire.ts";

const tag = (...content: readonly unknown[]): unknown => ({ $waybill: content });

const refusal = (value: unknown, options = {}) => callErrorOf(() => fromWire(value, options));

describe("reading tags", () => {
  it.each([
    ["undefined", tag("undefined"), undefined],
    ["NaN", tag("number", "NaN"), Number.NaN],
    ["infinity", tag("number", "Infinity"), Number.POSITIVE_INFINITY],
    ["minus infinity", tag("number", "-Infinity"), Number.NEGATIVE_INFINITY],
    ["minus zero", tag("number", "-0"), -0],
    ["bigint zero", tag("bigint", "0"), 0n],
    ["a bigint", tag("bigint", "-120"), -120n],
    ["a date", tag("date", "1970-01-01T00:00:00.001Z"), new Date(1)],
    [
      "a date of long ago",
      tag("date", "-000001-01-01T00:00:00.000Z"),
      new Date("-000001-01-01T00:00:00.000Z"),
    ],
    ["the last date", tag("date", "+275760-09-13T00:00:00.000Z"), new Date(8.64e15)],
    ["bytes", tag("bytes", "Zm8="), Uint8Array.of(102, 111)],
    [
      "a map",
      tag("map", [
        ["a", tag("undefined")],
        [tag("bigint", "1"), [2]],
      ]),
      new Map<unknown, unknown>([
        ["a", undefined],
        [1n, [2]],
      ]),
    ],
    ["a set", tag("set", [1, tag("bigint", "1")]), new Set([1, 1n])],
    ["an escaped object", tag("object", { $waybill: 1, a: tag("undefined") }), { $waybill: 1, a: undefined }],
    ["an escaped tag", tag("object", { $waybill: ["bigint", "1"] }), { $waybill: ["bigint", "1"] }],
    ["a tag inside an escaped object", tag("object", { $waybill: tag("bigint", "1") }), { $waybill: 1n }],
  ])("What JSON cannot hold: reads %s back", (_, wire, value) => {
    expect(fromWire(wire)).toStrictEqual(value);
    expect(fromWire({ in: [0, wire, 1], after: 2 })).toStrictEqual({ in: [0, value, 1], after: 2 });
  });

  it("What JSON cannot hold: gives JSON without tags back as the same object", () => {
    const value = JSON.parse('{"a":[1,{"b":null}],"__proto__":{"x":1}}');
    expect(fromWire(value)).toBe(value);
  });

  it("What JSON cannot hold: leaves what it is given alone", () => {
    const wire = Object.freeze({ a: Object.freeze([tag("undefined")]) });
    expect(fromWire(wire)).toStrictEqual({ a: [undefined] });
  });

  it("What JSON cannot hold: keeps __proto__ an own key and pollutes nothing", () => {
    const value = fromWire(
      JSON.parse('{"__proto__":{"polluted":1},"b":{"$waybill":["undefined"]}}'),
    ) as object;
    expect(Object.keys(value)).toEqual(["__proto__", "b"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

const CALL_ERROR = { code: "TIMEOUT", message: "Late.", retryable: true, correctable: false };

describe("malformed tags", () => {
  it.each([
    ["no list", { $waybill: "undefined" }],
    ["null", { $waybill: null }],
    ["an empty list", tag()],
    ["another key beside it", { $waybill: ["undefined"], a: 1 }],
    ["a kind that does not exist", tag("weakmap", [])],
    ["a kind from a prototype", tag("constructor", [])],
    ["a kind that is no string", tag(["undefined"])],
    ["a payload for undefined", tag("undefined", 1)],
    ["no payload", tag("bigint")],
    ["two payloads", tag("bigint", "1", "1")],
    ["a number that JSON holds", tag("number", "1")],
    ["a number that is no string", tag("number", 0)],
    ["a bigint that is no string", tag("bigint", 1)],
    ["a bigint with a leading zero", tag("bigint", "01")],
    ["a bigint minus zero", tag("bigint", "-0")],
    ["an empty bigint", tag("bigint", "")],
    ["a hexadecimal bigint", tag("bigint", "0x1")],
    ["a bigint with a space", tag("bigint", " 1")],
    ["a bigint with a line break", tag("bigint", "1\n")],
    ["a date that is no string", tag("date", 0)],
    ["a date that is none", tag("date", "yesterday")],
    ["a date in another form", tag("date", "1970-01-01")],
    ["a date with an offset", tag("date", "1970-01-01T00:00:00.000+00:00")],
    ["a date that does not exist", tag("date", "1970-02-30T00:00:00.000Z")],
    ["bytes that are no string", tag("bytes", [1])],
    ["bytes that are a list of text", tag("bytes", ["Zm9v"])],
    ["bytes that are a number", tag("bytes", 1234)],
    ["bytes that are no base64", tag("bytes", "Zg")],
    ["a map that is no list", tag("map", {})],
    ["a map with half an entry", tag("map", [[1]])],
    ["a map with a triple", tag("map", [[1, 2, 3]])],
    ["a map with no entry", tag("map", ["ab"])],
    [
      "a map with a key twice",
      tag("map", [
        ["a", 1],
        ["a", 2],
      ]),
    ],
    ["a set that is no list", tag("set", "ab")],
    ["a set with a value twice", tag("set", [1, 1])],
    ["an error that is text", tag("error", "x")],
    ["an error that is a list", tag("error", ["Error", "x"])],
    ["an error of no members", tag("error", {})],
    ["an error with a stack", tag("error", { name: "Error", message: "x", stack: "x" })],
    ["an error with a prototype", tag("error", JSON.parse('{"name":"E","message":"x","__proto__":{}}'))],
    ["an error without a message", tag("error", { name: "Error" })],
    ["an error whose name is no string", tag("error", { name: 1, message: "x" })],
    ["a call error that is only a code", tag("error", { code: "TIMEOUT" })],
    ["a call error with a stack", tag("error", { ...CALL_ERROR, stack: "x" })],
    ["a call error with a name", tag("error", { ...CALL_ERROR, name: "CallError" })],
    ["a call error without a code to speak of", tag("error", { ...CALL_ERROR, code: "" })],
    ["a call error whose code is no string", tag("error", { ...CALL_ERROR, code: null })],
    ["a call error whose message is no string", tag("error", { ...CALL_ERROR, message: 1 })],
    ["a call error that may be retried perhaps", tag("error", { ...CALL_ERROR, retryable: "yes" })],
    ["a call error that may be corrected perhaps", tag("error", { ...CALL_ERROR, correctable: null })],
    ["a call error with a status of success", tag("error", { ...CALL_ERROR, httpStatus: 399 })],
    ["a call error with a status beyond", tag("error", { ...CALL_ERROR, httpStatus: 600 })],
    ["a call error with half a status", tag("error", { ...CALL_ERROR, httpStatus: 400.5 })],
    ["a call error with no status", tag("error", { ...CALL_ERROR, httpStatus: null })],
    ["an escape around a list", tag("object", [])],
    ["an escape around nothing", tag("object", null)],
    ["an escape that is not needed", tag("object", { a: 1 })],
  ])("What JSON cannot hold: %s is a typed error", (_, wire) => {
    const error = refusal({ a: [wire] });
    expect(error.code).toBe("VALIDATION_ERROR");
    expect(error.message).toContain('its "$waybill" tag is malformed; write it with toWire');
    expect(String((error.details as { pointer: string }).pointer)).toMatch(/^\/a\/0(\/0)?$/);
  });

  it("What JSON cannot hold: with the code the caller chooses", () => {
    expect(refusal(tag("x", 1), { code: "OUTPUT_INVALID" }).code).toBe("OUTPUT_INVALID");
  });

  it("What JSON cannot hold: the sender's text is not repeated", () => {
    expect(JSON.stringify(refusal(tag("secret", "secret")))).not.toContain("secret");
  });

  it.each([undefined, 1n, () => 1, Symbol("x"), new Map(), new Date(0), new Uint8Array(1)])(
    "What JSON cannot hold: %o is not JSON and says so",
    (value) => {
      expect(refusal([value]).message).toBe('The value at "/0" cannot cross a wire: it is not JSON.');
    },
  );

  it("What JSON cannot hold: cycles and traps come out typed", () => {
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    expect(refusal(cyclic).message).toMatch(/contains itself/);
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(refusal(proxy).message).toMatch(/could not be read/);
  });
});

describe("limits", () => {
  it("What JSON cannot hold: reads a bigint of 10,000 characters, refuses one more", () => {
    expect(fromWire(tag("bigint", "9".repeat(10_000)))).toBe(10n ** 10_000n - 1n);
    expect(refusal(tag("bigint", "9".repeat(10_001))).message).toMatch(/malformed/);
  });

  it.each([
    ["lists", (inner: unknown) => [inner]],
    ["objects", (inner: unknown) => ({ a: inner })],
    ["maps", (inner: unknown) => tag("map", [[1, inner]])],
    ["sets", (inner: unknown) => tag("set", [inner])],
    ["escaped objects", (inner: unknown) => tag("object", { $waybill: inner })],
  ])("What JSON cannot hold: reads 512 nested %s, refuses one more", (_, wrap) => {
    expect(() => fromWire(nest(512, wrap))).not.toThrow();
    expect(refusal(nest(513, wrap)).message).toMatch(/nested deeper than 512 levels/);
  });

  it("What JSON cannot hold: a million brackets are a typed error", () => {
    const text = "[".repeat(1_000_000) + "]".repeat(1_000_000);
    expect(refusal(JSON.parse(text)).code).toBe("VALIDATION_ERROR");
  });

  it("What JSON cannot hold: a caller may set the depth, within reason", () => {
    expect(fromWire([[]], { maxDepth: 2 })).toEqual([[]]);
    expect(refusal([[]], { maxDepth: 1 }).message).toContain("deeper than 1 levels");
    expect(() => fromWire(1, { maxDepth: 1_001 })).toThrow(TypeError);
  });
});

describe("the law of hostile JSON", () => {
  const kinds = [
    "undefined",
    "number",
    "bigint",
    "date",
    "bytes",
    "map",
    "set",
    "error",
    "object",
    "x",
    1,
    null,
  ];
  const CALL_ERROR_KEYS = {
    name: fc.string(),
    code: fc.string(),
    message: fc.string(),
    retryable: fc.boolean(),
    correctable: fc.boolean(),
  };
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { maxDepth: 5 },
      fc.jsonValue(),
      fc.constantFrom("NaN", "-0", "1", "1970-01-01T00:00:00.000Z", "Zg=="),
      fc.array(tie("json"), { maxLength: 3 }),
      fc.record({ ...CALL_ERROR_KEYS, details: tie("json") }, { requiredKeys: [] }),
      fc.dictionary(fc.constantFrom("a", "$waybill", "__proto__"), tie("json"), { maxKeys: 2 }),
      fc.tuple(fc.constantFrom(...kinds), tie("json")).map(([kind, payload]) => tag(kind, payload)),
      fc.array(tie("json"), { maxLength: 3 }).map((content) => tag(...content)),
    ),
  }));

  it("What JSON cannot hold: reading throws a CallError or nothing, and pollutes no prototype", () => {
    fc.assert(
      fc.property(json, (value) => {
        try {
          fromWire(value);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(CallError);
        }
        expect(Object.keys(Object.prototype)).toEqual([]);
      }),
      runs(1_000),
    );
  });
});
