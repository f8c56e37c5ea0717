import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DETAIL_LIMITS, toErrorDetails } from "./error-details.ts";

const throwing = (): never => {
  throw new Error("secret");
};

function nest(levels: number): unknown {
  let value: unknown = "core";
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

describe("details of an error", () => {
  it("X-5 copies JSON as it is", () => {
    const details = { text: "a", number: 1.5, yes: true, no: false, nothing: null, list: [1, ["b"], {}] };
    expect(toErrorDetails(details)).toEqual(details);
  });

  it("X-5 gives undefined for undefined and keeps falsy values", () => {
    expect(toErrorDetails(undefined)).toBeUndefined();
    for (const value of [null, 0, false, ""]) expect(toErrorDetails(value)).toBe(value);
  });

  it("X-5 shares nothing with its source", () => {
    const source = { list: [{ a: 1 }] };
    const details = toErrorDetails(source);
    source.list.push({ a: 2 });
    (source.list[0] as { a: number }).a = 3;
    expect(details).toEqual({ list: [{ a: 1 }] });
  });

  it("X-5 leaves undefined members out and writes undefined items as null", () => {
    expect(Object.keys(toErrorDetails({ a: undefined, b: 1 }) as object)).toEqual(["b"]);
    expect(toErrorDetails([undefined, 1])).toEqual([null, 1]);
    // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
    expect(toErrorDetails([1, , 2])).toEqual([1, null, 2]);
  });

  it.each([
    ["NaN", Number.NaN, "[NaN]"],
    ["an infinity", Number.NEGATIVE_INFINITY, "[-Infinity]"],
    ["minus zero", -0, 0],
    ["a function", () => "secret", "[function]"],
    ["a symbol", Symbol("secret"), "[symbol]"],
    ["an error", new Error("secret"), "[error]"],
    ["an error with its own toJSON", Object.assign(new Error("x"), { toJSON: () => "secret" }), "[error]"],
    ["bytes", new Uint8Array(3), "[3 bytes]"],
    ["a buffer", new ArrayBuffer(5), "[5 bytes]"],
    ["a map", new Map([["secret", 1]]), "[object]"],
    ["a promise", Promise.resolve("secret"), "[object]"],
    ["a date", new Date(0), "1970-01-01T00:00:00.000Z"],
    ["an invalid date", new Date(Number.NaN), null],
    ["a small bigint", -9223372036854775808n, "-9223372036854775808"],
    ["a large bigint", 9223372036854775808n, "[bigint]"],
    ["an object with toJSON", { toJSON: () => ({ a: 1n }) }, { a: "1" }],
    ["an object whose toJSON throws", { toJSON: throwing }, "[unreadable]"],
    ["an object whose toJSON gives itself", { toJSON: (): unknown => self }, "[circular]"],
    ["an empty literal", {}, {}],
    ["an object without a prototype", Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  ])("X-5 writes %s safely", (_, value, expected) => {
    expect(toErrorDetails(value)).toEqual(expected);
  });

  const self: Record<string, unknown> = {};
  self["toJSON"] = () => self;

  it("X-5 asks toJSON on the object itself, with an empty key", () => {
    const money = {
      cents: 5,
      toJSON(key: unknown) {
        return [this.cents, key];
      },
    };
    expect(toErrorDetails({ money })).toEqual({ money: [5, ""] });
  });

  it("X-5 writes an instance as its own fields", () => {
    class Stock {
      readonly left = 0;
      readonly #secret = 1;
      get secret(): number {
        return this.#secret;
      }
    }
    expect(toErrorDetails(new Stock())).toEqual({ left: 0 });
  });

  it("X-5 ends a toJSON that never stops at the depth limit", () => {
    const endless = (): object => ({ toJSON: endless });
    expect(toErrorDetails(endless())).toBe("[too deep]");
  });

  it("X-5 replaces a member whose getter throws and keeps the others", () => {
    const details = Object.defineProperty({ a: 1 }, "bad", { get: throwing, enumerable: true });
    expect(toErrorDetails(details)).toEqual({ a: 1, bad: "[unreadable]" });
  });

  it("X-5 survives proxies that throw and revoked ones", () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const hostile = new Proxy({}, { ownKeys: throwing });
    expect(toErrorDetails([proxy, hostile])).toEqual(["[unreadable]", "[unreadable]"]);
  });

  it("X-5 cuts cycles and keeps what is merely used twice", () => {
    const shared = { a: 1 };
    const cyclic: unknown[] = [shared, shared];
    cyclic.push(cyclic);
    expect(toErrorDetails(cyclic)).toEqual([{ a: 1 }, { a: 1 }, "[circular]"]);
  });

  it("X-5 keeps __proto__ as an own key and pollutes nothing", () => {
    const details = toErrorDetails(JSON.parse('{"__proto__": {"polluted": true}}'));
    expect(JSON.stringify(details)).toBe('{"__proto__":{"polluted":true}}');
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe("limits of details", () => {
  it("X-5 documents its limits", () => {
    expect(DETAIL_LIMITS).toEqual({ depth: 16, values: 2_000, string: 8_192, text: 65_536 });
  });

  it("X-5 keeps 16 levels and cuts the 17th", () => {
    expect(toErrorDetails(nest(16))).toEqual(nest(16));
    expect(JSON.stringify(toErrorDetails(nest(17)))).toBe(`${"[".repeat(16)}"[too deep]"${"]".repeat(16)}`);
  });

  it("X-5 frees a level when it leaves a container", () => {
    const wide = Array.from({ length: 40 }, () => [1]);
    expect(toErrorDetails(wide)).toEqual(wide);
  });

  it("X-5 keeps a string of 8,192 characters and describes one more", () => {
    const text = "x".repeat(8_192);
    expect(toErrorDetails(text)).toBe(text);
    expect(toErrorDetails(`${text}x`)).toBe("[string of 8193 characters]");
  });

  it("X-5 keeps 2,000 values in all and marks where the rest was", () => {
    const fits = Array.from({ length: 1_999 }, (_, i) => i);
    expect(toErrorDetails(fits)).toEqual(fits);
    expect(toErrorDetails([...fits, 1_999, 2_000])).toEqual([...fits, "[more]"]);
    const members = Object.fromEntries(fits.map((i) => [`k${i}`, i]));
    expect(toErrorDetails(members)).toEqual(members);
    expect(toErrorDetails({ ...members, last: 1, more: 2 })).toEqual({ ...members, "…": "[more]" });
  });

  it("X-5 keeps 65,536 characters in all and marks where the rest was", () => {
    const full = Array.from({ length: 8 }, () => "x".repeat(8_192));
    expect(toErrorDetails(full)).toEqual(full);
    expect(toErrorDetails([...full, "y", 1])).toEqual([...full, "[more]", 1]);
  });

  it("X-5 counts the characters of keys", () => {
    const key = "k".repeat(65_535);
    expect(toErrorDetails({ [key]: "v" })).toEqual({ [key]: "v" });
    expect(toErrorDetails({ [key]: "vw" })).toEqual({ [key]: "[more]" });
    expect(toErrorDetails({ [`${key}kk`]: 1 })).toEqual({ "…": "[more]" });
    expect(toErrorDetails({ [`${key}k`]: 1 })).toEqual({ [`${key}k`]: 1 });
  });

  it("X-5 ends on an array that claims to be endless", () => {
    const details = toErrorDetails(new Array(4_000_000_000)) as unknown[];
    expect(details).toHaveLength(2_000);
    expect(details.at(-1)).toBe("[more]");
  });

  it("X-5 bounds what is shared over and over", () => {
    let bomb: unknown = "x";
    for (let i = 0; i < 15; i++) bomb = [bomb, bomb, bomb, bomb];
    expect(JSON.stringify(toErrorDetails(bomb)).length).toBeLessThan(100_000);
  });
});

describe("the law of details", () => {
  it("X-5 turns anything into JSON that reads back equal", () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withObjectString: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    fc.assert(
      fc.property(anything, (value) => {
        const details = toErrorDetails(value);
        if (value === undefined) expect(details).toBeUndefined();
        else expect(JSON.parse(JSON.stringify(details))).toEqual(details);
      }),
    );
  });
});
