import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { citedRequirements } from "./cited-requirements.ts";
import { ROOT } from "./run-node.ts";
import { isTestFile, readSourceFiles } from "./source-files.ts";

/** How many requirements may still be marked pending; lowered as they are met, never raised. */
const PENDING = 0;

describe("the requirements list", () => {
  const text = readFileSync(join(ROOT, "docs/requirements.md"), "utf8");
  const listed = [...text.matchAll(/^- ([A-Z]+-\d+) (\*pending\* )?\S/gm)].map(([, id = "", mark]) => ({
    id,
    isPending: mark !== undefined,
  }));
  const cited = new Set(
    [...readSourceFiles("src"), ...readSourceFiles("test")]
      .filter((file) => isTestFile(file.path))
      .flatMap(citedRequirements),
  );

  it("numbers the requirements of each part without a gap", () => {
    const parts = Object.entries({ RE: 32, TE: 9, CS: 11, TR: 8, X: 12 });
    const ids = parts.flatMap(([part, count]) => Array.from({ length: count }, (_, i) => `${part}-${i + 1}`));
    expect(listed.map(({ id }) => id)).toEqual(ids);
  });

  it("has a test that cites every id which is not pending", () => {
    const due = listed.filter(({ isPending }) => !isPending).map(({ id }) => id);
    expect(due.filter((id) => !cited.has(id))).toEqual([]);
  });

  it("keeps no id pending that a test already cites", () => {
    expect(listed.filter(({ id, isPending }) => isPending && cited.has(id))).toEqual([]);
  });

  it("only ever shrinks what is pending", () => {
    expect(listed.filter(({ isPending }) => isPending).length).toBe(PENDING);
  });

  it("cites no id that does not exist", () => {
    const ids = new Set(listed.map(({ id }) => id));
    expect([...cited].filter((id) => !ids.has(id))).toEqual([]);
  });
});

describe("citing a requirement", () => {
  const cite = (text: string) => citedRequirements({ path: "planted.test.ts", text });

  it("counts whole ids in titles of every form", () => {
    expect(cite('it("RE-12 does it", () => {})')).toEqual(["RE-12"]);
    expect(cite('describe("RE-1 and X-5", () => { test.each([1])("TE-2 %s", () => {}) })')).toEqual([
      "RE-1",
      "X-5",
      "TE-2",
    ]);
    expect(cite("it(`RE-7 reads ${name}`, () => {})")).toEqual(["RE-7"]);
  });

  it("does not count ranges, comments, code or other functions", () => {
    expect(
      cite('it("RE-1 to RE-16 hold", () => {}); it("RE-2..RE-5", () => {}); it("CS-1–3", () => {})'),
    ).toEqual([]);
    expect(cite('// RE-1\nconst a = "RE-2"; check("RE-3"); it(a, () => "RE-4")')).toEqual([]);
  });
});
