import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { isAlive } from "../../../test/mcp-servers/scripted-connection.ts";
import { openMcpConnection } from "./mcp-connection.ts";

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

const CRASHES = `
import { createInterface } from "node:readline";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
const child = spawn(process.execPath, ["-e", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log(1)"], { stdio: ["ignore", "pipe", "ignore"] });
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    const result = { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: "c", version: "1" } };
    child.stdout.once("data", () => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n"));
  }
  if (method === "tools/call") {
    writeFileSync(process.env.CHILD, String(child.pid));
    process.exit(1);
  }
});`;

describe("a process that crashed", () => {
  it("X-6 is gone with its children when close() resolves, called right after", async () => {
    const folder = await mkdtemp(join(tmpdir(), "waybill-crash-"));
    const file = join(folder, "child");
    const connection = await openMcpConnection({
      command: process.execPath,
      args: ["--input-type=module", "-e", CRASHES],
      env: { CHILD: file },
      protocol: "2025",
    });
    await expect(connection.request("tools/call", { name: "t" })).rejects.toMatchObject({
      code: "UNAVAILABLE",
    });
    await connection.close();
    expect(await isRunning(Number(await readFile(file, "utf8")))).toBe(false);
    await rm(folder, { recursive: true });
  });
});

/** One that is dead but not yet collected by whoever adopted it does not run. */
async function isRunning(pid: number): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => undefined);
  if (text === undefined) return process.platform !== "linux" && isAlive(pid);
  return text.slice(text.lastIndexOf(")")).split(" ")[1] !== "Z";
}
