import { describe, expect, it } from "vitest";
import { CallError } from "../src/index.ts";
import { answering, minimal, read } from "./openapi-document-reading.ts";

describe("what reading a document may take", () => {
  const url = "https://a.example/d/openapi.json";
  const referring = (count: number) =>
    JSON.stringify(
      minimal(answering({ anyOf: Array.from({ length: count }, (_, i) => ({ $ref: `f${i}.json` })) })),
    );

  it("RE-25 counts files that cannot be read against the limit, before any is read", async () => {
    let asked = 0;
    const fetchText = async (at: URL) => {
      if (at.href === url) return referring(5);
      asked += 1;
      throw new Error("no");
    };
    expect((await read(url, { fetchText, limits: { files: 6 } })).operations).toHaveLength(1);
    expect(asked).toBe(5);
    await expect(read(url, { fetchText, limits: { files: 5 } })).rejects.toMatchObject({
      ...{ code: "TOO_LARGE", message: `${url} refers to more than 5 files (limits.files).` },
    });
    expect(asked).toBe(5);
  });

  it("RE-25 reads eight files at a time", async () => {
    let open = 0;
    let most = 0;
    const fetchText = async (at: URL) => {
      if (at.href === url) return referring(20);
      most = Math.max(most, ++open);
      await new Promise((resolve) => setTimeout(resolve, 5));
      open -= 1;
      return "{}";
    };
    await read(url, { fetchText });
    expect(most).toBe(8);
  });

  it("RE-25 passes the limit on, and counts the bytes of all files together", async () => {
    const root = referring(4);
    const size = root.length;
    const limits: number[] = [];
    const fetchText = (last: number) => async (at: URL, maxBytes: number) => {
      limits.push(maxBytes);
      if (at.href === url) return root;
      return JSON.stringify("x".repeat((at.pathname.endsWith("f3.json") ? last : size) - 2));
    };
    const reading = (last: number) =>
      read(url, { fetchText: fetchText(last), limits: { documentBytes: size } });
    await expect(reading(2)).rejects.toMatchObject({
      ...{ code: "TOO_LARGE", message: expect.stringContaining(`larger than ${4 * size} bytes together`) },
    });
    expect(new Set(limits)).toEqual(new Set([size]));
    const three = JSON.stringify(minimal(answering({ anyOf: [{ $ref: "f0.json" }, { $ref: "f1.json" }] })));
    const text = async (at: URL) => (at.href === url ? three : JSON.stringify("x".repeat(three.length - 2)));
    const small = await read(url, { fetchText: text, limits: { documentBytes: three.length } });
    expect(small.operations).toHaveLength(1);
  });

  it("RE-25 gives up on files that never come, with what was read so far", async () => {
    const fetchText = (at: URL) =>
      at.href === url ? Promise.resolve(referring(2)) : new Promise<string>(() => {});
    await expect(read(url, { fetchText, timeoutMs: 1_500 })).rejects.toMatchObject({
      ...{ code: "TIMEOUT", message: `${url} was not read within 1.5 seconds; 1 of its files were.` },
    });
  });

  it("RE-25 says that it was the document which could not be had", async () => {
    const failing = (error: unknown) => read(url, { fetchText: () => Promise.reject(error) });
    await expect(failing(new CallError("UNAVAILABLE", "a.example refused."))).rejects.toMatchObject({
      ...{ code: "UNAVAILABLE", message: `The document ${url} cannot be read: a.example refused.` },
    });
    const named = new CallError("UNAVAILABLE", `${url} answered 404.`);
    await expect(failing(named)).rejects.toBe(named);
    await expect(failing(new Error("odd"))).rejects.toThrow(`${url} cannot be read.`);
    await expect(read(url, { fetchText: async () => "<!doctype html>" })).rejects.toThrow(
      `${url} is an HTML page, not an OpenAPI document`,
    );
    await expect(read(url, { fetchText: async () => '{"openapi":"3.1.0","paths":5}' })).rejects.toThrow(
      `${url} has "paths" that are not an object.`,
    );
  });

  it("RE-25 says TOO_LARGE where a limit is passed", async () => {
    const one = minimal({});
    await expect(read(one, { limits: { operations: 0 } })).rejects.toMatchObject({ code: "TOO_LARGE" });
    const reading = read(url, { fetchText: async () => "{}", limits: { documentBytes: 1 } });
    await expect(reading).rejects.toMatchObject({ code: "TOO_LARGE" });
  });

  it("RE-25 says TOO_LARGE where YAML multiplies or has no end of nesting", async () => {
    const list = (name: string, of: string) => `${name}: &${name} [${Array(9).fill(of).join(", ")}]`;
    const aliases = [list("a0", "x"), ...Array.from({ length: 11 }, (_, i) => list(`a${i + 1}`, `*a${i}`))];
    const base = `b: &b {${Array.from({ length: 998 }, (_, i) => `k${i}: 1`).join(", ")}}`;
    const merges = [base, ...Array.from({ length: 1_002 }, (_, i) => `m${i}: {<<: *b}`)];
    for (const text of [aliases.join("\n"), merges.join("\n"), `a: ${"[".repeat(50_000)}`]) {
      const yaml = "https://a.example/d/openapi.yaml";
      await expect(read(yaml, { fetchText: async () => text })).rejects.toMatchObject({ code: "TOO_LARGE" });
    }
  });
});
