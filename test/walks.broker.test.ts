import { describe, expect, it } from "vitest";
import { natsSuite } from "./nats-server.ts";
import { runNode } from "./run-node.ts";

/** Through how many files of `src` one warm call runs, as `node scripts/walk.js` counted last; lower a number when it has become less. */
const AT_MOST = { local: 6, mcp: 55, api: 45, inspector: 35 } as const;

async function walk(name: string): Promise<string> {
  const { code, stdout, stderr } = await runNode(["scripts/walk.js", name]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

const HINT = "node scripts/walk.js --files names them";

describe("node scripts/walk.js", () => {
  it.each(Object.entries(AT_MOST))("finds that the walk %s has no more than %i files", async (name, most) => {
    const [, files] = /^\w+: .*: (\d+) files,/.exec(await walk(name)) ?? [];
    expect(Number(files), HINT).toBeLessThanOrEqual(most);
  });
});

natsSuite("node scripts/walk.js nats", () => {
  it("finds that the asking side has no more than 15 files, and the answering side no more than 20", async () => {
    const said = await walk("nats");
    const sides = ["asking", "answering"].map((side) =>
      Number(new RegExp(`the ${side} side: (\\d+) files`).exec(said)?.[1]),
    );
    expect(sides[0], HINT).toBeLessThanOrEqual(15);
    expect(sides[1], HINT).toBeLessThanOrEqual(20);
  });
});
