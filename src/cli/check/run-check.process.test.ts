import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCommandLine } from "../../../test/run-command-line.ts";
import { childScript } from "../../../test/stdio-child.ts";
import type { CheckReport } from "./check-report.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-check-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const run = (...args: string[]) => runCommandLine(["check", ...args], { cwd: folder });
const reportsOf = (stdout: string) => (JSON.parse(stdout) as { reports: CheckReport[] }).reports;

describe("check as a command", () => {
  it("checks a command line, and a source of the config by name", async () => {
    const line = `${process.execPath} ${childScript("sdk-server.js")}`;
    const direct = await run(line, "--json");
    expect(reportsOf(direct.stdout)[0]).toMatchObject({ kind: "mcp", reachable: true });
    const config = {
      mcpServers: { files: { command: process.execPath, args: [childScript("sdk-server.js")] } },
    };
    await writeFile(join(folder, "waybill.config.json"), JSON.stringify(config));
    const named = await run("files", "--json");
    expect(reportsOf(named.stdout)[0]).toMatchObject({ target: "files", kind: "mcp", reachable: true });
    const missing = await run("flies");
    expect([missing.code, missing.stderr]).toEqual([
      2,
      'waybill: There is no source, document or command "flies"; did you mean "files"?\n',
    ]);
  });
});
