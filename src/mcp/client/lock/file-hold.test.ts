import { existsSync } from "node:fs";
import { lstat, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rejection } from "../../../../test/make-operation.ts";
import { HOLD_WAITS, holdFile } from "./file-hold.ts";
import { readLockFile, updateLockFile, writeLockFile } from "./lock-file.ts";
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
    await writeFile(`${path}.hold`, "a process long gone");
    const longAgo = new Date(Date.now() - HOLD_WAITS.stale - 1_000);
    await utimes(`${path}.hold`, longAgo, longAgo);
    await updateLockFile(path, () => createToolLock("a", [{ name: "t" }]));
    expect(await readdir(folder)).toEqual(["waybill.lock.json"]);
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
    const nowhere = updateLockFile(join(folder, "no/such"), () => createToolLock());
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
