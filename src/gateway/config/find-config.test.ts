import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findConfig } from "./config-files.ts";

describe("findConfig", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-find-"));
    await mkdir(join(folder, "repo/.git"), { recursive: true });
    await mkdir(join(folder, "repo/a/b"), { recursive: true });
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it.each(["ts", "mts", "js", "mjs", "json", "yaml", "yml"])(
    "finds waybill.config.%s here and above",
    async (ending) => {
      const path = join(folder, `repo/a/waybill.config.${ending}`);
      await writeFile(path, "");
      expect(await findConfig(join(folder, "repo/a"))).toBe(path);
      expect(await findConfig(join(folder, "repo/a/b"))).toBe(path);
      expect(await findConfig(join(folder, "repo"))).toBeUndefined();
    },
  );

  it("takes the nearest, and looks in the folder of .git but not above", async () => {
    await writeFile(join(folder, "waybill.config.json"), "");
    expect(await findConfig(join(folder, "repo/a/b"))).toBeUndefined();
    await writeFile(join(folder, "repo/waybill.config.json"), "");
    expect(await findConfig(join(folder, "repo/a/b"))).toBe(join(folder, "repo/waybill.config.json"));
    await writeFile(join(folder, "repo/a/waybill.config.yaml"), "");
    expect(await findConfig(join(folder, "repo/a/b"))).toBe(join(folder, "repo/a/waybill.config.yaml"));
  });

  it("RE-30 looks in the folder alone where there is no repository", async () => {
    await mkdir(join(folder, "loose/a"), { recursive: true });
    await writeFile(join(folder, "loose/waybill.config.json"), "");
    await writeFile(join(folder, "waybill.config.mjs"), "");
    expect(await findConfig(join(folder, "loose/a"))).toBeUndefined();
    expect(await findConfig(join(folder, "loose"))).toBe(join(folder, "loose/waybill.config.json"));
  });

  it("names both where there are two", async () => {
    await writeFile(join(folder, "waybill.config.json"), "");
    await writeFile(join(folder, "waybill.config.ts"), "");
    await writeFile(join(folder, "waybill.config.txt"), "");
    await expect(findConfig(folder)).rejects.toThrow(
      `There are waybill.config.json and waybill.config.ts in ${folder}; keep one of them, or name one with --config.`,
    );
  });
});
