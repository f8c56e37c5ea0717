import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./run-node.ts";

const MOST_CHARACTERS = 200;
const FOLDERS = [".", "docs", "docs/api", "docs/decisions", "bench", "conformance", "python", "test/data"];

const documents = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name)),
);

/** The lines of a text that are too long, by number and length; code blocks and rows of tables count like all others. */
const longLinesOf = (text: string): string[] =>
  text
    .split("\n")
    .flatMap((line, at) =>
      line.length > MOST_CHARACTERS ? [`line ${at + 1}: ${line.length} characters`] : [],
    );

describe("the documents", () => {
  it("include the pages that are read first", () => {
    expect(documents).toEqual(
      expect.arrayContaining(["README.md", "CHANGELOG.md", "docs/getting-started.md", "bench/README.md"]),
    );
  });

  it.each(documents)("%s has no line over 200 characters", (path) => {
    expect(longLinesOf(readFileSync(join(ROOT, path), "utf8"))).toEqual([]);
  });
});

describe("finding long lines", () => {
  it("takes 200 characters and not 201", () => {
    expect(longLinesOf(`short\n${"x".repeat(200)}`)).toEqual([]);
    expect(longLinesOf(`short\n${"x".repeat(201)}`)).toEqual(["line 2: 201 characters"]);
  });
});
