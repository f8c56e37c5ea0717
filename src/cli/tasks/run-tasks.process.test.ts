import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { makeFolder } from "../../../test/gateway-sources.ts";
import { until } from "../../../test/make-operation.ts";
import { ROOT, runCommand } from "../../../test/run-node.ts";

/** Operations that end when a file is there, or never. */
const MODULE = `import { existsSync } from "node:fs";
import { join } from "node:path";
const operation = (name, handler) => ({
  id: "job." + name, namespace: "job", name, version: "1.0.0", type: "mutation", description: "A job.",
  inputSchema: { type: "object", properties: { n: { type: "integer" } } }, handler,
});
export const year = operation("year", async ({ n }, { signal, progress }) => {
  progress({ progress: 1, total: 2, message: "Half of it." });
  while (!existsSync(join(import.meta.dirname, "go"))) await new Promise((resolve) => setTimeout(resolve, 20));
  signal.throwIfAborted();
  return { pages: n };
});
export const no = operation("no", () => { throw new Error("It broke."); });`;

function environment(folder: string): Record<string, string> {
  return { ...process.env, NODE_OPTIONS: "", HOME: folder, WAYBILL_STATE_DIR: join(folder, "own") } as Record<
    string,
    string
  >;
}

it("RE-30 waybill call --detach leaves a call to the gateway, and waybill tasks shows, waits for and cancels it", async () => {
  const folder = makeFolder({
    "jobs.mjs": MODULE,
    "waybill.config.json": JSON.stringify({ operations: "jobs.mjs", serve: { port: 0 } }),
  });
  const waybill = (...args: string[]) =>
    runCommand(process.execPath, [join(ROOT, "dist/cli.js"), ...args], {
      cwd: folder,
      env: environment(folder),
    });
  expect((await waybill("tasks")).stderr).toContain("No gateway runs for this config");
  expect((await waybill("call", "job.year", "--detach")).stderr).toContain(
    "--detach goes with a gateway that runs",
  );

  const child: ChildProcess = spawn(
    process.execPath,
    [join(ROOT, "dist/cli.js"), "serve", "--log-format", "json", "--lame-duck", "0"],
    { cwd: folder, env: environment(folder), stdio: ["ignore", "ignore", "pipe"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  let log = "";
  child.stderr?.setEncoding("utf8").on("data", (more: string) => (log += more));
  await until(() => log.includes('"listening"') || child.exitCode !== null);

  expect((await waybill("tasks")).stderr).toContain("there are no tasks of yours");
  const started = await waybill("call", "job.year", "n=12", "--detach");
  expect([started.code, started.stdout]).toEqual([0, expect.stringMatching(/^[0-9a-f]{32}\n$/)]);
  const id = started.stdout.trim();
  expect(started.stderr).toContain(` tasks wait ${id.slice(0, 12)}" gives its result.`);
  const other = JSON.parse((await waybill("call", "job.year", "--detach", "--json")).stdout).task.id;

  const listed = await waybill("tasks");
  expect(listed.stdout).toMatch(
    new RegExp(`${id.slice(0, 12)}\\s+working\\s+job\\.year\\s+1 of 2\\s+Half of it\\.`),
  );
  const shown = await waybill("tasks", "show", id.slice(0, 8));
  expect(shown.stdout).toMatch(/status +working\n[\s\S]*message +Half of it\.\n/);
  const early = await waybill("tasks", "wait", id.slice(0, 8), "--timeout", "10ms");
  expect([early.code, early.stdout]).toEqual([3, ""]);
  expect(early.stderr).toContain("The task has not ended yet; it goes on.");

  expect((await waybill("tasks", "cancel", other)).stdout).toBe("job.year: cancelled.\n");
  const cancelled = await waybill("tasks", "wait", other);
  expect([cancelled.code, cancelled.stdout]).toEqual([3, ""]);
  expect(cancelled.stderr).toContain("The task was cancelled.");

  writeFileSync(join(folder, "go"), "");
  for (const flags of [[], ["--json"]]) {
    const done = await waybill("tasks", "wait", id.slice(0, 8), ...flags);
    expect([done.code, JSON.parse(done.stdout)]).toEqual([0, { pages: 12 }]);
  }
  const settled = await waybill("tasks", "cancel", id);
  expect([settled.code, settled.stderr]).toEqual([3, expect.stringContaining("its result stands")]);
  const { tasks } = JSON.parse((await waybill("tasks", "--json")).stdout);
  expect(tasks.map((task: { status: string }) => task.status)).toEqual(["cancelled", "completed"]);

  const failed = (await waybill("call", "job.no", "--detach")).stdout.trim();
  expect((await waybill("tasks", "wait", failed)).code).toBe(3);
  for (const wrong of [["show"], ["show", "ab"], ["wait", "0123456"], ["cancel", "0".repeat(32)]])
    expect((await waybill("tasks", ...wrong)).code).toBeGreaterThan(1);
  const both = await waybill("call", "job.year", "--detach", "--envelope");
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining("--detach and --envelope")]);
  expect(existsSync(join(folder, "go"))).toBe(true);
});
