import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { citedRequirements } from "./cited-requirements.ts";
import { PENDING, PENDING_COUNT, REQUIREMENTS } from "./requirements.ts";
import { ROOT } from "./run-node.ts";
import { isTestFile, readSourceFiles } from "./source-files.ts";

const CHECKLIST = join(ROOT, "../shared/requirements.md");

describe("the requirements list", () => {
  const cited = new Set(
    [...readSourceFiles("src"), ...readSourceFiles("test")]
      .filter((file) => isTestFile(file.path))
      .flatMap(citedRequirements),
  );
  const pending = new Set<string>(PENDING);

  it("has a test that cites every id which is not pending", () => {
    const due = Object.keys(REQUIREMENTS).filter((id) => !pending.has(id));
    expect(due.filter((id) => !cited.has(id))).toEqual([]);
  });

  it("keeps no id pending that a test already cites", () => {
    expect(PENDING.filter((id) => cited.has(id))).toEqual([]);
  });

  it("only ever shrinks what is pending", () => {
    expect(pending.size).toBe(PENDING.length);
    expect(PENDING.length).toBe(PENDING_COUNT);
  });

  it("cites no id that does not exist", () => {
    expect([...cited].filter((id) => !Object.hasOwn(REQUIREMENTS, id))).toEqual([]);
  });

  it("equals the project's checklist where that lies beside the repository", ({ skip }) => {
    skip(
      !existsSync(CHECKLIST),
      "../shared/requirements.md is not here, so there is nothing to compare with",
    );
    const listed = readFileSync(CHECKLIST, "utf8").matchAll(/^- ((?:RE|TE|CS|TR|X)-\d+) /gm);
    expect(Object.keys(REQUIREMENTS)).toEqual([...listed].map((match) => match[1]));
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
