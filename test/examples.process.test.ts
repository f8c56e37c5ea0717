import { readdirSync, readFileSync } from "node:fs";
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
