import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { ROOT } from "./run-node.ts";
import { isTestFile, type SourceFile, walk } from "./source-files.ts";

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const headingsOf = (text: string) => [...text.matchAll(/^## (.*)$/gm)].map(([, heading = ""]) => heading);

/** Rows of `promise | path: title`, with the heading that they stand below. */
function rowsOf(page: string): { heading: string; promise: string; path: string; title: string }[] {
  return page.split(/^## /m).flatMap((section) => {
    const heading = section.slice(0, section.indexOf("\n"));
    const rows = [...section.matchAll(/^\| (?!promise |---)(.*?) \| (.*) \|$/gm)];
    return rows.map(([, promise = "", test = ""]) => {
      const [, path = "", title = ""] = /^`([^`]+)`: (.+)$/.exec(test) ?? [];
      return { heading, promise, path, title };
    });
  });
}

/** The titles of the tests in a file: first arguments of calls that are given a function besides. */
function titlesOf(file: SourceFile): Set<string> {
  const titles = new Set<string>();
  walk(file, (node) => {
    if (!ts.isCallExpression(node)) return;
    const [first, ...rest] = node.arguments;
    const isTest = rest.some((one) => ts.isArrowFunction(one) || ts.isFunctionExpression(one));
    if (first !== undefined && ts.isStringLiteralLike(first) && isTest) titles.add(first.text);
  });
  return titles;
}

/** Tests of a contract lie beside the files that run them. */
const isOfTests = (path: string) => isTestFile(path) || path.startsWith("test/");

/** What a row names that is not there. */
function findMissing(rows: readonly { path: string; title: string }[], load = read): string[] {
  const known = new Map<string, Set<string>>();
  const titlesIn = (path: string): Set<string> => {
    const titles = known.get(path) ?? titlesOf({ path, text: load(path) });
    known.set(path, titles);
    return titles;
  };
  return rows
    .filter(({ path, title }) => !isOfTests(path) || !titlesIn(path).has(title))
    .map(({ path, title }) => `${path}: ${title}`);
}

describe("docs/security-evidence.md", () => {
  const rows = rowsOf(read("docs/security-evidence.md"));

  it("has a table for every part of docs/security.md that promises something", () => {
    const parts = headingsOf(read("docs/security.md").split(/^## Limits$/m)[0] ?? "");
    const promising = parts.filter((heading) => heading !== "Reporting");
    expect([...new Set(rows.map(({ heading }) => heading))]).toEqual(promising);
  });

  it("names tests that exist, by file and title", () => {
    expect(findMissing(rows)).toEqual([]);
  });

  it("says each promise once in its part", () => {
    const said = rows.map(({ heading, promise }) => `${heading}: ${promise}`);
    expect(said.filter((one, at) => said.indexOf(one) !== at)).toEqual([]);
  });
});

describe("finding what a row names", () => {
  const load = () =>
    'it.each([1])("holds %s", () => {}); asRoot("for root", async () => {}); say("no test");';
  const missing = (path: string, title: string) => findMissing([{ path, title }], load);

  it("takes titles of every kind of test, and no other text", () => {
    expect(missing("a.test.ts", "holds %s")).toEqual([]);
    expect(missing("a.test.ts", "for root")).toEqual([]);
    expect(missing("a.test.ts", "no test")).toEqual(["a.test.ts: no test"]);
    expect(missing("a.test.ts", "holds")).toEqual(["a.test.ts: holds"]);
    expect(missing("a.ts", "holds %s")).toEqual(["a.ts: holds %s"]);
  });
});
