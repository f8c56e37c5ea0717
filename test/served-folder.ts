import { mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMemoryIo, type MemoryIo, runWaybill } from "./memory-io.ts";

/** More than any test waits for. */
export const FOR_EVER_MS = 3_600_000;

/** The text of a module with one operation, `shop.<name>`, that says its name. */
export const operation = (name: string) =>
  `export const ${name} = { id: "shop.${name}", namespace: "shop", name: "${name}", version: "1.0.0", type: "query", description: "Says ${name}.", handler: () => "${name}" };\n`;

/** Makes a folder with the operation `shop.hello`, and a config to serve it at a free port. */
export function makeFolder(config: object = {}): string {
  const folder = mkdtempSync(join(tmpdir(), "waybill-serve-"));
  writeFileSync(join(folder, "shop.mjs"), operation("hello"));
  writeConfig(folder, { operations: "*.mjs", serve: { port: 0 }, ...config });
  return folder;
}

/** Replaces the config as editors do it. */
export function writeConfig(folder: string, config: unknown): void {
  const text = typeof config === "string" ? config : JSON.stringify(config);
  writeFileSync(join(folder, "new.tmp"), text);
  renameSync(join(folder, "new.tmp"), join(folder, "waybill.config.json"));
}

/** A folder that is served in this process. */
export interface Served {
  readonly io: MemoryIo;
  readonly url: string;
  stop(): Promise<number>;
}

/** Serves a folder until `stop`. */
export async function serve(folder: string, args: string[] = []): Promise<Served> {
  const controller = new AbortController();
  const env = { WAYBILL_STATE_DIR: join(folder, "state") };
  const io = createMemoryIo({ cwd: folder, env, signal: controller.signal });
  const running = runWaybill(io, ["serve", "--log-level", "silent", ...args]);
  await until(async () => io.err().includes("Try in another terminal"));
  const [, url = ""] = /document +(http\S+)\/openapi\.json/.exec(io.err()) ?? [];
  const stop = async () => {
    controller.abort();
    return running;
  };
  return { io, url, stop };
}

/** Waits until something is so; a question that fails is asked again. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1_000; tries++) {
    if (await isSo().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("It took too long.");
}
