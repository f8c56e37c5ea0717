import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeText } from "./decode-text.ts";
import { parseDocument } from "./parse-document.ts";

const parse = (text: string | Buffer, name = "a.json") =>
  parseDocument(typeof text === "string" ? Buffer.from(text) : text, name);

describe("reading the text of a document", () => {
  it("RE-25 reads JSON with any letters as JSON.parse does", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.json({ stringUnit: "binary" }),
        fc.string({ unit: "binary" }),
        async (json, key) => {
          const written = `{"${"x".repeat(20_000)}":${json},${JSON.stringify(key)}:1}`;
          // Halves of pairs cannot be written as UTF-8.
          const text = Buffer.from(written).toString();
          expect((await parse(text)).value).toEqual(JSON.parse(text));
        },
      ),
      { numRuns: 25 },
    );
  });

  it("RE-25 takes a byte order mark, and nothing but UTF-8", async () => {
    expect((await parse("\uFEFF{}")).value).toEqual({});
    expect((await parse("\uFEFFa: é", "a.yaml")).value).toEqual({ a: "é" });
    await expect(parse(Buffer.from([0x7b, 0xff, 0x7d]))).rejects.toThrow("a.json is not UTF-8 text");
    await expect(parse(Buffer.from("{}", "utf16le"))).rejects.toThrow();
    expect(decodeText(Buffer.from([0xc3]), true)).toBeUndefined();
  });

  it("RE-25 says where JSON is broken, as the file has it", async () => {
    await expect(parse('{\n  "é": 1,\n  "b": }')).rejects.toThrow(
      'a.json is not valid JSON: unexpected "}", at line 3, column 8.',
    );
    await expect(parse('{"a":')).rejects.toThrow("it ends too early, at line 1");
    await expect(parse("")).rejects.toThrow("a.json is empty.");
  });

  it("RE-25 reads YAML 1.2: dates and yes are texts, merge keys merge, and __proto__ is a key", async () => {
    const text =
      "a: 2020-01-01\nb: yes\nbase: &x { c: 1 }\nd: { <<: *x, e: 2 }\n__proto__: { polluted: 1 }\n200: ok";
    const { value } = (await parse(text, "a.yaml")) as { value: Record<string, unknown> };
    expect(value).toMatchObject({ a: "2020-01-01", b: "yes", d: { c: 1, e: 2 }, "200": "ok" });
    expect(Object.hasOwn(value, "__proto__")).toBe(true);
    expect(value["polluted"]).toBeUndefined();
    expect((await parse("{a: 1}", "a.yml")).value).toEqual({ a: 1 });
  });

  it("RE-25 says where YAML is broken, keys given twice included", async () => {
    await expect(parse("a: 1\nb: 2\na: 3", "a.yaml")).rejects.toThrow(
      /a\.yaml is not valid YAML: .*unique.*, at line 3, column 1\./,
    );
    await expect(parse("a: [1", "a.yaml")).rejects.toThrow(/not valid YAML: .*line 1/);
  });

  it("RE-25 ends soon where aliases multiply, or nesting has no end", async () => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"];
    for (let i = 1; i < 12; i++)
      lines.push(
        `a${i}: &a${i} [${Array(9)
          .fill(`*a${i - 1}`)
          .join(", ")}]`,
      );
    const start = performance.now();
    await expect(parse(lines.join("\n"), "a.yaml")).rejects.toThrow("its aliases multiply without bounds");
    await expect(parse(`a: ${"[".repeat(50_000)}`, "a.yaml")).rejects.toThrow("not valid YAML");
    expect(performance.now() - start).toBeLessThan(20_000);
  });
});
