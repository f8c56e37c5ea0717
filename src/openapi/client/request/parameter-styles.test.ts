import fc from "fast-check";
import { parseTemplate } from "url-template";
import { describe, expect, it } from "vitest";
import { makeParameter, makePlan, type PartialParameter } from "../../../../test/operation-plans.ts";
import { runs } from "../../../../test/runs.ts";
import { createRequestBuilder, finishRequest } from "./request-builder.ts";

const LIST = ["blue", "black", "brown"];
const OBJECT = { R: 100, G: 200, B: 150 };

/** What a value becomes in its place: the path or query behind `/`, the header or the cookies. */
function write(
  given: Omit<PartialParameter, "name"> & { name?: string },
  value: unknown,
): string | undefined {
  const parameter = makeParameter({ name: "color", ...given });
  const path = parameter.in === "path" ? `/{${parameter.name}}` : "/";
  const build = createRequestBuilder(makePlan({ path, parameters: [parameter] }), { limits: {} });
  const request = finishRequest(build({ [parameter.key]: value }), {});
  const header = parameter.name.toLowerCase();
  if (parameter.in === "header")
    return Object.hasOwn(request.headers, header) ? request.headers[header] : undefined;
  return parameter.in === "cookie" ? request.headers["cookie"] : request.path.slice(1);
}

describe("the tables of OpenAPI", () => {
  it.each([
    ["matrix", false, [";color", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"]],
    ["matrix", true, [";color", ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"]],
    ["label", false, [undefined, ".blue", ".blue,black,brown", ".R,100,G,200,B,150"]],
    ["label", true, [undefined, ".blue", ".blue.black.brown", ".R=100.G=200.B=150"]],
    ["simple", false, [undefined, "blue", "blue,black,brown", "R,100,G,200,B,150"]],
    ["simple", true, [undefined, "blue", "blue,black,brown", "R=100,G=200,B=150"]],
  ] as const)(
    "RE-25 are followed in paths: %s, explode %s",
    (style, explode, [empty, text, list, object]) => {
      const way = { in: "path", style, explode } as const;
      if (empty === undefined) expect(() => write(way, "")).toThrow(/"color"/);
      else expect(write(way, "")).toBe(empty);
      expect([write(way, "blue"), write(way, LIST), write(way, OBJECT)]).toEqual([text, list, object]);
    },
  );

  it.each([
    ["form", false, ["?color=", "?color=blue", "?color=blue,black,brown", "?color=R,100,G,200,B,150"]],
    ["form", true, ["?color=", "?color=blue", "?color=blue&color=black&color=brown", "?R=100&G=200&B=150"]],
    [
      "spaceDelimited",
      false,
      ["?color=", "?color=blue", "?color=blue%20black%20brown", "?color=R%20100%20G%20200%20B%20150"],
    ],
    [
      "pipeDelimited",
      false,
      ["?color=", "?color=blue", "?color=blue%7Cblack%7Cbrown", "?color=R%7C100%7CG%7C200%7CB%7C150"],
    ],
    [
      "deepObject",
      true,
      [
        "?color=",
        "?color=blue",
        "?color%5B%5D=blue&color%5B%5D=black&color%5B%5D=brown",
        "?color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
      ],
    ],
  ] as const)("RE-25 are followed in queries: %s, explode %s", (style, explode, expected) => {
    const way = { in: "query", style, explode } as const;
    expect(["", "blue", LIST, OBJECT].map((value) => write(way, value))).toEqual(expected);
  });

  it("RE-25 are followed in headers and cookies", () => {
    expect(write({ in: "header" }, LIST)).toBe("blue,black,brown");
    expect(write({ in: "header" }, OBJECT)).toBe("R,100,G,200,B,150");
    expect(write({ in: "header", explode: true }, OBJECT)).toBe("R=100,G=200,B=150");
    expect(write({ in: "cookie" }, "a b;c")).toBe("color=a%20b%3Bc");
    expect(write({ in: "cookie", explode: false }, LIST)).toBe("color=blue,black,brown");
    expect(write({ in: "cookie" }, LIST)).toBe("color=blue; color=black; color=brown");
    expect(write({ in: "cookie", style: "cookie" }, OBJECT)).toBe("R=100; G=200; B=150");
    expect(write({ in: "cookie", style: "cookie" }, "100%=a/b")).toBe("color=100%=a/b");
    expect(() => write({ in: "cookie", style: "cookie" }, "a;b")).toThrow(/"color" holds characters/);
  });

  it.each([
    [" ", "a%20b"],
    ["\t", "a%09b"],
    ["|", "a%7Cb"],
    [",", "a,b"],
  ])("RE-25 give way to the character that Swagger 2 joins with: %j", (separator, escaped) => {
    const list = ["a", "b"];
    expect(write({ in: "path", separator }, list)).toBe(escaped);
    expect(write({ in: "query", separator }, list)).toBe(`?color=${escaped}`);
    expect(write({ in: "cookie", separator }, list)).toBe(`color=${escaped}`);
    expect(write({ in: "header", separator }, list)).toBe(`a${separator}b`);
    expect(write({ in: "query", separator }, [])).toBe("");
    expect(write({ in: "query", separator }, "a")).toBe("?color=a");
    for (const place of separator === "," ? ["header" as const] : (["path", "query", "header"] as const)) {
      expect(() => write({ in: place, separator }, [`a${separator}b`])).toThrow("which separates its parts");
    }
  });

  it("RE-25 are written as RFC 6570 has it, for any text", () => {
    const ways = [
      ["{x}", { in: "path", style: "simple", explode: false }],
      ["{x*}", { in: "path", style: "simple", explode: true }],
      ["{.x}", { in: "path", style: "label", explode: false }],
      ["{.x*}", { in: "path", style: "label", explode: true }],
      ["{;x}", { in: "path", style: "matrix", explode: false }],
      ["{?x}", { in: "query", style: "form", explode: false }],
      ["{?x*}", { in: "query", style: "form", explode: true }],
    ] as const;
    const text = fc.string({ unit: "binary", minLength: 1 }).filter((each) => !/\p{Surrogate}/u.test(each));
    const list = fc.array(text, { minLength: 1, maxLength: 3 });
    const object = fc.dictionary(text, text, { minKeys: 1, maxKeys: 3, noNullPrototype: true });
    const isSaid = (each: string | readonly string[]) => !/^(?:\.|,)*$/.test(String(each));
    const value = fc.oneof(text.filter(isSaid), list.filter(isSaid), object);
    const ownNames = { toString: "a", valueOf: "b" } as unknown as Record<string, string>;
    fc.assert(
      fc.property(fc.constantFrom(...ways), value, ([template, way], given) => {
        expect(write({ ...way, name: "x" }, given)).toBe(parseTemplate(template).expand({ x: given }));
      }),
      { ...runs(500), examples: ways.map((way): [typeof way, Record<string, string>] => [way, ownNames]) },
    );
  });
});

describe("values", () => {
  it("RE-25 may be numbers, booleans, bigints and dates", () => {
    const query = { in: "query" } as const;
    expect([1.5, true, 10n ** 20n, new Date(0)].map((value) => write(query, value))).toEqual([
      "?color=1.5",
      "?color=true",
      "?color=100000000000000000000",
      "?color=1970-01-01T00%3A00%3A00.000Z",
    ]);
    expect(() => write(query, Number.NaN)).toThrow('The input "color" is NaN, which cannot be sent.');
    expect(() => write(query, new Date(Number.NaN))).toThrow("no valid date");
    expect(() => write(query, new Uint8Array(1))).toThrow("is bytes");
    expect(() => write(query, new Blob(["a"]))).toThrow("is a Blob");
    expect(() => write(query, () => 1)).toThrow("of type function");
    expect(() => write(query, new Map([["a", 1]]))).toThrow("is an instance");
    expect(() => write({ ...query, style: "deepObject" }, { a: new Set([1]) })).toThrow("is an instance");
    expect(() => write(query, "\ud800")).toThrow("half of a surrogate pair");
  });

  it("RE-25 that are absent are left out, and refused where they are required", () => {
    const query = { in: "query" } as const;
    for (const value of [undefined, null, [], {}, [null, undefined]]) expect(write(query, value)).toBe("");
    expect(write(query, ["a", null, "b"])).toBe("?color=a&color=b");
    expect(write({ in: "header" }, [])).toBeUndefined();
    expect(write({ in: "cookie" }, [])).toBeUndefined();
    expect(() => write({ in: "query", required: true }, null)).toThrow('The input "color" is missing.');
    expect(() => write({ in: "path" }, [])).toThrow("is empty");
    expect(() => write({ in: "path" }, undefined)).toThrow("is missing");
  });

  it.each(["query", "header", "cookie"] as const)(
    "RE-25 that are required and empty are refused, because nothing would be sent: %s",
    (place) => {
      for (const value of [[], {}, [null]]) {
        expect(() => write({ in: place, required: true }, value)).toThrow('The input "color" is empty');
      }
      expect(write({ in: place, required: true, contentType: "application/json" }, [])).toContain(
        place === "header" ? "[]" : "%5B%5D",
      );
    },
  );

  it("RE-25 that are required may be empty where something stands for it", () => {
    expect(write({ in: "query", required: true, allowEmpty: true }, [])).toBe("?color=");
    expect(write({ in: "query", required: true }, "")).toBe("?color=");
    const whole = {
      in: "querystring",
      required: true,
      contentType: "application/x-www-form-urlencoded",
    } as const;
    expect(() => write(whole, {})).toThrow('The input "color" is empty');
    expect(() => write({ in: "query", required: true, style: "deepObject" }, { a: [] })).toThrow("is empty");
  });

  it("RE-25 may be empty where allowEmptyValue says so", () => {
    const query = { in: "query", allowEmpty: true } as const;
    expect([null, [], ""].map((value) => write(query, value))).toEqual(["?color=", "?color=", "?color="]);
    expect(write(query, undefined)).toBe("");
  });

  it("RE-25 that nest are JSON, but in brackets where the style is deepObject", () => {
    const nested = { a: { b: [1, 2], c: { d: "x" } }, e: [{ f: 1 }, { f: 2 }], g: null };
    expect(write({ in: "query" }, [{ a: 1 }])).toBe("?color=%7B%22a%22%3A1%7D");
    const deep = write({ in: "query", style: "deepObject", explode: true }, nested);
    expect(decodeURIComponent(deep ?? "")).toBe(
      "?color[a][b][]=1&color[a][b][]=2&color[a][c][d]=x&color[e][0][f]=1&color[e][1][f]=2",
    );
  });

  it("RE-25 that nest for ever are refused", () => {
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    expect(() => write({ in: "query", style: "deepObject" }, circle)).toThrow("more than 32 levels");
    expect(() => write({ in: "query" }, circle)).toThrow("refers to itself");
    const nest = (levels: number): unknown => (levels === 0 ? "x" : { a: nest(levels - 1) });
    expect(write({ in: "query", style: "deepObject" }, nest(32))).toContain("=x");
    expect(() => write({ in: "query", style: "deepObject" }, nest(33))).toThrow("more than 32 levels");
  });

  it("RE-25 whose parts hold what separates them are refused", () => {
    expect(() => write({ in: "query", style: "pipeDelimited", explode: false }, ["a|b"])).toThrow('"|"');
    expect(() => write({ in: "query", style: "spaceDelimited", explode: false }, ["a b"])).toThrow('" "');
    expect(() => write({ in: "header" }, ["a,b"])).toThrow('","');
    expect(write({ in: "header" }, "a,b")).toBe("a,b");
    expect(write({ in: "query", explode: false }, ["a,b", "c"])).toBe("?color=a%2Cb,c");
  });

  it("RE-25 keep reserved characters where allowReserved says so, but those that separate", () => {
    const text = ":/?#[]@!$&'()*+,;=%41%";
    expect(write({ in: "query", allowReserved: true }, text)).toBe(
      "?color=:/?%23%5B%5D@!$%26%27()*%2B,;=%41%25",
    );
    expect(write({ in: "path", allowReserved: true }, ":@!$&'()*+,;=?#")).toBe(":@!$&'()*+,;=%3F%23");
    expect(() => write({ in: "path", allowReserved: true }, "a/b")).toThrow('holds "/"');
    expect(() => write({ in: "path", allowReserved: true }, "%2e%2E")).toThrow("leads elsewhere");
  });

  it("RE-25 described by a media type are one text of it", () => {
    const json = { contentType: "application/json" };
    expect(decodeURIComponent(write({ in: "query", ...json }, { a: ["é"] }) ?? "")).toBe(
      '?color={"a":["\\u00e9"]}',
    );
    expect(write({ in: "header", ...json }, { a: "é\n" })).toBe('{"a":"\\u00e9\\n"}');
    expect(write({ in: "path", ...json }, [1])).toBe("%5B1%5D");
    expect(write({ in: "cookie", ...json }, "x")).toBe("color=%22x%22");
    expect(write({ in: "query", contentType: "text/plain" }, "a b")).toBe("?color=a%20b");
    expect(() => write({ in: "query", ...json }, { a: [1n] })).toThrow('"color" at "/a/0" is a bigint');
  });

  it("RE-25 may be the whole query", () => {
    const whole = { in: "querystring", name: "all" } as const;
    const form = { ...whole, contentType: "application/x-www-form-urlencoded" };
    expect(write(form, { a: "1 2", b: ["x", "y"] })).toBe("?a=1%202&b=x&b=y");
    expect(write(form, {})).toBe("");
    expect(write({ ...whole, contentType: "application/json" }, { a: 1 })).toBe("?%7B%22a%22%3A1%7D");
  });
});

describe("headers of a document", () => {
  it.each([
    "Host",
    "content-length",
    "Transfer-Encoding",
    "connection",
    "proxy-authorization",
    "Expect",
    "__proto__",
  ])("RE-25 are refused where the transport writes them: %s", (name) => {
    expect(() => write({ in: "header", name, key: "h" }, "x")).toThrow('The input "h" is a header that');
    expect(write({ in: "header", name, key: "h", required: true }, undefined)).toBeUndefined();
  });

  it("RE-25 must have names that headers can have", () => {
    expect(() => write({ in: "header", name: "a b", key: "h" }, "x")).toThrow(
      expect.objectContaining({ code: "NOT_IMPLEMENTED" }),
    );
  });
});
