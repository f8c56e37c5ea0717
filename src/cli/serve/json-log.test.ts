import { existsSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { until } from "../../../test/make-operation.ts";
import { createMemoryIo } from "../../../test/memory-io.ts";
import { runWaybill } from "../run-waybill.ts";

it("puts no banner among lines of JSON", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waybill-json-"));
  writeFileSync(join(folder, "waybill.config.json"), '{ "serve": { "port": 0 } }');
  const controller = new AbortController();
  const state = join(folder, "state");
  const env = { WAYBILL_STATE_DIR: state };
  const io = createMemoryIo({ cwd: folder, env, signal: controller.signal });
  const running = runWaybill(io, ["serve", "--log-format", "json", "--log-level", "error"]);
  // It keeps the names of what it serves after it has said what that is.
  await until(() => existsSync(state) && readdirSync(state).length > 0);
  controller.abort();
  expect(await running).toBe(0);
  expect(io.err()).toBe("");
});
