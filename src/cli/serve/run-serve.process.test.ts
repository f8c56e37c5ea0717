import { mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createMemoryIo, type MemoryIo } from "../memory-io.ts";
import { runWaybill } from "../run-waybill.ts";

const operation = (name: string) =>
  `export const ${name} = { id: "shop.${name}", namespace: "shop", name: "${name}", version: "1.0.0", type: "query", description: "Says ${name}.", handler: () => "${name}" };\n`;

/** More than any test waits for. */
const FOR_EVER_MS = 3_600_000;

function makeFolder(config: object = {}): string {
  const folder = mkdtempSync(join(tmpdir(), "waybill-serve-"));
  writeFileSync(join(folder, "shop.mjs"), operation("hello"));
  writeConfig(folder, { operations: "*.mjs", serve: { port: 0 }, ...config });
  return folder;
}

/** As editors do it. */
function writeConfig(folder: string, config: unknown): void {
  const text = typeof config === "string" ? config : JSON.stringify(config);
  writeFileSync(join(folder, "new.tmp"), text);
  renameSync(join(folder, "new.tmp"), join(folder, "waybill.config.json"));
}

interface Served {
  readonly io: MemoryIo;
  readonly url: string;
  stop(): Promise<number>;
}

async function serve(folder: string, args: string[] = []): Promise<Served> {
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

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1_000; tries++) {
    if (await isSo().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("It took too long.");
}

describe("waybill serve", () => {
  it("RE-30 takes over who may call at once, and stops at once, while a new source hangs", async () => {
    const folder = makeFolder();
    const { url, stop } = await serve(folder);
    const hanging = {
      command: process.execPath,
      args: ["-e", "setInterval(() => {}, 1000)"],
      connectTimeoutMs: FOR_EVER_MS,
    };
    const auth = { tokens: { ada: { token: "0123456789abcdef-secret" } } };
    const serving = { port: 0, drainMs: FOR_EVER_MS };
    writeConfig(folder, { operations: "*.mjs", serve: serving, mcpServers: { hanging } });
    await new Promise((resolve) => setTimeout(resolve, 600));
    writeConfig(folder, {
      operations: "*.mjs",
      serve: { ...serving, auth },
      mcpServers: { hanging, other: hanging },
    });
    await until(async () => (await fetch(`${url}/openapi.json`)).status === 401);
    expect(await stop()).toBe(0);
  });
});
