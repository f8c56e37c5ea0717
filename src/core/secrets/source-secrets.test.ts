import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { httpEnvelope, mcpEnvelope, rawData } from "../envelope/envelope.ts";
import { CallError, toCallError } from "../errors/errors.ts";
import { wordsIn } from "../errors/source-words.ts";
import { maskEnvelope, maskValue, SecretMask, SourceSecrets } from "./secret-mask.ts";

const SECRET = "canary/4f1c9e27 ab53d860";

function secretsOf(...values: string[]): SourceSecrets {
  return new SourceSecrets(undefined, { secrets: values });
}

function maskOf(...values: string[]): SecretMask {
  const mask = new SecretMask();
  for (const value of values) mask.add(value);
  return mask;
}

describe("masking a value", () => {
  it("X-11 gives the same value back where there is no secret", () => {
    const value = { a: [1, "text", { b: new Map([["k", new Set([1n])]]) }], bytes: new Uint8Array(9) };
    expect(maskValue(value, maskOf(SECRET))).toBe(value);
    const envelope = httpEnvelope(value, { statusCode: 200, headers: {} });
    expect(maskEnvelope(envelope, maskOf(SECRET))).toBe(envelope);
  });

  it.each<[string, unknown, unknown]>([
    ["a text", `a ${SECRET} b`, "a *** b"],
    ["a key", { [SECRET]: 1 }, { "***": 1 }],
    ["an address", `?k=${encodeURIComponent(SECRET)}`, "?k=***"],
    ["JSON within a text", JSON.stringify({ k: SECRET }), '{"k":"***"}'],
    ["a map", new Map([[SECRET, SECRET]]), new Map([["***", "***"]])],
    ["a set", new Set([SECRET]), new Set(["***"])],
    ["an error", new Error(SECRET), new Error("***")],
    [
      "bytes",
      new TextEncoder().encode(`a${SECRET}`),
      new TextEncoder().encode(`a${"*".repeat(SECRET.length)}`),
    ],
    ["a member called __proto__", JSON.parse(`{"__proto__":"${SECRET}"}`), JSON.parse('{"__proto__":"***"}')],
  ])("X-11 finds a secret in %s", (_, value, masked) => {
    expect(maskValue({ value }, maskOf(SECRET))).toEqual({ value: masked });
  });

  it("X-11 finds a secret that is a number", () => {
    const digits = "1234567890123456";
    expect(maskValue([Number(digits), BigInt(digits), 5], maskOf(digits))).toEqual(["***", "***", 5]);
  });

  it("X-11 leaves no secret wherever it stands, and nothing else changed", () => {
    const value = fc.jsonValue({ maxDepth: 4 });
    fc.assert(
      fc.property(value, fc.string(), fc.string(), (json, before, after) => {
        const masked = maskValue({ json, text: before + SECRET + after }, maskOf(SECRET));
        expect(JSON.stringify(masked)).not.toContain(SECRET);
        expect(masked.json).toEqual(json);
      }),
      runs(300),
    );
  });

  it("X-11 names 100 places of a result, and masks the rest as well", () => {
    const named = (count: number) => {
      const data = Array.from({ length: count }, () => SECRET);
      const masked = maskEnvelope(httpEnvelope(data, { statusCode: 200, headers: {} }), maskOf(SECRET));
      expect(masked.data).toEqual(data.map(() => "***"));
      expect(rawData(masked)).toEqual(masked.data);
      return masked.meta.waybill?.masked?.length;
    };
    expect([named(100), named(101)]).toEqual([100, 100]);
  });

  it("X-11 keeps data that is the content itself the content itself", () => {
    const content = [{ type: "text", text: SECRET } as const];
    const { data, meta } = maskEnvelope(mcpEnvelope(content, { isError: false, content }), maskOf(SECRET));
    expect(meta.source === "mcp" && data === meta.content).toBe(true);
    expect(meta.waybill?.masked).toEqual(["/data/0/text", "/meta/content/0/text"]);
  });
});

describe("the secrets of a source", () => {
  it("X-11 from 16 characters on are masked in results, and all of them in errors", () => {
    const [long, short] = ["0123456789abcdef", "0123456789abcde"];
    const ok = (text: string) => httpEnvelope(text, { statusCode: 200, headers: {} });
    const no = (text: string) => mcpEnvelope(text, { isError: true, content: [] });
    expect(secretsOf(long).maskEnvelope(ok(long)).data).toBe("***");
    expect(secretsOf(short).maskEnvelope(ok(short)).data).toBe(short);
    expect(secretsOf(short).maskEnvelope(no(short)).data).toBe("***");
    const off = new SourceSecrets(undefined, { secrets: [long], maskResults: false });
    expect([off.maskEnvelope(ok(long)).data, off.maskEnvelope(no(long)).data]).toEqual([long, "***"]);
  });

  it("X-11 are masked in an error with its causes, and what is local stays so", () => {
    const cause = new Error(`read ${SECRET}`, { cause: Object.assign(new Error("x"), { body: SECRET }) });
    const details = { body: SECRET, status: 400 };
    const error = new CallError("CONFLICT", `It said ${SECRET}.`, { cause, details, local: ["body"] });
    const masked = toCallError(secretsOf(SECRET).maskError(error));
    expect(masked).toMatchObject({ message: "It said ***.", details: { body: "***", status: 400 } });
    expect(masked.toJSON().details).toEqual({ status: 400 });
    expect(String(masked.cause)).toBe("Error: read ***");
    expect(JSON.stringify((masked.cause as Error).cause)).not.toContain("canary");
    const clean = new CallError("CONFLICT");
    expect(secretsOf(SECRET).maskError(clean)).toBe(clean);
  });

  it("X-11 had at run time are remembered, 256 of them at least, and not without end", () => {
    const secrets = secretsOf();
    const token = (n: number) => `token-${n}-${"x".repeat(20)}`;
    for (let n = 0; n < 256; n++) secrets.obtained(token(n));
    expect(secrets.mask(token(0))).toBe("***");
    secrets.obtained(token(256));
    expect([secrets.mask(token(1)), secrets.mask(token(256))]).toEqual(["***", "***"]);
    for (let n = 257; n < 600; n++) secrets.obtained(token(n));
    expect(secrets.mask(token(0))).toBe(token(0));
  });

  it("X-11 are taken out before words are cut, whole", () => {
    const { said = "" } = secretsOf(SECRET).saying(`${"x".repeat(995)}${SECRET} and more`);
    expect(said).toBe(`${"x".repeat(995)}*** …`);
    expect(secretsOf(SECRET).saying(`canary/4f\u200b1c9e27 ab53d860`)).toEqual({ said: "***" });
  });
});

describe("the words of an error's body", () => {
  it.each<[unknown, string]>([
    ["text", "text"],
    [{ message: "m", extra: 1 }, "m"],
    [{ title: "t", detail: "d" }, "d\nt"],
    [{ error: { message: "m", code: 1 } }, "m"],
    [{ error: "invalid_grant", error_description: "It ended." }, "invalid_grant\nIt ended."],
    [{ errors: ["a", { field: "f", message: "m" }] }, 'a\n{"field":"f","message":"m"}'],
    [{ message: "m", error: "m" }, "m"],
    [{ message: "", other: 1 }, '{"message":"","other":1}'],
    [["a"], '["a"]'],
    [{ toJSON: 1 }, '{"toJSON":1}'],
    [undefined, ""],
    [null, ""],
    [new Uint8Array(3), ""],
  ])("X-11 of %j are %j", (body, words) => {
    expect(wordsIn(body)).toBe(words);
  });
});
