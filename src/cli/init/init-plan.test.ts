import { assert, property, string, stringMatching, uniqueArray } from "fast-check";
import { describe, expect, it } from "vitest";
import { parseEnvFile } from "../../gateway/config/env-files.ts";
import { withEntries } from "./run-init.ts";

const NAME = stringMatching(/^[A-Z][A-Z0-9_]{0,8}$/);

describe("entries of an env file", () => {
  it("are read back as they were, whatever they hold", () => {
    const entry = property(NAME, string({ unit: "binary" }), (name, value) => {
      const text = withEntries("# mine\nOTHER=1", new Map([[name, value]]));
      expect(parseEnvFile(text).get(name)).toBe(name === "OTHER" ? "1" : value);
    });
    assert(entry);
    for (const value of [
      "it's",
      'a "b"',
      "back\\slash",
      "$HOME",
      "two\nlines",
      "'\r\n\\n\"$",
      " # no comment",
      "",
    ]) {
      expect(parseEnvFile(withEntries("", new Map([["A", value]]))).get("A")).toBe(value);
    }
  });

  it("leave what is there, letter for letter, and the values of names that are there", () => {
    const several = property(uniqueArray(NAME, { maxLength: 5 }), (names) => {
      const before = withEntries("", new Map(names.map((name) => [name, "old"])));
      const after = withEntries(before, new Map([...names, "ZZZZZZZZZZ_NEW"].map((name) => [name, "new"])));
      expect(after.startsWith(before)).toBe(true);
      expect([...parseEnvFile(after)]).toEqual([
        ...names.map((name) => [name, "old"]),
        ["ZZZZZZZZZZ_NEW", "new"],
      ]);
    });
    assert(several);
    expect(withEntries("A=1", new Map([["A", "2"]]))).toBe("A=1");
    expect(withEntries("A=1", new Map([["B", "2"]]))).toBe("A=1\nB='2'\n");
  });
});
