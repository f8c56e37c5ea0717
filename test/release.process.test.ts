import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Finished, ROOT, runCommand, runNode } from "./run-node.ts";

const CHANGELOG =
  "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-01-01\n\n- First.\n";

describe("npm run release", () => {
  let folder = "";
  const at = (name: string): string => join(folder, name);
  const git = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runCommand("git", args, { cwd: folder });
    if (code !== 0) throw new Error(stderr);
    return stdout.trim();
  };
  const release = (...args: string[]): Promise<Finished> =>
    runNode([join(ROOT, "scripts/release.js"), ...args], { cwd: folder });
  const writePackage = (check: string): void =>
    writeFileSync(
      at("package.json"),
      JSON.stringify({ name: "waybill", version: "0.1.0", scripts: { "check:package": check } }, null, 2),
    );
  const state = async (): Promise<readonly string[]> => [
    await git("rev-parse", "HEAD"),
    await git("tag"),
    await git("status", "--porcelain", "--ignored"),
    readFileSync(at("CHANGELOG.md"), "utf8"),
    readFileSync(at("package.json"), "utf8"),
  ];

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "release-"));
    writePackage("node -e 0");
    writeFileSync(
      at("package-lock.json"),
      JSON.stringify({ version: "0.1.0", packages: { "": { version: "0.1.0" } } }),
    );
    writeFileSync(at("CHANGELOG.md"), CHANGELOG);
    writeFileSync(at("README.md"), "npm install waybill-0.1.0.tgz\n");
    await git("init", "--quiet", "--initial-branch", "main");
    await git("config", "user.name", "Somebody");
    await git("config", "user.email", "somebody@example.com");
    await git("add", "--all");
    await git("commit", "--quiet", "--message", "first");
    await git("tag", "--annotate", "v0.1.0", "--message", "first");
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  it("shows every step of a dry run, and changes nothing", async () => {
    const before = await state();
    const { code, stdout, stderr } = await release("0.2.0", "--dry-run");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.replace(/\d{4}-\d\d-\d\d/, "TODAY").split("\n")).toEqual([
      "A release of 0.2.0 would do this:",
      "- CHANGELOG.md: what is unreleased becomes 0.2.0, TODAY",
      "- package.json: version 0.2.0",
      "- package-lock.json: version 0.2.0",
      "- README.md: version 0.2.0",
      "- npm run --silent check:package",
      "- npm pack --ignore-scripts",
      '- git commit --all --message "chore(release): 0.2.0"',
      '- git tag --annotate v0.2.0 --message "Version 0.2.0"',
      "All checks of the repository passed. Nothing was changed.",
      "",
    ]);
    expect(await state()).toEqual(before);
  });

  it("moves the changelog, sets the version, checks, packs, commits and tags", async () => {
    const { code, stdout } = await release("0.2.0-rc.1");
    expect(code).toBe(0);
    expect(stdout).toContain("git push --follow-tags && npm publish waybill-0.2.0-rc.1.tgz");
    expect(readFileSync(at("CHANGELOG.md"), "utf8").replace(/- \d{4}-\d\d-\d\d\n/, "- TODAY\n")).toBe(
      CHANGELOG.replace("## [Unreleased]", "## [Unreleased]\n\n## [0.2.0-rc.1] - TODAY"),
    );
    for (const name of ["package.json", "package-lock.json"]) {
      expect(JSON.parse(readFileSync(at(name), "utf8")).version).toBe("0.2.0-rc.1");
    }
    expect(readFileSync(at("README.md"), "utf8")).toBe("npm install waybill-0.2.0-rc.1.tgz\n");
    expect(existsSync(at("waybill-0.2.0-rc.1.tgz"))).toBe(true);
    expect(await git("log", "--format=%s", "-1")).toBe("chore(release): 0.2.0-rc.1");
    expect(await git("cat-file", "-t", "v0.2.0-rc.1")).toBe("tag");
    expect(await git("diff", "--stat", "HEAD")).toBe("");
  });

  it("leaves everything as it was when a package check fails", async () => {
    writePackage("node -e process.exit(3)");
    await git("commit", "--quiet", "--all", "--message", "checks that fail");
    const before = await state();
    const { code, stderr } = await release("0.2.0");
    expect(code).toBe(1);
    expect(stderr).toContain("A check failed, so nothing was released. The files are as they were.");
    expect(await state()).toEqual(before);
  });

  it.each([
    ["0.2", '"0.2" is not a version: give one such as 0.2.0 or 1.0.0-rc.1.'],
    ["v0.2.0", '"v0.2.0" is not a version'],
    ["0.1.0", "0.1.0 is released already, as the tag v0.1.0 says"],
    ["0.1.0-rc.1", "0.1.0-rc.1 comes before 0.1.0, which is released"],
    ["0.0.9", "0.0.9 comes before 0.1.0"],
  ])("refuses the version %s", async (version, message) => {
    const { code, stderr } = await release(version, "--dry-run");
    expect(code).toBe(1);
    expect(stderr).toContain(message);
  });

  it("takes the version of package.json when none is given", async () => {
    expect((await release("--dry-run")).stderr).toContain("0.1.0 is released already");
    await git("tag", "--delete", "v0.1.0");
    expect((await release("--dry-run")).stderr).toContain("CHANGELOG.md has a section for 0.1.0 already");
  });

  it("names all that stands in the way at once", async () => {
    await git("switch", "--quiet", "--create", "feature");
    writeFileSync(
      at("CHANGELOG.md"),
      "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- First.\n",
    );
    const { code, stderr } = await release("0.2.0");
    expect({ code, stderr: stderr.split("\n") }).toEqual({
      code: 1,
      stderr: [
        "0.2.0 cannot be released.",
        "- The branch is feature: releases are made on main.",
        "- 1 file is not committed: commit or stash it.",
        '- CHANGELOG.md has no entries under "## [Unreleased]": write what users will notice.',
        "",
      ],
    });
  });

  it("says how it is used, and what it does not know", async () => {
    expect((await release("--help")).stdout).toContain("npm run release -- [version] [--dry-run]");
    expect(await release("--dry")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("There is no argument --dry"),
    });
  });
});
