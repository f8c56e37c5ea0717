import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SecretMask } from "./secret-mask.ts";

function maskOf(...values: string[]): SecretMask {
  const mask = new SecretMask();
  for (const value of values) mask.add(value);
  return mask;
}

describe("SecretMask", () => {
  it("takes secrets out wherever they stand, and leaves the rest", () => {
    const mask = maskOf("s3cr3t-value", "other9");
    expect(mask.mask("s3cr3t-value and s3cr3t-valueother9 end")).toBe("*** and *** end");
    expect(mask.mask("nothing here")).toBe("nothing here");
    expect(new SecretMask().mask("s3cr3t-value")).toBe("s3cr3t-value");
  });

  it("takes over what another one knows", () => {
    const mask = maskOf("abcdefgh1");
    mask.addAll(maskOf("abcdefgh1-and-more2"));
    expect(mask.mask("abcdefgh1, abcdefgh1-and-more2")).toBe("***, ***");
  });

  it.each([
    ["an address", encodeURIComponent('p@ss/w"ord x')],
    ["an address in small letters", encodeURIComponent('p@ss/w"ord x').toLowerCase()],
    ["a form", encodeURIComponent('p@ss/w"ord x').replaceAll("%20", "+")],
    ["JSON", JSON.stringify('p@ss/w"ord x')],
    ["JSON with escaped slashes", JSON.stringify('p@ss/w"ord x').replaceAll("/", "\\/")],
    ["base64", Buffer.from('p@ss/w"ord x').toString("base64")],
    ["base64 for addresses", Buffer.from('p@ss/w"ord x').toString("base64url")],
  ])("knows a secret as it is written in %s", (_, written) => {
    expect(maskOf('p@ss/w"ord x').mask(`<${written}>`)).toMatch(/^<"?\*\*\*=*"?>$/);
  });

  it("takes out secrets that overlap or hold one another whole", () => {
    expect(maskOf("abcd", "cdefgh").mask("xabcdefghx")).toBe("x***x");
    expect(maskOf("abcd", "abcdefgh").mask("abcdefgh abcdef")).toBe("*** ***ef");
    expect(maskOf("abab").mask("abababab")).toBe("***");
  });

  it("takes out the lines of a secret with several, but not what frames a key", () => {
    const mask = maskOf(
      "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n-----END PRIVATE KEY-----\n",
    );
    expect(mask.mask("MIIEvQIBADANBgkqhkiG9w0B short -----BEGIN PRIVATE KEY-----")).toBe(
      "*** short -----BEGIN PRIVATE KEY-----",
    );
  });

  it.each(["", "abc", "true", "TEST", "1234", "localhost", "****", "aaaaaaaa"])(
    "leaves %j alone",
    (value) => {
      expect(maskOf(value).mask(`it is ${value}.`)).toBe(`it is ${value}.`);
    },
  );

  it("leaves no secret in any text", () => {
    const value = fc.string({
      minLength: 4,
      maxLength: 12,
      unit: fc.constantFrom("a", "b", "1", "/", '"', " ", "é"),
    });
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 5 }),
        fc.array(fc.string({ maxLength: 5 })),
        (values, between) => {
          const mask = maskOf(...values);
          const text = between.map((part, i) => part + (values[i % values.length] as string)).join("");
          const masked = mask.mask(text);
          for (const secret of values) {
            if (mask.mask(secret) === "***") expect(masked).not.toContain(secret);
          }
        },
      ),
    );
  });

  it("takes time by the length of the text, not by the number of secrets", () => {
    const mask = maskOf(...Array.from({ length: 5_000 }, (_, i) => `secret-number-${i}-${i * 7919}`));
    const start = performance.now();
    mask.mask("what a long text this is, with secrets in none of its parts. ".repeat(20_000));
    expect(performance.now() - start).toBeLessThan(3_000);
  });
});
