import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Embedded, openEmbedded } from "../src/gateway/embedded/embedded-config.ts";

/** Opens the embedded default, or some of it, with a state folder of its own; both go when the test is over. */
export async function openEmbeddedForTest(only?: (name: string) => boolean): Promise<Embedded> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-embedded-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const embedded = await openEmbedded({ env: { WAYBILL_STATE_DIR: folder }, only });
  onTestFinished(() => embedded.close());
  return embedded;
}
