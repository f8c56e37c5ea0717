import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { locateInModule } from "./config-text.ts";
import { loadConfig } from "./read-config.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function write(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "waybill-module-"));
  folders.push(folder);
  const path = join(folder, "waybill.config.mjs");
  writeFileSync(path, text);
  return path;
}

const TEXT = `// prot: not here
const port = 1;
export default {
  serve: { prot: port, host: "prot: neither here" },
  mcpServers: {
    a: { command: "x", url: "https://a" },
    "b c": { command: "y" },
  },
};
`;

describe("places in a module", () => {
  it("RE-30 are those of names that stand there once, else of what is around them", () => {
    const locate = locateInModule(write(TEXT), "w.mjs");
    expect(locate(["serve", "prot"], "key")).toBe("w.mjs:4:12");
    expect(locate(["mcpServers", "b c"], "value")).toBe("w.mjs:7:5");
    expect(locate(["mcpServers", "a", "command"], "value")).toBe("w.mjs:6:5");
    expect(locate(["mcpServers", "a", "args", 3], "value")).toBe("w.mjs:6:5");
    expect(locate(["nothing"], "key")).toBe("w.mjs");
    expect(locate([], "value")).toBe("w.mjs");
    expect(locateInModule("/nowhere/at/all.mjs", "w.mjs")(["serve"], "key")).toBe("w.mjs");
  });

  it("RE-30 stand before mistakes of a config that is a module", async () => {
    const path = write(TEXT);
    const failed = await loadConfig(path, { env: {} }).catch((error: Error) => error.message);
    expect(failed).toMatch(/waybill\.config\.mjs:4:12 {2}There is no serve\.prot; did you mean "port"\?/);
    expect(failed).toMatch(/waybill\.config\.mjs:6:5 {2}mcpServers\.a has both command and url/);
  });
});
