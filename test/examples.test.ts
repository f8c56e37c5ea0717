import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT, runNode } from "./run-node.ts";

const examples = readdirSync(join(ROOT, "examples")).filter((name) => name.endsWith(".js"));

describe("the examples", () => {
  it("are there", () => {
    expect(examples.length).toBeGreaterThan(0);
  });

  it.each(examples)("%s asserts something and runs", async (name) => {
    expect(readFileSync(join(ROOT, "examples", name), "utf8")).toMatch(
      /^import assert from "node:assert\/strict";$/m,
    );
    expect(await runNode([join("examples", name)])).toMatchObject({ code: 0, stderr: "" });
  });
});

describe("the README", () => {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const [, code = "", output = ""] = /```ts\n(.*?)```.*?```text\n(.*?)```/s.exec(readme) ?? [];

  it("shows an example of about twenty lines that prints what it says", async () => {
    const lines = code.split("\n").filter((line) => line.trim() !== "").length;
    expect(lines).toBeGreaterThan(10);
    expect(lines).toBeLessThanOrEqual(20);
    const ran = await runNode(["--input-type=module", "-"], { stdin: code });
    expect(ran).toEqual({ code: 0, stdout: output, stderr: "" });
  });

  it("starts with the two commands, the second of which is what CI runs", () => {
    const commands = readme.match(/^npm ci && npm \w+/gm);
    expect(commands).toEqual(["npm ci && npm start", "npm ci && npm test"]);
    expect(readFileSync(join(ROOT, ".ci/run"), "utf8")).toMatch(/^npm ci && npm test$/m);
  });

  it("links only to files that exist", () => {
    const links = [...readme.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((match) => match[1] ?? "");
    expect(links.filter((link) => !existsSync(join(ROOT, link)))).toEqual([]);
  });
});
