import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cpuMs } from "../../test/cpu-ms.ts";
import { runs } from "../../test/runs.ts";
import { findFiles, MOST_PATTERN_CHARACTERS, matchesPattern } from "./glob.ts";

/** The same by trying everything, which is slow and plain to see. */
function slowMatch(pattern: string, text: string): boolean {
  const brace = findBrace(pattern);
  if (brace !== undefined) return brace.some((one) => slowMatch(one, text));
  const [first, ...rest] = [...pattern];
  if (first === undefined) return text === "";
  const after = rest.join("");
  const characters = [...text];
  if (first === "*")
    return characters.concat("").some((_, i) => slowMatch(after, characters.slice(i).join("")));
  if (characters.length === 0) return false;
  if (first !== "?" && first !== characters[0]) return false;
  return slowMatch(after, characters.slice(1).join(""));
}

/** The patterns that the first closed brace stands for. */
function findBrace(pattern: string): string[] | undefined {
  for (let start = 0; start < pattern.length; start++) {
    if (pattern[start] !== "{") continue;
    const commas = [start];
    let depth = 0;
    for (let i = start; i < pattern.length; i++) {
      if (pattern[i] === "{") depth++;
      if (pattern[i] === "," && depth === 1) commas.push(i);
      if (pattern[i] === "}" && --depth === 0) {
        const ends = [...commas.slice(1), i];
        return commas.map(
          (comma, k) => pattern.slice(0, start) + pattern.slice(comma + 1, ends[k]) + pattern.slice(i + 1),
        );
      }
    }
  }
  return undefined;
}

describe("matchesPattern", () => {
  it.each([
    ["*", "", true],
    ["parcel.*", "parcel.track", true],
    ["parcel.*", "parcels.track", false],
    ["parcel.?rack", "parcel.track", true],
    ["?", "", false],
    ["?", "😀", true],
    ["{get,list}_*", "list_all", true],
    ["{get,list}_*", "put_all", false],
    ["a{,b}c", "ac", true],
    ["a{b,{c,d}e}f", "adef", true],
    ["a{b", "a{b", true],
    ["a}b,c", "a}b,c", true],
    ["Track", "track", false],
    ["a.c", "abc", false],
    ["**", "a/b.c", true],
  ])("takes %j for %j: %j", (pattern, text, expected) => {
    expect(matchesPattern(pattern, text)).toBe(expected);
  });

  it("agrees with trying everything", () => {
    const letters = (from: string[], maxLength: number) =>
      fc.array(fc.constantFrom(...from), { maxLength }).map((all) => all.join(""));
    fc.assert(
      fc.property(
        letters(["a", "b", "*", "?", "{", ",", "}", "/"], 12),
        letters(["a", "b", "/", ","], 8),
        (pattern, text) => {
          expect(matchesPattern(pattern, text)).toBe(slowMatch(pattern, text));
        },
      ),
      runs(3_000),
    );
  });

  it("takes no longer for patterns that would make others try everything", () => {
    const start = cpuMs();
    expect(matchesPattern(`${"*a".repeat(400)}b`, "a".repeat(5_000))).toBe(false);
    expect(matchesPattern(`${"{a,a,a}".repeat(140)}b`, "a".repeat(140))).toBe(false);
    expect(cpuMs() - start).toBeLessThan(5_000);
  });

  it("refuses a pattern past the limit", () => {
    expect(matchesPattern("a".repeat(MOST_PATTERN_CHARACTERS), "a")).toBe(false);
    expect(() => matchesPattern("a".repeat(MOST_PATTERN_CHARACTERS + 1), "a")).toThrow(RangeError);
  });
});

describe("findFiles", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-glob-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function write(...names: string[]): Promise<void> {
    for (const name of names) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), "");
    }
  }

  async function find(...patterns: string[]): Promise<string[]> {
    return (await findFiles(patterns, folder)).map((path) => relative(folder, path).replaceAll("\\", "/"));
  }

  it("finds by names, across folders, and leaves out what is excluded, in order", async () => {
    await write("ops/b.ts", "ops/a.ts", "ops/deep/er/c.ts", "ops/a.test.ts", "ops/d.js", "other/e.ts");
    expect(await find("ops/*.ts")).toEqual(["ops/a.test.ts", "ops/a.ts", "ops/b.ts"]);
    expect(await find("ops/**/*.{ts,js}", "!**/*.test.ts")).toEqual([
      "ops/a.ts",
      "ops/b.ts",
      "ops/d.js",
      "ops/deep/er/c.ts",
    ]);
    expect(await find("./ops/?.ts", "other/e.ts", "ops/a.ts")).toEqual([
      "ops/a.ts",
      "ops/b.ts",
      "other/e.ts",
    ]);
    expect(await find("**", "!ops")).toEqual(["other/e.ts"]);
    expect(await find(join(folder, "other/*"))).toEqual(["other/e.ts"]);
    expect(await findFiles(["../other/*.ts"], join(folder, "ops"))).toEqual([join(folder, "other/e.ts")]);
    expect(await find("ops", "nothing/*", "ops/nothing.ts")).toEqual([]);
  });

  it("skips node_modules and dot folders unless they are named", async () => {
    await write("node_modules/p/a.ts", ".cache/b.ts", "ops/.hidden.ts", "ops/node_modules/c.ts", "ops/d.ts");
    expect(await find("**/*.ts")).toEqual(["ops/d.ts"]);
    expect(await find(".cache/*.ts", "ops/.hidden.ts")).toEqual([".cache/b.ts", "ops/.hidden.ts"]);
  });

  it("survives links that lead in circles, and finds what is reached twice once", async () => {
    await write("ops/a.ts", "far/away/b.ts");
    await symlink(folder, join(folder, "ops/up"), "dir");
    await symlink(join(folder, "ops"), join(folder, "again"), "dir");
    await symlink(join(folder, "far/away"), join(folder, "ops/away"), "dir");
    await symlink(join(folder, "nowhere"), join(folder, "ops/broken.ts"));
    expect(await find("ops/**/*.ts")).toEqual(["ops/a.ts", "ops/away/b.ts"]);
    expect(await find("**/*.ts")).toEqual(["far/away/b.ts", "ops/a.ts"]);
  });

  it("says so when there are more files than it finds", async () => {
    await mkdir(join(folder, "many"));
    const names = Array.from({ length: 10_000 }, (_, i) => join(folder, `many/${i}.js`));
    for (const name of names) await writeFile(name, "");
    expect(await find("many/*.js")).toHaveLength(10_000);
    await write("many/more.js");
    await expect(find("many/*.js")).rejects.toThrow("more than 10000 files");
  });
});
