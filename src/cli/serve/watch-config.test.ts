import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { stampOf } from "../../gateway/watch-stamps.ts";
import { type ConfigParts, type ConfigWatch, findParts, watchConfig } from "./run-serve.ts";

let folder: string;
let changes: number;
let watch: ConfigWatch;
const faults: unknown[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waybill-watch-"));
  changes = 0;
  faults.length = 0;
  lay();
});
afterEach(() => {
  watch.close();
  rmSync(folder, { recursive: true });
});

const at = (name: string): string => join(folder, name);

function put(name: string, text: string): void {
  mkdirSync(dirname(at(name)), { recursive: true });
  writeFileSync(at(name), text);
}

/** As editors do it. */
function swap(name: string): void {
  put("draft", String(performance.now()));
  renameSync(at("draft"), at(name));
}

function loaded(operations: string | string[] = "ops/*", ...others: string[]): LoadedConfig {
  const paths = ["conf/waybill.config.json", ...others].map(at);
  const files = new Map(paths.map((path) => [path, stampOf(path)]));
  return {
    config: { operations },
    baseDir: folder,
    files,
    faults: {},
    warnings: [],
    secrets: new SecretMask(),
  };
}

/** Everything that changes below. */
function lay(): void {
  put("conf/waybill.config.json", "{}");
  put("ops/one.mjs", "1");
  put("secret", "x");
  put("rel1/a.mjs", "1");
  put("rel2/a.mjs", "1");
  symlinkSync(at("rel1"), at("current"));
}

async function follow(config: LoadedConfig): Promise<void> {
  begin(await findParts(config));
}

function begin(parts: ConfigParts): void {
  const onChange = async (): Promise<void> => {
    changes += 1;
  };
  watch = watchConfig(parts, { onChange, onFault: (fault) => faults.push(fault) });
}

const isTold = (times = 1) => vi.waitFor(() => expect(changes).toBe(times), 40_000);
/** Longer than it takes to look again and to settle. */
const QUIET_MS = 700;

describe("watchConfig", () => {
  it("RE-30 tells of nothing while nothing changes that is of the config", async () => {
    await follow(loaded());
    put("beside.txt", "not of the config");
    put("ops/deep/two.mjs", "not of the pattern");
    await sleep(QUIET_MS);
    expect(changes).toBe(0);
  });

  it.each([
    ["the config, written over", () => put("conf/waybill.config.json", '{ "name": "other" }')],
    ["the config, put in its place", () => swap("conf/waybill.config.json")],
    ["a file it refers to that goes", () => rmSync(at("secret"))],
    ["a file it refers to that comes", () => put("secrets/later", "x")],
    ["a module", () => put("ops/one.mjs", "2")],
    ["a module that another takes the place of", () => swap("ops/one.mjs")],
    ["a new module", () => put("ops/two.mjs", "2")],
    ["a module that goes", () => rmSync(at("ops/one.mjs"))],
    ["a folder of modules that comes", () => put("later/four.mjs", "4")],
    ["a folder that another takes the place of", () => swapFolder("conf", "conf/waybill.config.json")],
    ["a link that leads elsewhere", relink],
  ])("RE-30 tells once of %s, while things are loaded or after that", async (_, change) => {
    const config = loaded(["ops/*", "later/*", "current/*"], "secret", "secrets/later");
    const parts = await findParts(config);
    change();
    begin(parts);
    await isTold();
    put("ops/one.mjs", "and after");
    await isTold(2);
    watch.close();
    rmSync(folder, { recursive: true });
    lay();
    begin(await findParts(config));
    await isTold(3);
    change();
    await isTold(4);
    await sleep(QUIET_MS);
    expect([changes, faults]).toEqual([4, []]);
  });

  it("RE-30 tells of what has changed while a change was being taken over", async () => {
    const parts = await findParts(loaded());
    const seen: string[] = [];
    const onChange = async (): Promise<void> => {
      changes += 1;
      watch.expect(await findParts(loaded()));
      if (changes === 1) swap("ops/one.mjs");
      seen.push(stampOf(at("ops/one.mjs")));
    };
    watch = watchConfig(parts, { onChange, onFault: (fault) => faults.push(fault) });
    swap("ops/one.mjs");
    await isTold(2);
    await vi.waitFor(() => expect(seen).toHaveLength(2), 40_000);
    expect(seen).toEqual([stampOf(at("ops/one.mjs")), stampOf(at("ops/one.mjs"))]);
  });

  it("RE-30 takes files that never rest as they are after a second", async () => {
    await follow(loaded());
    const startedAt = performance.now();
    const busy = setInterval(() => swap("ops/one.mjs"), 20);
    await isTold().finally(() => clearInterval(busy));
    expect(performance.now() - startedAt).toBeGreaterThan(900);
  });

  it("RE-30 follows other patterns, and what they find in the same folders", async () => {
    put("ops/deep/three.mjs", "3");
    await follow(loaded());
    watch.expect(await findParts(loaded("ops/**")));
    put("ops/deep/three.mjs", "four");
    await isTold();
  });

  it("RE-30 waits for files that a config which cannot be used refers to", async () => {
    await follow(loaded());
    watch.expectAlso(new Map([[at("sec/tok"), ""]]));
    put("sec/tok", "x");
    await isTold();
  });

  it("RE-30 goes on when what could not be looked at can be again, and says it once", async () => {
    for (let count = 0; count <= 10_000; count += 1) put(`many/${count}.mjs`, "");
    await follow(loaded("many/*"));
    await vi.waitFor(() => expect(faults).toHaveLength(1), 40_000);
    rmSync(at("many"), { recursive: true });
    put("many/1.mjs", "1");
    await isTold();
    expect(String(faults)).toBe("RangeError: The patterns match more than 10000 files.");
  });

  it("RE-30 tells of an edit to a config whose modules cannot be found: it may have mended that", async () => {
    for (let count = 0; count < 100; count += 1) put(`many/${count}.mjs`, "");
    // The same files by other paths count as others, and are quicker
    const links = Array.from({ length: 100 }, (_, count) => `link${count}`);
    for (const link of links) symlinkSync(at("many"), at(link));
    await follow(loaded(["ops/*", ...links.map((link) => `${link}/*`)]));
    await vi.waitFor(() => expect(faults).toHaveLength(1), 40_000);
    expect(changes).toBe(0);
    put("conf/waybill.config.json", '{ "operations": "ops/*" }');
    await isTold();
    expect(faults.map(String)).toEqual(["RangeError: The patterns match more than 10000 files."]);
  });

  it("RE-30 tells once of each edit that cannot be used, whatever files each refers to", async () => {
    const onChange = async (): Promise<void> => {
      changes += 1;
      const path = at(`secrets/${changes}`);
      watch.expectAlso(new Map([[path, stampOf(path)]]));
    };
    const parts = await findParts(loaded());
    watch = watchConfig(parts, { onChange, onFault: (fault) => faults.push(fault) });
    swap("conf/waybill.config.json");
    await isTold();
    swap("conf/waybill.config.json");
    await isTold(2);
    await sleep(QUIET_MS);
    expect([changes, faults]).toEqual([2, []]);
  });

  it("RE-30 tells of nothing once it is closed", async () => {
    await follow(loaded());
    put("ops/one.mjs", "2");
    watch.close();
    await sleep(QUIET_MS);
    expect(changes).toBe(0);
  });
});

function relink(): void {
  symlinkSync(at("rel2"), at("next"));
  renameSync(at("next"), at("current"));
}

function swapFolder(name: string, file: string): void {
  renameSync(at(name), at("old"));
  put(file, "{}");
}
