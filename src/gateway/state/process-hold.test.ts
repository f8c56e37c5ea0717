import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { holdForProcess } from "./process-hold.ts";

it("is held once, however many ask at the same time, and leaves nothing behind", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-hold-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (let round = 0; round < 100; round += 1) {
    const path = join(folder, `${round}.lock`);
    const asked = Array.from({ length: 4 }, () => holdForProcess(path, (pid) => `held by ${pid}`));
    const held = (await Promise.allSettled(asked)).filter(({ status }) => status === "fulfilled");
    expect(held).toHaveLength(1);
    for (const each of held) if (each.status === "fulfilled") await each.value();
  }
  expect(await readdir(folder)).toEqual([]);
});
