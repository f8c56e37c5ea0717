import { mkdirSync, mkdtempSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createMemoryIo } from "../../test/memory-io.ts";
import { runWaybill } from "./run-waybill.ts";

it("keeps the names of 50 targets, the newest", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waybill-names-"));
  const names = join(folder, "state", "names");
  mkdirSync(names, { recursive: true });
  for (let at = 0; at < 60; at++) {
    writeFileSync(join(names, `${at}.json`), "{}");
    utimesSync(join(names, `${at}.json`), 1_000 + at, 1_000 + at);
  }
  writeFileSync(join(folder, "waybill.config.json"), "{}");
  const io = createMemoryIo({ cwd: folder, env: { WAYBILL_STATE_DIR: join(folder, "state") } });
  expect(await runWaybill(io, ["list"])).toBe(0);
  const kept = readdirSync(names);
  expect(kept).toHaveLength(50);
  expect(kept).toContain("59.json");
  expect(kept).not.toContain("10.json");
});
