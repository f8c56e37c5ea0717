import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
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

  const AWKWARD = "Zk9/cd+ef=G ~jk&x!Q*y(7)'é😀";
  const percent = (text: string): string => text.replace(/[^A-Za-z0-9_.~/-]/gu, percentAll);
  const percentAll = (text: string): string =>
    [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, "0").toUpperCase()}`).join("");
  const code = (text: string): string =>
    text.replace(/[^A-Za-z0-9]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const html = (text: string): string =>
    text
      .replaceAll("&", "&amp;")
      .replaceAll("'", "&#39;")
      .replaceAll("=", "&#x3D;")
      .replaceAll("😀", "&#128512;");
  it.each([
    ["an address whose slashes stay", percent(AWKWARD)],
    ["an address, every byte of it", percentAll(AWKWARD).toLowerCase()],
    ["a form, as browsers write it", new URLSearchParams({ a: AWKWARD }).toString().slice(2)],
    ["an address within an address", encodeURIComponent(encodeURIComponent(AWKWARD))],
    ["HTML", html(AWKWARD)],
    ["JSON with escapes for all but letters", code(AWKWARD)],
    ["JSON within JSON within JSON", JSON.stringify(JSON.stringify(html(AWKWARD))).slice(1, -1)],
    ["hexadecimal", Buffer.from(AWKWARD).toString("hex")],
    ["hexadecimal in capitals", Buffer.from(AWKWARD).toString("hex").toUpperCase()],
  ])("knows a secret as it is escaped in %s", (_, written) => {
    const mask = maskOf(AWKWARD);
    expect(mask.finds(`é%41 <${written}>`)).toBe(true);
    expect(mask.mask(`é%41&lt;${written}&gt; %zz`)).toMatch(/^é%41&lt;(?:\\*")?\*\*\*(?:\\*")?&gt; %zz$/);
  });

  it("leaves text with escapes as it is, and finds each secret among them", () => {
    const mask = maskOf("s3cr3t-value");
    const text = "100 % \\u00e9 &nbsp; %C3%28 %ff \\q &#9999999; C:\\new";
    expect(mask.mask(text)).toBe(text);
    expect(mask.mask(`${text}%733cr3t%2Dvalue${text}s3cr3t-value&amp;s3cr3t&#45;value`)).toBe(
      `${text}***${text}***&amp;***`,
    );
  });

  it("reads a text of nothing but escapes in time by its length", () => {
    const mask = maskOf("s3cr3t-value");
    const start = cpuMs();
    expect(mask.mask("%25%34%31".repeat(400_000)).length).toBe(3_600_000);
    expect(mask.finds("\\u0041".repeat(600_000))).toBe(false);
    expect(cpuMs() - start).toBeLessThan(6_000);
  });

  it.each([8, 9, 10, 11, 24])(
    "knows a secret of %d bytes within longer text in base64, wherever it stands there",
    (length) => {
      const secret = "sä3cr3t/?value>with~more-in".slice(0, length - 1);
      const mask = maskOf(secret);
      for (const before of ["", "u", "us", "use", "user:", "name:"]) {
        for (const after of ["", "!", "!!", "!!!"]) {
          for (const form of ["base64", "base64url"] as const) {
            const written = Buffer.from(before + secret + after).toString(form);
            expect(mask.mask(`<${written}>`)).toMatch(/^<[\w+/-]{0,7}\*\*\*[\w+/-]{0,5}=*>$/);
          }
        }
      }
    },
  );

  it("leaves base64 alone that holds a part of a secret of seven bytes", () => {
    const written = Buffer.from("u:s3cr3t!").toString("base64");
    expect(maskOf("s3cr3t!").mask(written)).toBe(written);
    expect(maskOf("s3cr3t!!").mask(Buffer.from("u:s3cr3t!!").toString("base64"))).toContain("***");
  });

  it("looks at no more than the beginning of what only begins like a long secret", () => {
    const key = `-----BEGIN PRIVATE KEY-----\n${"MIIEvQIBADANBgkqhkiG9w0B\n".repeat(2_000)}`;
    const mask = maskOf(key);
    const text = "-".repeat(200_000);
    expect(mask.mask(text)).toBe(text);
    expect(mask.mask(`${text}${key}.`)).toBe(`${"-".repeat(200_000)}***.`);
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

  it("masks many short texts in time by their length: each log line and each text of a result is one", () => {
    const secrets = new SecretMask();
    secrets.add("s3cr3t-t0ken-value-1234");
    const start = cpuMs();
    for (let i = 0; i < 300_000; i++) secrets.mask(`operation-${i}`);
    expect(cpuMs() - start).toBeLessThan(1_500);
  });

  it("takes time by the length of the text, not by the number of secrets", () => {
    const mask = maskOf(...Array.from({ length: 5_000 }, (_, i) => `secret-number-${i}-${i * 7919}`));
    const start = cpuMs();
    mask.mask("what a long text this is, with secrets in none of its parts. ".repeat(20_000));
    expect(cpuMs() - start).toBeLessThan(3_000);
  });
});
