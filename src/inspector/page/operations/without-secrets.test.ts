import { expect, test } from "vitest";
import type { JsonSchemaView } from "../../protocol.ts";
import { withoutSecrets } from "./without-secrets.ts";

const kept = (schema: JsonSchemaView | undefined, value: unknown): unknown => {
  const found = withoutSecrets(schema, value);
  return found === undefined ? undefined : JSON.parse(JSON.stringify(found.value));
};

const password = { type: "string", format: "password" };
const writeOnly = { type: "string", writeOnly: true };

test("an input without secrets is kept whole", () => {
  const input = { to: { name: "Ada" }, items: [{ sku: "A1" }], maxTokens: 5, nextPageToken: "p2" };
  expect(withoutSecrets({ type: "object" }, input)).toMatchObject({ isPartial: false });
  expect(kept({ type: "object" }, input)).toEqual(input);
});

test("members that the schema calls secret are left out, wherever the schema says it", () => {
  const secret = { x: "s3", open: 1 };
  const schemas: readonly JsonSchemaView[] = [
    { properties: { x: password } },
    { allOf: [{ properties: { x: writeOnly } }] },
    { oneOf: [{ properties: { open: {} } }, { properties: { x: writeOnly } }] },
    { if: {}, then: { properties: { x: writeOnly } } },
    { $ref: "#/$defs/a~1b", $defs: { "a/b": { properties: { x: { $ref: "#/$defs/s" } } }, s: password } },
    { patternProperties: { "^x$": password }, properties: { open: {} } },
  ];
  for (const schema of schemas) {
    const found = withoutSecrets(schema, secret);
    expect(JSON.stringify(found?.value)).not.toContain("s3");
    expect(found?.isPartial).toBe(true);
  }
});

test("members with the name of a secret are left out, whatever the schema says", () => {
  const input = { apiKey: "k", Authorization: "b", userPassword: "p", tokens: ["t"], a: 1 };
  expect(kept(undefined, input)).toEqual({ a: 1 });
});

test("a list with a secret item goes as a whole, and so does an input that is one", () => {
  expect(kept({ properties: { l: { items: writeOnly } } }, { l: ["s"], a: 1 })).toEqual({ a: 1 });
  expect(kept({ properties: { l: { prefixItems: [{}, password] } } }, { l: ["a", "s"] })).toEqual({});
  expect(kept(password, "s")).toBeUndefined();
});

test("what cannot be resolved or has no end is not kept", () => {
  expect(kept({ properties: { x: { $ref: "https://elsewhere/x" } } }, { x: 1, y: 2 })).toEqual({ y: 2 });
  const loop = { properties: { x: { $ref: "#/properties/x" } } };
  expect(kept(loop, { x: 1 })).toEqual({ x: 1 });
  let deep: unknown = 1;
  for (let at = 0; at < 5_000; at += 1) deep = [deep];
  expect(kept(undefined, { deep, a: 1 })).toEqual({ a: 1 });
  const wide = { allOf: Array.from({ length: 10_000 }, () => ({})) };
  expect(kept({ properties: { wide } }, { wide: 1, a: 1 })).toEqual({ a: 1 });
});

test("names of the prototype are plain members", () => {
  const input: unknown = JSON.parse('{"__proto__":{"a":1},"constructor":"c","toString":2}');
  const found = withoutSecrets({ properties: {} }, input);
  expect(JSON.stringify(found?.value)).toBe(JSON.stringify(input));
});
