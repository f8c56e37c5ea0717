import { expect, it } from "vitest";
import { formJsonText, isHardToShow, isSameJson, showShort } from "./form-json.ts";

it("escapes what people do not see, so that the text still reads the same", () => {
  const value = { "a\u202eb": "x\u200b\u2066y\u007f", c: "\u2028" };
  const text = formJsonText(value) ?? "";
  expect(text).toContain("a\\u202eb");
  expect(text).not.toMatch(/[\u007f\u200b\u2028\u202e\u2066]/);
  expect(JSON.parse(text)).toEqual(value);
});

it("gives no text for a value that is too deep, and an empty one for none", () => {
  let deep: unknown = 1;
  for (let i = 0; i < 200_000; i++) deep = [deep];
  expect(formJsonText(deep)).toBeUndefined();
  expect(showShort(deep).length).toBeLessThan(200);
  expect(formJsonText(undefined)).toBe("");
});

it("knows texts that an input would change or hide", () => {
  expect(["plain", "two\nlines", "tab\t", "😀", ""].filter(isHardToShow)).toEqual([]);
  const hard = ["a\rb", "\0", "\u202e", "\ud800", "\ufeff"];
  expect(hard.filter(isHardToShow)).toEqual(hard);
});

it("compares by what JSON says", () => {
  expect(isSameJson({ a: [1] }, { a: [1] })).toBe(true);
  expect(isSameJson({ a: 1 }, { a: 2 })).toBe(false);
  expect(isSameJson(null, undefined)).toBe(false);
  expect(isSameJson("1", 1)).toBe(false);
});
