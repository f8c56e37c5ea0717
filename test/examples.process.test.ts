import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findNginx } from "./fleet/nginx.js";
import { ROOT, runCommand, runNode } from "./run-node.ts";

const examples = readdirSync(join(ROOT, "examples")).filter((name) => name.endsWith(".js"));

describe("the examples", () => {
  it("are there", () => {
    expect(examples.length).toBeGreaterThan(0);
  });

  it("serve a tool in eight lines at most, which docs/mcp.md shows as they are", () => {
    const program = readFileSync(join(ROOT, "examples/served-tool/server.js"), "utf8");
    expect(program.trimEnd().split("\n").length).toBeLessThanOrEqual(8);
    expect(readFileSync(join(ROOT, "docs/mcp.md"), "utf8")).toContain(`\`\`\`js\n${program}\`\`\``);
  });

  it.each(examples)("%s asserts something and runs", async (name) => {
    expect(readFileSync(join(ROOT, "examples", name), "utf8")).toMatch(
      /^import assert from "node:assert\/strict";$/m,
    );
    expect(await runNode([join("examples", name)])).toMatchObject({ code: 0, stderr: "" });
  });

  it.each([
    ["", 0],
    ["true", 1],
  ])(
    "fleet.js says that it needs nats-server where there is none; with CI=%s it ends with %i",
    async (CI, code) => {
      const env = { CI, NATS_SERVER: "/nowhere/nats-server" };
      const { stdout, stderr, ...ended } = await runNode(["examples/fleet.js"], { env });
      expect(ended).toEqual({ code });
      expect(code === 0 ? stdout : stderr).toContain("Nothing was run");
      expect(code === 0 ? stderr : stdout).toBe("");
    },
  );

  it.skipIf(findNginx() === undefined && process.env["CI"] !== "true")(
    "fleet/nginx.conf is one that nginx takes",
    async () => {
      const path = join(ROOT, "examples/fleet/nginx.conf");
      const folder = mkdtempSync(join(tmpdir(), "waybill-nginx-"));
      const checked = await runCommand(findNginx() ?? "nginx", [
        "-t",
        "-e",
        "stderr",
        "-p",
        folder,
        "-c",
        path,
      ]);
      rmSync(folder, { recursive: true });
      expect(checked).toMatchObject({ code: 0, stderr: expect.stringContaining("syntax is ok") });
    },
  );
});
