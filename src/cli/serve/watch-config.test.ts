import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { SecretMask } from "../../gateway/config/secret-mask.ts";
import { type ConfigWatch, watchConfig } from "./watch-config.ts";

let folder: string;
let changes: number;
const faults: unknown[] = [];
let watch: ConfigWatch;
let open: ConfigWatch[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "waybill-watch-"));
  changes = 0;
  faults.length = 0;
  open = [];
  watch = makeWatch();
  put("waybill.config.json", "{}");
  put("ops/one.mjs", "1");
  // What was written before counts as old only after a while: file systems keep coarse clocks.
  await sleep(40);
});
afterEach(async () => {
  for (const each of open) await each.close();
  rmSync(folder, { recursive: true });
  expect(faults).toEqual([]);
});

function makeWatch(): ConfigWatch {
  const made = watchConfig(
    async () => {
      changes += 1;
    },
    (fault) => faults.push(fault),
  );
  open.push(made);
  return made;
}

function put(name: string, text: string): void {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function loaded(operations: string | string[] = "ops/*"): LoadedConfig {
  const files = [join(folder, "waybill.config.json")];
  const rest = { faults: {}, warnings: [], secrets: new SecretMask() };
  return { config: { operations }, baseDir: folder, files, ...rest };
}

const isTold = (times: number) => vi.waitFor(() => expect(changes).toBe(times), 10_000);
const QUIET_MS = 600;

describe("watchConfig", () => {
  it("RE-30 tells of nothing while nothing changes", async () => {
    await watch.follow(loaded(), Date.now());
    put("beside.txt", "not of the config");
    await sleep(QUIET_MS);
    expect(changes).toBe(0);
  });

  it.each([
    ["the config", () => put("waybill.config.json", '{ "name": "other" }')],
    ["a module", () => put("ops/one.mjs", "2")],
    ["a module that another takes the place of", () => swap("ops/one.mjs")],
    ["a new module", () => put("ops/two.mjs", "2")],
  ])("RE-30 tells of %s, changed between its reading and the watching", async (_, change) => {
    const readAt = Date.now();
    change();
    await watch.follow(loaded(), readAt);
    await isTold(1);
    await sleep(QUIET_MS);
    expect(changes).toBe(1);
  });

  it("RE-30 tells of a change while it begins to watch, and right after that", async () => {
    for (let round = 1; round <= 10; round += 1) {
      const each = makeWatch();
      const before = changes;
      const following = each.follow(loaded(), Date.now());
      await sleep(round * 2);
      put("ops/one.mjs", `during ${round}`);
      await following;
      await vi.waitFor(() => expect(changes).toBeGreaterThan(before), 10_000);
      await each.close();
    }
    for (let round = 1; round <= 10; round += 1) {
      const each = makeWatch();
      await each.follow(loaded(), Date.now());
      const before = changes;
      swap("ops/one.mjs");
      await vi.waitFor(() => expect(changes).toBeGreaterThan(before), 10_000);
      await each.close();
    }
  });

  it("RE-30 follows other patterns, and what they find in the same folders", async () => {
    put("ops/deep/three.mjs", "3");
    await sleep(40);
    await watch.follow(loaded(), Date.now());
    put("ops/deep/three.mjs", "4");
    await sleep(QUIET_MS);
    expect(changes).toBe(0);
    await watch.follow(loaded("ops/**"), Date.now());
    put("ops/deep/three.mjs", "5");
    await isTold(1);
  });

  it("RE-30 hears of a module that goes, and of a folder that comes", async () => {
    await watch.follow(loaded(["ops/*", "later/*"]), Date.now());
    rmSync(join(folder, "ops/one.mjs"));
    await isTold(1);
    put("later/four.mjs", "4");
    await isTold(2);
    put("later/four.mjs", "five");
    await isTold(3);
  });

  it("RE-30 hears of a file that comes, though its folder is still to be made", async () => {
    const config = loaded([]);
    const env = join(folder, "secrets/.env");
    await watch.follow({ ...config, files: [...config.files, env] }, Date.now());
    put("secrets/.env", "KEY=1");
    await isTold(1);
  });

  it("RE-30 tells of nothing once it is closed, also where it is closed while it begins", async () => {
    const readAt = Date.now();
    put("ops/one.mjs", "2");
    const following = watch.follow(loaded(), readAt);
    await watch.close();
    await following;
    put("ops/one.mjs", "3");
    await sleep(QUIET_MS);
    expect(changes).toBe(0);
  });
});

/** As editors do it. */
function swap(name: string): void {
  put("draft", String(performance.now()));
  renameSync(join(folder, "draft"), join(folder, name));
}
