import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { describe, expect, it } from "vitest";
import { runNode } from "../../../test/run-node.ts";
import { childScript, isRunning } from "../../../test/stdio-child.ts";
import { createProcessGroup, spawnChild, whenSpawned } from "./child-process.ts";

it("Mcp: says on Windows why a command of npm cannot be started, and what to write instead", async () => {
  const options = { command: "no-such-command-here", platform: "win32" } as const;
  const started = whenSpawned(spawnChild(options), options);
  await expect(started).rejects.toThrow(/npx is a \.cmd file.*use "cmd" with the arguments "\/c", "npx"/);
});

describe("createProcessGroup", () => {
  it("Mcp: is not gone until the last of it is, though its leader is dead", async () => {
    const leader = spawn(process.execPath, [childScript("family.js"), "crash"], { detached: true });
    const group = createProcessGroup(leader, process.platform);
    const [line] = (await once(leader.stdout, "data")) as [Buffer];
    const { pid } = (JSON.parse(String(line)) as { params: { pid: number } }).params;
    leader.stdin.write("x");
    await once(leader, "exit");
    expect([group.isGone(), isRunning(pid)]).toEqual([false, true]);
    group.signal("SIGTERM");
    expect(await group.whenGone(100)).toBe(false);
    await group.kill();
    expect([group.isGone(), isRunning(pid)]).toEqual([true, false]);
    group.signal("SIGKILL");
    await group.kill();
    leader.stdout.destroy();
  });

  it("Mcp: listens to the exit of this process once, however many there are, and not at all when all are gone", async () => {
    // A module of its own, which knows of no processes that others have left.
    const path: string = "./child-process.ts?alone";
    const { createProcessGroup } = (await import(path)) as typeof import("./child-process.ts");
    const before = process.listeners("exit");
    const added = () => process.listeners("exit").filter((listener) => !before.includes(listener));
    const children = Array.from({ length: 20 }, () => spawn("sleep", ["60"], { detached: true }));
    const groups = children.map((child) => createProcessGroup(child, process.platform));
    expect(added()).toHaveLength(1);
    await Promise.all(groups.map((group) => group.kill()));
    expect(added()).toEqual([]);
    expect(groups.every((group) => group.isGone())).toBe(true);
  });

  it("Mcp: a process that was never started has no group", async () => {
    const child = spawn("/does/not/exist");
    child.on("error", () => {});
    expect(() => createProcessGroup(child, process.platform)).toThrow(TypeError);
  });

  it.each(["exit", "throw"])("Mcp: nothing outlives this process when it ends by %s", async (how) => {
    const folder = mkdtempSync(join(tmpdir(), "waybill-group-"));
    try {
      const bundle = await rolldown({
        input: childScript("orphan-maker.ts"),
        platform: "node",
        logLevel: "silent",
      });
      await bundle.write({ file: join(folder, "maker.mjs"), format: "esm" });
      await bundle.close();
      const { stdout } = await runNode([join(folder, "maker.mjs"), childScript("family.js"), how]);
      const told = JSON.parse(stdout) as { leader: number; message: { params: { pid: number } } };
      await expect
        .poll(() => [told.leader, told.message.params.pid].filter(isRunning), { timeout: 20_000 })
        .toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
