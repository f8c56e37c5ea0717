import { existsSync, unlinkSync } from "node:fs";
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { rejection } from "../../../../test/make-operation.ts";
import { HOLD_WAITS, holdFile, readLockFile, updateLockFile, writeLockFile } from "./lock-file.ts";
import { approve, createToolLock, type ToolLock } from "./tool-lock.ts";
import { ToolPin } from "./tool-pin.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-hold-"));
  path = join(folder, "waybill.lock.json");
});

afterEach(() => rm(folder, { recursive: true }));

const namesOf = (lock: ToolLock | undefined, namespace: string) =>
  Object.keys(lock?.servers[namespace] ?? {});
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Makes a hold, and dates it back. */
async function leaveBehind(make: () => Promise<unknown>): Promise<void> {
  await make();
  const longAgo = new Date(Date.now() - HOLD_WAITS.stale - 1_000);
  await utimes(`${path}.hold`, longAgo, longAgo);
}

/** The modules once more, which know of each other no more than processes do. */
async function asAnotherProcess(): Promise<typeof updateLockFile> {
  vi.resetModules();
  return (await import("./lock-file.ts")).updateLockFile;
}

describe("approvals in one file", () => {
  it("Mcp: are all kept, however many are made at once, through one pin or several", async () => {
    const pins = await Promise.all(
      ["a", "a", "b"].map((namespace) => ToolPin.open(namespace, { lockFile: path })),
    );
    const tools = Array.from({ length: 8 }, (_, i) => ({ name: `t${i}` }));
    await Promise.all(pins.flatMap((pin) => tools.map((tool) => pin.approve([tool]))));
    const lock = await readLockFile(path);
    const names = tools.map(({ name }) => name);
    expect([namesOf(lock, "a"), namesOf(lock, "b")]).toEqual([names, names]);
    expect(tools.map((tool) => pins[0]?.changeOf(tool))).toEqual(tools.map(() => undefined));
    expect(await readdir(folder)).toEqual(["waybill.lock.json"]);
  });

  it("Mcp: wait for another process, and are made on top of what it wrote", async () => {
    await writeFile(`${path}.hold`, "another process");
    const mine = updateLockFile(path, (lock = createToolLock()) => approve(lock, "a", [{ name: "mine" }]));
    await sleep(100);
    expect(existsSync(path)).toBe(false);
    await writeLockFile(path, createToolLock("a", [{ name: "theirs" }]));
    await rm(`${path}.hold`);
    await mine;
    expect(namesOf(await readLockFile(path), "a")).toEqual(["mine", "theirs"]);
  });

  it("Mcp: do not wait for a process that is gone", async () => {
    await leaveBehind(() => writeFile(`${path}.hold`, "a process long gone"));
    await updateLockFile(path, () => createToolLock("a", [{ name: "t" }]));
    expect(await readdir(folder)).toEqual(["waybill.lock.json"]);
  });

  it("Mcp: are made again when another process takes over, ten times and no more", async () => {
    let made = 0;
    const losing = (times: number) => (known: ToolLock | undefined) => {
      made += 1;
      if (made <= times) unlinkSync(`${path}.hold`);
      return approve(known ?? createToolLock(), "a", [{ name: "mine" }]);
    };
    expect(namesOf(await updateLockFile(path, losing(9)), "a")).toEqual(["mine"]);
    expect(made).toBe(10);
    made = 0;
    expect(String(await rejection(updateLockFile(path, losing(10))))).toContain("cannot be written");
    expect(made).toBe(10);
    expect(await readdir(folder)).toEqual(["waybill.lock.json"]);
  });

  it("Mcp: are all kept though several processes find at once what another left behind", async () => {
    const updates: (typeof updateLockFile)[] = [];
    for (let i = 0; i < 6; i++) updates.push(await asAnotherProcess());
    const all: string[] = [];
    for (let round = 0; round < 10; round++) {
      await leaveBehind(() => writeFile(`${path}.hold`, "a process long gone"));
      const names = updates.map((_, i) => `r${round}t${i}`);
      all.push(...names);
      await Promise.all(
        updates.map((update, i) =>
          update(path, (lock = createToolLock()) => approve(lock, "a", [{ name: names[i] ?? "" }])),
        ),
      );
    }
    expect(namesOf(await readLockFile(path), "a")).toEqual(all.sort());
    expect(await readdir(folder)).toEqual(["waybill.lock.json"]);
  });

  it("Mcp: say what is in the way where a hold that was left behind is no file", async () => {
    await leaveBehind(() => mkdir(`${path}.hold`));
    const failure = await rejection(updateLockFile(path, () => createToolLock()));
    expect(String(failure)).toContain(`The file "${path}.hold" was left behind, and cannot be removed.`);
  });

  it("Mcp: change nothing once another process has taken over", async () => {
    await writeLockFile(path, createToolLock());
    const before = await readFile(path, "utf8");
    const late = holdFile(path, async (assertHeld) => {
      await writeFile(`${path}.hold`, "another process");
      await assertHeld();
    });
    expect(String(await rejection(late))).toContain("taken over");
    expect(await readFile(path, "utf8")).toBe(before);
    expect(await readFile(`${path}.hold`, "utf8")).toBe("another process");
  });

  it("Mcp: go on after one that failed", async () => {
    const failed = updateLockFile(path, () => {
      throw new Error("no");
    });
    const next = updateLockFile(path, () => createToolLock("a", [{ name: "t" }]));
    expect(String(await rejection(failed))).toContain("no");
    expect(namesOf(await next, "a")).toEqual(["t"]);
    const nowhere = holdFile(join(folder, "no/such"), async () => {});
    expect(String(await rejection(nowhere))).toContain("cannot be made");
  });

  it("Mcp: leave a link to the file a link", async () => {
    const real = join(folder, "real.json");
    await writeLockFile(real, createToolLock());
    await symlink(real, path);
    await Promise.all([
      updateLockFile(path, (lock = createToolLock()) => approve(lock, "a", [{ name: "t" }])),
      updateLockFile(real, (lock = createToolLock()) => approve(lock, "a", [{ name: "u" }])),
    ]);
    expect((await lstat(path)).isSymbolicLink()).toBe(true);
    expect(namesOf(await readLockFile(real), "a")).toEqual(["t", "u"]);
    expect((await readdir(folder)).sort()).toEqual(["real.json", "waybill.lock.json"]);
  });
});
