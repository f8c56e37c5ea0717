import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { callErrorOf, nest } from "../../../test/wire-values.ts";
import { CallError } from "../errors/errors.ts";
import { toWire } from "./wire.ts";

const throwing = (): never => {
  throw new Error("secret");
};

const refusal = (value: unknown, options = {}) => callErrorOf(() => toWire(value, options));

describe("what JSON holds", () => {
  it.each([null, true, false, 0, 1.5, -1, "", "text", "\ud800"])(
    "What JSON cannot hold: %j goes as it is",
    (value) => {
      expect(toWire(value)).toBe(value);
    },
  );

  it("What JSON cannot hold: the same object comes back when nothing needs changing", () => {
    const value = { a: [1, { b: null }], c: {}, d: Object.create(null) };
    expect(toWire(value)).toBe(value);
  });

  it("What JSON cannot hold: only what changes is copied, and the source is left alone", () => {
    const kept = { a: 1 };
    const value = Object.freeze({ kept, list: Object.freeze([kept, 1n, kept]), after: kept });
    const wire = toWire(value) as unknown as typeof value;
    expect(wire).toEqual({ kept, list: [kept, { $waybill: ["bigint", "1"] }, kept], after: kept });
    expect(wire.kept).toBe(kept);
    expect(wire.list[0]).toBe(kept);
    expect(value.list[1]).toBe(1n);
  });

  it("What JSON cannot hold: a list of another realm passes too", () => {
    expect(toWire(runInNewContext("({ a: [1] })"))).toEqual({ a: [1] });
  });
});

describe("what JSON cannot hold", () => {
  class Point {
    readonly x = 1;
    readonly y = undefined;
    readonly #hidden = 3;
    get sum(): number {
      return this.x + this.#hidden;
    }
  }

  it.each([
    ["undefined", undefined, ["undefined"]],
    ["NaN", Number.NaN, ["number", "NaN"]],
    ["infinity", Number.POSITIVE_INFINITY, ["number", "Infinity"]],
    ["minus infinity", Number.NEGATIVE_INFINITY, ["number", "-Infinity"]],
    ["minus zero", -0, ["number", "-0"]],
    ["a bigint", -12345678901234567890n, ["bigint", "-12345678901234567890"]],
    ["a date", new Date(0), ["date", "1970-01-01T00:00:00.000Z"]],
    ["bytes", Uint8Array.of(102, 111), ["bytes", "Zm8="]],
    ["no bytes", new Uint8Array(0), ["bytes", ""]],
    ["a buffer", Uint8Array.of(102).buffer, ["bytes", "Zg=="]],
    ["a view of some bytes", new DataView(Uint8Array.of(1, 102, 111, 2).buffer, 1, 2), ["bytes", "Zm8="]],
    ["a list of words", Uint16Array.of(0x6f66), ["bytes", "Zm8="]],
    [
      "a map",
      new Map<unknown, unknown>([
        ["a", 1],
        [1n, undefined],
      ]),
      [
        "map",
        [
          ["a", 1],
          [{ $waybill: ["bigint", "1"] }, { $waybill: ["undefined"] }],
        ],
      ],
    ],
    ["a set", new Set(["a", -0]), ["set", ["a", 0]]],
    ["an empty map", new Map(), ["map", []]],
    ["an error", new RangeError("Far."), ["error", { name: "RangeError", message: "Far." }]],
    [
      "an object with the reserved key",
      { $waybill: 1, a: 2n },
      ["object", { $waybill: 1, a: { $waybill: ["bigint", "2"] } }],
    ],
  ])("What JSON cannot hold: %s gets a tag", (_, value, content) => {
    expect(toWire(value)).toStrictEqual({ $waybill: content });
    expect(toWire({ in: [value] })).toStrictEqual({ in: [{ $waybill: content }] });
  });

  it("What JSON cannot hold: an escaped object that needs no change is not copied", () => {
    const value = { $waybill: ["bigint", "1"] };
    expect((toWire(value) as unknown as { $waybill: unknown[] }).$waybill[1]).toBe(value);
  });

  it("What JSON cannot hold: a hole in a list is undefined", () => {
    // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
    expect(toWire([1, , 2])).toEqual([1, { $waybill: ["undefined"] }, 2]);
  });

  it("What JSON cannot hold: an instance goes as its own fields", () => {
    const wire = toWire(new Point());
    expect(wire).toStrictEqual({ x: 1, y: { $waybill: ["undefined"] } });
    expect(toWire({ p: Object.assign(new Point(), { y: 2 }) })).toStrictEqual({ p: { x: 1, y: 2 } });
  });

  it("What JSON cannot hold: an instance is copied even when nothing in it changes", () => {
    class Plain {
      readonly a = 1;
    }
    const value = new Plain();
    expect(toWire(value)).not.toBe(value);
    expect(Object.getPrototypeOf(toWire(value))).toBe(Object.prototype);
  });

  it("What JSON cannot hold: an instance with the reserved key is escaped", () => {
    class Odd {
      readonly $waybill = 1;
    }
    expect(toWire(new Odd())).toStrictEqual({ $waybill: ["object", { $waybill: 1 }] });
  });

  it("What JSON cannot hold: __proto__ survives as an own key and pollutes nothing", () => {
    const text = '{"a":1,"__proto__":{"polluted":1},"b":2}';
    expect(JSON.stringify(toWire(JSON.parse(text)))).toBe(text);
    const wire = toWire(Object.assign(JSON.parse(text), { c: undefined }));
    expect(JSON.stringify(wire)).toBe(`${text.slice(0, -1)},"c":{"$waybill":["undefined"]}}`);
    expect(Object.getPrototypeOf(wire)).toBe(Object.prototype);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe("toJSON", () => {
  it("What JSON cannot hold: is honoured, once, with the key it is under", () => {
    const keys: unknown[] = [];
    const value = {
      n: 7,
      toJSON(key: unknown) {
        keys.push(key);
        return { n: this.n, later: new Date(0) };
      },
    };
    expect(toWire(value)).toEqual({ n: 7, later: { $waybill: ["date", "1970-01-01T00:00:00.000Z"] } });
    toWire({ inner: [value] });
    expect(keys).toEqual(["", "0"]);
  });

  it.each([
    ["a string", "text", "text"],
    ["null", null, null],
    ["undefined", undefined, { $waybill: ["undefined"] }],
    ["a map", new Map(), { $waybill: ["map", []] }],
    ["a list", [1n], [{ $waybill: ["bigint", "1"] }]],
  ])("What JSON cannot hold: may give %s", (_, json, expected) => {
    expect(toWire({ toJSON: () => json })).toEqual(expected);
  });

  it("What JSON cannot hold: of an instance, of a list and of a URL count too", () => {
    class Money {
      toJSON(): string {
        return "5 EUR";
      }
    }
    expect(toWire(new Money())).toBe("5 EUR");
    expect(toWire(Object.assign([1], { toJSON: () => "list" }))).toBe("list");
    expect(toWire(new URL("https://example.com/"))).toBe("https://example.com/");
  });

  it("What JSON cannot hold: that gives an object with a toJSON is not asked twice, not by JSON either", () => {
    class Again {
      readonly a = 1;
      toJSON(): object {
        return this;
      }
    }
    const wire = toWire(new Again());
    expect(JSON.stringify(wire)).toBe('{"a":1}');
    expect(wire).not.toHaveProperty("toJSON");
  });

  it("What JSON cannot hold: that gives a list or a plain heir with a toJSON is not asked twice either", () => {
    const list = Object.assign([1], { toJSON: () => "asked again" });
    expect(JSON.stringify(toWire({ toJSON: () => list }))).toBe("[1]");
    const parent = Object.assign(Object.create(null), { toJSON: () => heir });
    const heir = Object.assign(Object.create(parent), { a: 1 });
    const wire = toWire(heir);
    expect(wire).not.toBe(heir);
    expect(JSON.stringify(wire)).toBe('{"a":1}');
  });

  it("What JSON cannot hold: that is no function is data", () => {
    const value = { toJSON: "text" };
    expect(toWire(value)).toBe(value);
  });

  it("What JSON cannot hold: that throws comes out as a typed error", () => {
    const error = refusal({ toJSON: throwing });
    expect(error.code).toBe("VALIDATION_ERROR");
    expect(JSON.stringify(error)).not.toContain("secret");
    expect((error.cause as Error).message).toBe("secret");
  });

  it("What JSON cannot hold: may throw a CallError of its own", () => {
    const mine = new CallError("UNAVAILABLE");
    const toJSON = () => {
      throw mine;
    };
    expect(refusal({ toJSON })).toBe(mine);
  });
});

describe("what is refused", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = { again: cyclic };
  const ring: unknown[] = [];
  ring.push(new Map([["set", new Set([ring])]]));

  it.each([
    ["a function", () => 1, /is a function; send what it returns/],
    ["a symbol", Symbol("x"), /is a symbol; send a string/],
    ["an invalid date", new Date(Number.NaN), /is an invalid date; send null/],
    ["a promise", Promise.resolve(1), /without fields to show; give it a toJSON/],
    ["a weak map", new WeakMap(), /without fields to show/],
    ["a regular expression", /x/, /without fields to show/],
    ["a map of another realm", runInNewContext("new Map([[1, 2]])"), /without fields to show/],
    [
      "private state",
      new (class {
        readonly #a = 1;
        get a() {
          return this.#a;
        }
      })(),
      /without fields to show/,
    ],
  ])("What JSON cannot hold: %s, with its place and the fix", (_, value, message) => {
    const error = refusal({ list: [0, { "a/b~c": value }] });
    expect(error.code).toBe("VALIDATION_ERROR");
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^The value at "\/list\/1\/a~1b~0c" cannot cross a wire: .+\.$/);
    expect(error.details).toEqual({ pointer: "/list/1/a~1b~0c" });
    expect(refusal(value).message).toMatch(/^The value at "" cannot/);
  });

  it("What JSON cannot hold: cycles, through every container", () => {
    expect(refusal(cyclic).message).toMatch(/^The value at "\/self\/again" .*contains itself; send ids/);
    expect(refusal(ring).message).toMatch(/^The value at "\/0\/0\/0" .*contains itself/);
  });

  it("What JSON cannot hold: nothing that is merely used twice", () => {
    const shared = { a: [1] };
    const value = [shared, { shared }, shared.a];
    expect(toWire(value)).toBe(value);
  });

  it("What JSON cannot hold: the pointer starts over beside a deeper place", () => {
    expect(refusal([[[[1]]], () => 1]).details).toEqual({ pointer: "/1" });
  });

  it("What JSON cannot hold: a long pointer is shortened", () => {
    const fits = refusal({ [`${"k".repeat(199)}`]: throwing });
    expect(fits.details).toEqual({ pointer: `/${"k".repeat(199)}` });
    const long = refusal({ [`${"k".repeat(200)}`]: throwing });
    expect(long.details).toEqual({ pointer: `/${"k".repeat(199)}…` });
    expect(long.message.length).toBeLessThan(350);
  });

  it("What JSON cannot hold: with the code the caller chooses", () => {
    expect(refusal(() => 1, { code: "OUTPUT_INVALID" }).code).toBe("OUTPUT_INVALID");
    expect(refusal({ toJSON: throwing }, { code: "OUTPUT_INVALID" }).code).toBe("OUTPUT_INVALID");
  });

  it("What JSON cannot hold: getters and proxies that throw come out typed", () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const getter = Object.defineProperty({}, "a", { get: throwing, enumerable: true });
    for (const value of [
      getter,
      proxy,
      new Proxy({}, { ownKeys: throwing }),
      Object.create(Date.prototype),
    ]) {
      expect(refusal(value).message).toMatch(/could not be read/);
    }
  });
});

describe("limits", () => {
  it("What JSON cannot hold: a bigint of 10,000 characters passes, one more is refused", () => {
    const limit = 10n ** 9_999n;
    expect(toWire(limit)).toEqual({ $waybill: ["bigint", `1${"0".repeat(9_999)}`] });
    expect(refusal({ n: limit * 10n }).message).toMatch(/bigint of more than 10000 digits; send it as bytes/);
  });

  it.each([
    ["lists", (inner: unknown) => [inner]],
    ["objects", (inner: unknown) => ({ a: inner })],
    ["maps", (inner: unknown) => new Map([[1, inner]])],
    ["sets", (inner: unknown) => new Set([inner])],
    ["escaped objects", (inner: unknown) => ({ $waybill: inner })],
    ["maps, by their keys", (inner: unknown) => new Map([[inner, 1]])],
  ])("What JSON cannot hold: 512 nested %s pass, one more is refused, not a stack overflow", (_, wrap) => {
    expect(() => JSON.stringify(toWire(nest(512, wrap)))).not.toThrow();
    expect(refusal(nest(513, wrap)).message).toMatch(/nested deeper than 512 levels; flatten it/);
    expect(refusal(nest(100_000, wrap)).code).toBe("VALIDATION_ERROR");
  });

  it("What JSON cannot hold: dates and bytes are no level of their own", () => {
    expect(() => toWire([new Date(0), new Uint8Array(1), undefined, 1n], { maxDepth: 1 })).not.toThrow();
  });

  it.each([0, 1, 3, 1_000])("What JSON cannot hold: a caller may set the depth to %d", (maxDepth) => {
    const fits = nest(maxDepth, (inner) => [inner]);
    expect(toWire(fits, { maxDepth })).toBe(fits);
    expect(refusal([fits], { maxDepth }).message).toContain(`deeper than ${maxDepth} levels`);
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1_001, "5"])(
    "What JSON cannot hold: the depth %s is a programmer's mistake",
    (maxDepth) => {
      expect(() => toWire(1, { maxDepth: maxDepth as number })).toThrow(
        new TypeError("maxDepth must be an integer from 0 to 1000."),
      );
    },
  );
});
