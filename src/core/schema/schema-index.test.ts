import { describe, expect, it } from "vitest";
import { expectAnswers, refusal } from "../../../test/schema-answers.ts";
import { compileSchema } from "./compile-schema.ts";

const DRAFT_07 = "http://json-schema.org/draft-07/schema#";
const DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema";

describe("references", () => {
  it.each([
    [
      "https://x.example/a",
      '$ref "https://x.example/a" names a document that is not here; nothing is fetched',
    ],
    ["other.json#/a", '$ref "other.json#/a" names a document that is not here'],
    [`https://x.example/${"a".repeat(100)}`, `$ref "https://x.example/${"a".repeat(82)}…" names a document`],
    ["#/$defs/none", '$ref "#/$defs/none" points at nothing.'],
    ["#/$defs/text/type", "points at nothing."],
    ["#/$defs/text/type/x", "points at nothing."],
    ["#none", '$ref "#none" points at nothing.'],
    ["http://[", '"http://[" is not a URI reference.'],
  ])("RE-32 refuses the reference %s", ($ref, message) => {
    const error = refusal({ properties: { a: { $ref } }, $defs: { text: { type: "string" } } });
    expect(error.message).toContain(message);
    expect(error.pointer).toBe("/properties/a/$ref");
  });

  const text = { type: "string" };
  it.each([
    ["a pointer", { $ref: "#/$defs/a", $defs: { a: text } }],
    ["an escaped pointer", { $ref: "#/$defs/a~1b~0c%20d", $defs: { "a/b~c d": text } }],
    ["a pointer with a stray percent sign", { $ref: "#/$defs/%zz", $defs: { "%zz": text } }],
    ["a pointer into a list", { $ref: "#/$defs/l/allOf/0", $defs: { l: { allOf: [text] } } }],
    ["a place no keyword leads to", { $ref: "#/x/y", x: { y: { $ref: "#/x/z" }, z: text } }],
    ["an anchor", { $ref: "#a", $defs: { x: { $anchor: "a", ...text } } }],
    ["a dynamic anchor", { $ref: "#a", $defs: { x: { $dynamicAnchor: "a", ...text } } }],
    ["a relative $id", { $id: "https://x.example/r/", $ref: "i", $defs: { x: { $id: "i", ...text } } }],
    ["its own $id", { $id: "https://x.example/r", $ref: "r#/$defs/a", $defs: { a: text } }],
    [
      "an $id without a base",
      { $ref: "i#a", $defs: { x: { $id: "i", $defs: { y: { $anchor: "a", ...text } } } } },
    ],
    [
      "a pointer that belongs to the embedded document it passes",
      { $ref: "#/$defs/x/$defs/y", $defs: { x: { $id: "i", $defs: { y: { $ref: "#/$defs/z" }, z: text } } } },
    ],
    [
      "an anchor of draft-07",
      { $schema: DRAFT_07, allOf: [{ $ref: "#a" }], definitions: { x: { $id: "#a", ...text } } },
    ],
    ["$dynamicRef to a plain anchor", { $dynamicRef: "#a", $defs: { x: { $anchor: "a", ...text } } }],
    [
      "$dynamicRef beside allOf",
      { $dynamicRef: "#a", allOf: [true], $defs: { x: { $anchor: "a", ...text } } },
    ],
  ])("RE-32 finds %s", (_, schema) => {
    expectAnswers(compileSchema(schema), ["a"], [1]);
  });

  it("RE-32 keeps the anchors of an embedded document to itself", () => {
    const $defs = { x: { $id: "i", $defs: { y: { $anchor: "a" } } } };
    expect(refusal({ $ref: "#a", $defs }).message).toContain("points at nothing");
    expect(refusal({ $ref: "#a", $defs: { y: { $id: "#a" } } }).message).toContain("points at nothing");
    expect(refusal({ $id: "http://[" }).message).toContain("is not a URI reference");
  });

  it("RE-32 finds further documents by URI, vets them, and follows what they refer to", () => {
    const documents = {
      "https://x.example/a": { $defs: { n: { $ref: "b" } } },
      "https://x.example/b": { type: "integer" },
      "https://x.example/bad": { type: "strin" },
      "https://x.example/never": false,
    };
    const at = (name: string) => ({ $ref: `https://x.example/${name}` });
    expectAnswers(compileSchema(at("a#/$defs/n"), { documents }), [1], ["a"]);
    expectAnswers(compileSchema({ anyOf: [at("never"), { const: 1 }] }, { documents }), [1], [2]);
    expect(refusal(at("bad"), { documents }).message).toContain('"strin" is not a JSON Schema type.');
  });

  it.each([DRAFT_2020, DRAFT_07])("RE-32 knows the metaschema %s", ($ref) => {
    const good = [true, {}, { type: ["string", "null"] }, { properties: { a: { not: { minLength: 1 } } } }];
    const bad = [
      5,
      { type: "strin" },
      { type: [] },
      { properties: { a: { not: { minLength: -1 } } } },
      { allOf: [] },
    ];
    for (const codegen of [true, false]) expectAnswers(compileSchema({ $ref }, { codegen }), good, bad);
    expectAnswers(compileSchema({ properties: { s: { $ref } } }), [{ s: {} }], [{ s: { required: "a" } }]);
  });
});
