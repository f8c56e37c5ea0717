import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createMemoryIo } from "../memory-io.ts";
import { runWaybill } from "../run-waybill.ts";

it("puts no banner among lines of JSON", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waybill-json-"));
  writeFileSync(join(folder, "waybill.config.json"), '{ "serve": { "port": 0 } }');
  const controller = new AbortController();
  const env = { WAYBILL_STATE_DIR: join(folder, "state") };
  const io = createMemoryIo({ cwd: folder, env, signal: controller.signal });
  setTimeout(() => controller.abort(), 1_000);
  expect(await runWaybill(io, ["serve", "--log-format", "json", "--log-level", "error"])).toBe(0);
  expect(io.err()).toBe("");
});
