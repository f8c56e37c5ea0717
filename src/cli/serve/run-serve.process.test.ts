import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FOR_EVER_MS, makeFolder, serve, until, writeConfig } from "../../../test/served-folder.ts";

describe("waybill serve", () => {
  it("RE-30 takes over who may call at once, and stops at once, while a new source hangs", async () => {
    const folder = makeFolder();
    const { url, stop } = await serve(folder);
    const begun = join(mkdtempSync(join(tmpdir(), "waybill-hanging-")), "begun");
    const script = `require("node:fs").writeFileSync(${JSON.stringify(begun)}, ""); setInterval(() => {}, 1000);`;
    const hanging = {
      command: process.execPath,
      args: ["-e", script],
      connectTimeoutMs: FOR_EVER_MS,
    };
    const auth = { tokens: { ada: { token: "0123456789abcdef-secret" } } };
    const serving = { port: 0, drainMs: FOR_EVER_MS };
    writeConfig(folder, { operations: "*.mjs", serve: serving, mcpServers: { hanging } });
    await until(async () => existsSync(begun));
    writeConfig(folder, {
      operations: "*.mjs",
      serve: { ...serving, auth },
      mcpServers: { hanging, other: hanging },
    });
    await until(async () => (await fetch(`${url}/openapi.json`)).status === 401);
    expect(await stop()).toBe(0);
  });
});
