import { describe, expect, it } from "vitest";
import type { JsonSchemaObject } from "./json-schema.ts";
import { ReferenceTargets } from "./schema-index.ts";

const targetsIn = (document: JsonSchemaObject, schema: JsonSchemaObject = document) =>
  new ReferenceTargets(document).referencesOf(schema).map(({ target }) => target);

describe("what references mean", () => {
  it("RE-32 finds pointers, anchors and names, and nothing where there is nothing", () => {
    const inner = { $id: "https://a.test/inner", $anchor: "here", type: "string" };
    const document = { $defs: { inner, never: false }, properties: {} };
    const find = ($ref: string) => {
      const schema = { $ref };
      return targetsIn({ ...document, properties: { schema } }, schema);
    };
    expect(find("#/$defs/inner")).toEqual([inner]);
    expect(find("https://a.test/inner#here")).toEqual([inner]);
    expect(find("#/$defs/never")).toEqual([false]);
    expect(find("#/$defs/nobody")).toEqual([undefined]);
    expect(find("https://b.test/")).toEqual([undefined]);
  });

  it("RE-32 knows only $ref before 2019-09", () => {
    const $schema = "http://json-schema.org/draft-07/schema#";
    const document = { $schema, $ref: "#/definitions/a", $recursiveRef: "#", definitions: { a: {} } };
    const targets = new ReferenceTargets(document);
    expect(targets.isOld(document)).toBe(true);
    expect(targets.referencesOf(document).map(({ keyword }) => keyword)).toEqual(["$ref"]);
    expect(new ReferenceTargets({}).isOld({})).toBe(false);
  });

  it("RE-32 tells what a dynamic reference means only where that is the same from everywhere", () => {
    const use = { $dynamicRef: "#item" };
    const one = { $id: "https://a.test/one", $defs: { item: { $dynamicAnchor: "item", type: "string" } } };
    const two = { $id: "https://a.test/two", $defs: { item: { $dynamicAnchor: "item", type: "number" } } };
    const inOne = { ...one, properties: { use } };
    expect(targetsIn({ $defs: { inOne } }, use)).toEqual([one.$defs.item]);
    expect(targetsIn({ $defs: { inOne, two } }, use)).toEqual([undefined]);
    const outer = { $dynamicAnchor: "item" };
    expect(targetsIn({ $defs: { inOne, two, outer } }, use)).toEqual([outer]);
  });

  it("RE-32 visits all that can be reached, each reference of a schema once, circles included", () => {
    const a = { properties: { b: { $ref: "#/$defs/b" } } };
    const b = { $ref: "#" };
    const document = { $ref: "#/$defs/a", $defs: { a, b } };
    const seen: unknown[] = [];
    new ReferenceTargets(document).forEachReference((target, reference) => seen.push([target, reference]));
    expect(seen).toEqual([
      [a, "#/$defs/a"],
      [document, "#"],
      [b, "#/$defs/b"],
    ]);
  });
});
