import { describe, expect, it } from "vitest";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import { maskJson } from "./calls/written-json.ts";

const secrets = new SecretMask();
secrets.add("hunter2-hunter2");
secrets.add("55512345");
const mask = (value: unknown): unknown =>
  JSON.parse(maskJson(JSON.stringify(value), (text) => secrets.mask(text)));

describe("masking JSON", () => {
  it("takes secrets out of texts and names, and leaves JSON", () => {
    expect(mask({ a: "my hunter2-hunter2", "hunter2-hunter2": [true, null] })).toEqual({
      a: "my ***",
      "***": [true, null],
    });
    expect(mask(JSON.parse('{"__proto__":"hunter2-hunter2"}'))).toEqual(JSON.parse('{"__proto__":"***"}'));
  });

  it("leaves numbers that a secret only happens to stand in", () => {
    expect(mask({ at: 1755512345000, pin: 55512345 })).toEqual({ at: 1755512345000, pin: "***" });
  });

  it("gives the same text back where there is nothing to hide", () => {
    const text = '{ "a" : 1 }';
    expect(maskJson(text, (given) => secrets.mask(given))).toBe(text);
  });
});
