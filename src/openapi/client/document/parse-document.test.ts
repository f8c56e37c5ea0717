import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parse as parseWithPackage } from "yaml";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import { runs } from "../../../../test/runs.ts";
import { decodeDocument, parseDocument } from "./parse-document.ts";

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
      runs(25),
    );
  });

  it("RE-25 takes a byte order mark, and nothing but UTF-8", async () => {
    expect((await parse("\uFEFF{}")).value).toEqual({});
    expect((await parse("\uFEFFa: é", "a.yaml")).value).toEqual({ a: "é" });
    await expect(parse(Buffer.from([0x7b, 0xff, 0x7d]))).rejects.toThrow("a.json is not UTF-8 text");
    await expect(parse(Buffer.from("{}", "utf16le"))).rejects.toThrow();
    expect(decodeDocument(Buffer.from([0xc3]), true)).toBeUndefined();
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
      'a.yaml is not valid YAML: the key "a" is given twice, at line 3, column 1.',
    );
    await expect(parse("a: [1", "a.yaml")).rejects.toThrow(/not valid YAML: .*line 1/);
  });

  it("RE-25 reads YAML as its package does, aliases and merge keys included", async () => {
    const texts = [
      ...["a: &x [1, {b: 2}]\nc: *x", "a: &x {b: 1}\nc: {<<: [*x, {d: 2}], b: 3}", "a: {<<: {b: 1}}", "null"],
      ...[
        "? a\n: 1\n? 2\n:",
        "'<<': {a: 1}",
        "a: !odd x\nb: !!str 1",
        "- 0x1F\n- .inf\n- ~",
        "a: |\n  b\n  c",
      ],
    ];
    for (const text of texts) {
      expect((await parse(text, "a.yaml")).value).toEqual(
        parseWithPackage(text, { merge: true, logLevel: "error" }),
      );
    }
    const { value } = (await parse("a: &x {self: *x}", "a.yaml")) as { value: { a: { self: unknown } } };
    expect(value.a.self).toBe(value.a);
  });

  it.each([
    ["a: 1\nb:\n  - c: d: e", "Nested mappings are not allowed in compact mappings, at line 3, column 8"],
    ["a: *x", "an alias has no anchor before it, at line 1, column 4"],
    ["a: {<<: 5}", "what is merged is no map, at line 1, column 5"],
    ["? [a]\n: 1", "a key is a list or a map, at line 1, column 3"],
    ["200: a\n'200': b", 'the key "200" is given twice, at line 2, column 1'],
    ["a: 1\n---\nb: 2", "it holds several documents, at line 2"],
  ])("RE-25 refuses the YAML %j and says where", async (text, message) => {
    await expect(parse(text, "a.yaml")).rejects.toThrow(`a.yaml is not valid YAML: ${message}`);
  });

  it("RE-25 takes time that grows with the text, however many keys or errors it has", async () => {
    const took = async (text: string) => {
      const start = cpuMs();
      await parse(text, "a.yaml").catch(() => undefined);
      return cpuMs() - start;
    };
    const keys = (count: number) => Array.from({ length: count }, (_, i) => `k${i}: 1`).join("\n");
    await took(keys(1_000));
    // 64 times the keys of what takes seconds where each is compared with all others.
    expect(await took(keys(40_000))).toBeLessThan(15_000);
    expect(await took("\t: @a\n".repeat(200_000))).toBeLessThan(15_000);
  });

  it("RE-25 lets aliases and merge keys repeat a million values, and no more", async () => {
    const base = `b: &b {${Array.from({ length: 998 }, (_, i) => `k${i}: 1`).join(", ")}}\n`;
    const merging = (count: number) =>
      base + Array.from({ length: count }, (_, i) => `m${i}: {<<: *b}`).join("\n");
    await expect(parse(merging(1_001), "a.yaml")).resolves.toMatchObject({ mayReferOut: true });
    await expect(parse(merging(1_002), "a.yaml")).rejects.toMatchObject({
      ...{ code: "TOO_LARGE", message: expect.stringContaining("its aliases multiply without bounds") },
    });
  });

  it.each(["<!doctype html><p>", "\n<html>", "<?xml version='1.0'?>"])(
    "RE-25 says that %j is no document",
    async (text) => {
      await expect(parse(text, "https://a.example/docs")).rejects.toThrow(
        /^https:\/\/a\.example\/docs is (?:an HTML page|XML), not an OpenAPI document/,
      );
    },
  );

  it("RE-25 ends soon where aliases multiply, or nesting has no end", async () => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"];
    for (let i = 1; i < 12; i++)
      lines.push(
        `a${i}: &a${i} [${Array(9)
          .fill(`*a${i - 1}`)
          .join(", ")}]`,
      );
    const start = cpuMs();
    await expect(parse(lines.join("\n"), "a.yaml")).rejects.toMatchObject({
      ...{ code: "TOO_LARGE", message: expect.stringContaining("a.yaml is too large: its aliases multiply") },
    });
    await expect(parse(`a: ${"[".repeat(50_000)}`, "a.yaml")).rejects.toMatchObject({
      ...{ code: "TOO_LARGE", message: "a.yaml is too large: it is nested too deeply." },
    });
    expect(cpuMs() - start).toBeLessThan(20_000);
  });
});
