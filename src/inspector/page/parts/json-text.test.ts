import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import { joinPointer, parsePointer } from "../../../core/json/json-pointer.ts";
import { lineJson, memberOf, prettyJson, shortJson } from "./show-json.ts";

describe("JSON as text", () => {
  it("shows what hides, and stays the same JSON", () => {
    const value = { "a\u202eb": "\u0000\u009b\u200b\ufeff\u{e0041}\u2066", plain: "Zürich 👩‍🚒" };
    const text = prettyJson(value);
    expect(text).not.toMatch(/[\u007f-\u009f\u200b\u202e\u2066\ufeff]/);
    expect(text).toContain("Zürich 👩‍🚒");
    expect(JSON.parse(text)).toEqual(value);
  });

  it("writes what is no JSON as null, and what is too deep as a sentence", () => {
    expect(lineJson(undefined)).toBe("null");
    let deep: unknown = 1;
    for (let at = 0; at < 100_000; at++) deep = [deep];
    expect(lineJson(deep)).toMatch(/too deep|\[\[/);
    expect(shortJson(deep, 20).length).toBeLessThanOrEqual(21);
  });

  it("writes the beginning of anything without reading all of it", () => {
    const began = cpuMs();
    const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, at]));
    expect(shortJson(wide, 40)).toHaveLength(41);
    expect(shortJson(Array(1_000_000).fill("x".repeat(100)), 40)).toHaveLength(41);
    expect(cpuMs() - began).toBeLessThan(1_000);
    expect(shortJson(JSON.parse('{"__proto__": 1, "b": [true]}'), 80)).toBe('{"__proto__":1,"b":[true]}');
  });
});

describe("JSON pointers", () => {
  it("are taken apart as they were put together", () => {
    const keys = ["a/b", "~1", "", "__proto__", "0"];
    expect(parsePointer(keys.reduce<string>(joinPointer, ""))).toEqual(keys);
    expect(parsePointer("")).toEqual([]);
  });

  it("lead to own members alone", () => {
    const value = JSON.parse('{"__proto__": null, "list": [1]}') as unknown;
    expect(memberOf(value, "__proto__")).toEqual({ value: null });
    expect(memberOf([1], "0")).toEqual({ value: 1 });
    expect(memberOf([1], "length")).toBeUndefined();
    expect(memberOf(value, "constructor")).toBeUndefined();
    expect(memberOf("text", "0")).toBeUndefined();
  });
});
