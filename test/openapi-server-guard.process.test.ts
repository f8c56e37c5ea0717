import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterEach, describe, expect, it } from "vitest";
import { nodeClient } from "./http-requests.ts";
import { HARDENED, HARDENED_FLAGS } from "./run-node.ts";

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((api) => api.close()));
});

describe("a server that listens", () => {
  it.each([[[]], [["close-idle"]]])(
    "RE-30 ends what runs on each server before a signal ends the process %j",
    async (given) => {
      const folder = mkdtempSync(join(tmpdir(), "waybill-served-"));
      try {
        const input = fileURLToPath(new URL("openapi-server-process.ts", import.meta.url));
        const bundle = await rolldown({ input, platform: "node", logLevel: "silent" });
        await bundle.write({ file: join(folder, "server.mjs"), format: "esm", codeSplitting: false });
        await bundle.close();
        const flags = HARDENED ? HARDENED_FLAGS : [];
        const child = spawn(process.execPath, [...flags, join(folder, "server.mjs"), ...given], {
          stdio: ["ignore", "pipe", "inherit"],
        });
        const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
        const url = String((await lines.next()).value);
        const call = nodeClient(url).send("/api/wait/some", { method: "POST" });
        expect((await lines.next()).value).toBe("started");
        const ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve([code, signal])));
        child.kill("SIGTERM");
        expect((await call).json).toBe("done");
        expect(await ended).toEqual([null, "SIGTERM"]);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});
