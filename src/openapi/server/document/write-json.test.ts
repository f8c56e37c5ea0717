import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { takeSteps } from "../to-openapi.ts";
import { writeJsonBlocks } from "./schema-json.ts";

function written(document: object): { readonly text: string; readonly blocks: number } {
  const blocks: Uint8Array[] = [];
  takeSteps(writeJsonBlocks(document, (block) => blocks.push(block)));
  return { text: Buffer.concat(blocks).toString(), blocks: blocks.length };
}

describe("writeJson", () => {
  it("RE-30 writes what JSON.stringify writes, whatever the document says", () => {
    const members = fc.dictionary(
      fc.string({ unit: "binary" }),
      fc.oneof(fc.jsonValue(), fc.constant(undefined)),
    );
    const documents = fc.dictionary(fc.string(), fc.oneof(members, fc.dictionary(fc.string(), members)));
    fc.assert(
      fc.property(documents, (document) => {
        expect(written(document).text).toBe(JSON.stringify(document));
      }),
    );
  });

  it("RE-30 leaves out what is undefined, and writes empty objects", () => {
    const document = { a: undefined, b: {}, c: { d: undefined, e: { f: {} } }, g: [undefined] };
    expect(written(document).text).toBe('{"b":{},"c":{"e":{"f":{}}},"g":[null]}');
    expect(written({}).text).toBe("{}");
  });

  it("RE-30 hands a large document over in blocks, no character of it cut in two", () => {
    const paths = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, i) => [`/${i}/😀`, { text: "é😀".repeat(9) }]),
    );
    const { text, blocks } = written({ paths });
    expect(text).toBe(JSON.stringify({ paths }));
    expect(blocks).toBeGreaterThan(3);
  });
});
