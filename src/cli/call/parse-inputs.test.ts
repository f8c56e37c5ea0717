import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CommandError } from "../io.ts";
import { parseInputs } from "./parse-inputs.ts";

const folder = mkdtempSync(join(tmpdir(), "waybill-inputs-"));
writeFileSync(join(folder, "whole.json"), '{"to": "Rome", "kg": 1}');
writeFileSync(join(folder, "note.txt"), "two\nlines");
writeFileSync(join(folder, "bytes.bin"), Buffer.from([0, 255, 1]));
writeFileSync(join(folder, "list.json"), "[1, 2]");

const schema = {
  type: "object",
  properties: {
    to: { type: "string" },
    kg: { type: "number" },
    count: { type: ["integer", "null"] },
    fragile: { type: "boolean" },
    tags: { type: "array", items: { type: "string" } },
    sizes: { type: "array", items: { $ref: "#/$defs/size" } },
    level: { enum: ["1", 2, true] },
    "filter.name": { type: "string" },
    sender: { type: "object", properties: { name: { type: "string" }, age: { type: "integer" } } },
    stops: { type: "array", items: { type: "object", properties: { at: { type: "integer" } } } },
    picture: { type: "string", contentEncoding: "base64" },
    upload: { type: "string", format: "binary" },
    body: { anyOf: [{ type: "string" }, { type: "object" }] },
  },
  $defs: { size: { type: "integer" } },
} as const;

const parse = (words: string[], stdin = "") =>
  parseInputs(words, { schema, cwd: folder, readStdin: async () => stdin });

describe("inputs of a call", () => {
  it.each<[string[], unknown]>([
    [["to=5", "kg=5", "fragile=true"], { to: "5", kg: 5, fragile: true }],
    [["to=a=b@c"], { to: "a=b@c" }],
    [["to="], { to: "" }],
    [["count=null"], { count: null }],
    [["kg=abc"], { kg: "abc" }],
    [["tags=a", "tags=b"], { tags: ["a", "b"] }],
    [["tags=7"], { tags: ["7"] }],
    [['tags=["a"]', "tags=b"], { tags: ["a", "b"] }],
    [["sizes=1", "sizes=2"], { sizes: [1, 2] }],
    [["level=1"], { level: "1" }],
    [["level=2"], { level: 2 }],
    [["sender.name=Ada", "sender.age=36"], { sender: { name: "Ada", age: 36 } }],
    [["filter.name=x"], { "filter.name": "x" }],
    [["stops.0.at=1", "stops.1.at=2"], { stops: [{ at: 1 }, { at: 2 }] }],
    [["stops[0].at=1", "stops[1].at=2"], { stops: [{ at: 1 }, { at: 2 }] }],
    [["sizes[0]=1", "other[0]=2"], { sizes: [1], "other[0]": 2 }],
    [["other=5", "more=x", "flag=true"], { other: 5, more: "x", flag: true }],
    [["other=1", "other=2", "other=3"], { other: [1, 2, 3] }],
    [["id=12345678901234567890"], { id: "12345678901234567890" }],
    [['to:="x"', "kg:=[1]"], { to: "x", kg: [1] }],
    [['{"to":"x"}'], { to: "x" }],
    [['{"to":"x","kg":1}', "kg=2"], { to: "x", kg: 2 }],
    [["@whole.json", "kg=2"], { to: "Rome", kg: 2 }],
    [["to=@note.txt"], { to: "two\nlines" }],
    [["to@note.txt"], { to: "two\nlines" }],
    [["to=@@note"], { to: "@note" }],
    [["sizes:=@list.json"], { sizes: [1, 2] }],
    [["sizes=@list.json"], { sizes: [1, 2] }],
    [["picture=@bytes.bin"], { picture: "AP8B" }],
    [["upload=@bytes.bin"], { upload: { base64: "AP8B", filename: "bytes.bin" } }],
    [['body={"a":1}'], { body: { a: 1 } }],
    [["body=text"], { body: "text" }],
    [["[1]"], [1]],
    [["7"], 7],
    [[], undefined],
  ])("%j are read by the schema", async (words, input) => {
    expect(await parse(words)).toEqual(input);
  });

  it("come from stdin when asked for", async () => {
    expect(await parse(["-", "kg=2"], '\ufeff{"to": "x"}')).toEqual({ to: "x", kg: 2 });
  });

  it.each([
    [["nothing"], /"nothing" is not understood/],
    [["=x"], /is not understood/],
    [["a..b=1"], /empty part/],
    [["a.=1"], /ends with a dot/],
    [['{"a":'], /The input is not JSON: it ends too early/],
    [['{"a":\n  x}'], /line 2, column 3/],
    [["{}", "[]"], /more than once/],
    [["[]", "a=1"], /JSON object/],
    [["kg:=x"], /The value of "kg" is not JSON/],
    [["to=a", "to=b"], /"to" is given more than once/],
    [["kg=12345678901234567890"], /cannot hold exactly/],
    [["@missing.json"], /"missing.json" does not exist/],
    [["to=@."], /is a folder/],
    [["to=@bytes.bin"], /not UTF-8/],
    [["stops.0.at=1", "stops.5.at=1"], /no place "5"/],
    [["to=x", "to.y=1"], /no members/],
    [["-"], /stdin is not JSON: it is empty/],
  ])("%j are one clear mistake", async (words, message) => {
    const failed = await parse(words).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(CommandError);
    expect((failed as CommandError).exitCode).toBe(2);
    expect((failed as CommandError).message).toMatch(message);
  });

  it("never touch a prototype, and fail in no other way", async () => {
    const input = await parse(["__proto__.polluted=1", "constructor=2"]);
    expect(Object.hasOwn(input as object, "__proto__")).toBe(true);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string(), { maxLength: 4 }), async (words) => {
        await parse(words).catch((error: unknown) => expect(error).toBeInstanceOf(CommandError));
      }),
    );
  });

  it("hold any text as a string where the schema says string", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), async (text) => {
        fc.pre(!text.startsWith("@"));
        expect(await parse([`to=${text}`])).toEqual({ to: text });
      }),
    );
  });
});
