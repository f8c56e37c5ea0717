import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withFileLock } from "./file-lock.ts";

let path: string;
beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), "waybill-lock-")), "lock");
});
afterEach(() => rmSync(dirname(path), { recursive: true, force: true }));

const owned = (facts: object): string =>
  JSON.stringify({ owner: "00000000-0000-4000-8000-000000000000", host: "elsewhere", pid: 1, ...facts });

describe("a lock in a file", () => {
  it("is held by one at a time, and is gone afterwards", async () => {
    let [now, most, ran] = [0, 0, 0];
    const run = async (): Promise<void> => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 1));
      now -= 1;
      ran += 1;
    };
    await Promise.all(Array.from({ length: 20 }, () => withFileLock(path, run)));
    expect([most, ran, existsSync(path)]).toEqual([1, 20, false]);
  });

  it("is given back when what it was for fails", async () => {
    const failing = withFileLock(path, () => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
    expect(existsSync(path)).toBe(false);
  });

  it.each([
    ["whose time is up", owned({ until: Date.now() - 1 })],
    ["that says it holds for ever, once it is old", owned({ until: Number.MAX_SAFE_INTEGER })],
    ["that cannot be read, once it is old", "{"],
  ])("is taken over from an owner elsewhere %s", async (_, text) => {
    writeFileSync(path, text);
    utimesSync(path, 1, 1);
    expect(await withFileLock(path, async () => "had")).toBe("had");
    expect(existsSync(path)).toBe(false);
  });

  it("is taken over once by many who find it left behind", async () => {
    writeFileSync(path, owned({ until: Date.now() - 1 }));
    let [now, most] = [0, 0];
    const run = async (): Promise<void> => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 1));
      now -= 1;
    };
    await Promise.all(Array.from({ length: 12 }, () => withFileLock(path, run)));
    expect(most).toBe(1);
  });

  it("is not taken over from an owner elsewhere whose time is not up", async () => {
    writeFileSync(path, owned({ until: Date.now() + 60_000, host: `${hostname()} other` }));
    await expect(withFileLock(path, async () => "had", { holdsMs: 100 })).resolves.toBe("had");
    writeFileSync(path, owned({ until: Date.now() + 3_600_000 }));
    const later = new Date(Date.now() + 3_600_000);
    utimesSync(path, later, later);
    const waiting = withFileLock(path, async () => "had", { holdsMs: 150 });
    await expect(waiting).rejects.toThrow("Another process holds");
  });
});
