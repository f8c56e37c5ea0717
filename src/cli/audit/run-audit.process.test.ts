import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { makeFolder } from "../../../test/gateway-sources.ts";
import { until } from "../../../test/make-operation.ts";
import { ROOT, runCommand } from "../../../test/run-node.ts";

const MODULE = `export const hello = {
  id: "shop.hello", namespace: "shop", name: "hello", version: "1.0.0", type: "mutation", description: "Greets.",
  inputSchema: { type: "object", properties: {} }, handler: () => ({ text: "hello" }),
};`;
const ANN = "the-token-of-ann-1";

function makeConfig(): string {
  return makeFolder({
    "shop.mjs": MODULE,
    "waybill.config.json": JSON.stringify({
      operations: "shop.mjs",
      audit: { file: "audit.jsonl" },
      serve: { port: 0, auth: { tokens: { ann: { token: ANN }, bob: { token: "the-token-of-bob-1" } } } },
    }),
  });
}

async function serve(folder: string) {
  const child: ChildProcess = spawn(
    process.execPath,
    [join(ROOT, "dist/cli.js"), "serve", "--log-format", "json", "--lame-duck", "0"],
    {
      cwd: folder,
      env: { ...process.env, NODE_OPTIONS: "", WAYBILL_STATE_DIR: join(folder, "state") },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  let log = "";
  child.stderr?.setEncoding("utf8").on("data", (more: string) => {
    log += more;
  });
  await until(() => log.includes('"listening"') || child.exitCode !== null);
  const url = /"url":"(http:[^"]+)"/.exec(log)?.[1] ?? "";
  const call = async (who: string) =>
    (
      await fetch(`${url}/api/shop/hello`, {
        method: "POST",
        headers: { authorization: `Bearer the-token-of-${who}-1`, "content-type": "application/json" },
        body: "{}",
      })
    ).status;
  const stop = async (signal: "SIGTERM" | "SIGKILL"): Promise<void> => {
    child.kill(signal);
    await once(child, "close");
  };
  return { child, call, stop, log: () => log };
}

const waybill = (folder: string, ...args: string[]) =>
  runCommand(process.execPath, [join(ROOT, "dist/cli.js"), ...args], { cwd: folder, env: { HOME: folder } });

describe("waybill audit", () => {
  it("shows who called what over restarts and kills, and proves that nothing was changed or cut", async () => {
    const folder = makeConfig();
    const first = await serve(folder);
    expect([await first.call("ann"), await first.call("bob"), await first.call("ann")]).toEqual([
      200, 200, 200,
    ]);
    await until(() => readFileSync(join(folder, "audit.jsonl"), "utf8").split("\n").length > 3);
    await first.stop("SIGKILL");
    const second = await serve(folder);
    expect(await second.call("ann")).toBe(200);
    await second.stop("SIGTERM");
    expect(second.log()).toContain('"audit head"');
    writeFileSync(join(folder, "gateway.log"), second.log());

    const table = await waybill(folder, "audit", "--subject", "ann");
    expect(table.stdout.trim().split("\n")).toHaveLength(4);
    expect(table.stdout).toMatch(/ann\s+http\s+shop\.hello\s+ok/);
    const whole = await waybill(folder, "audit", "verify", "--log", "gateway.log");
    expect([whole.code, whole.stdout]).toEqual([
      0,
      expect.stringContaining("each names the one before it; 1 kept head found"),
    ]);

    const file = join(folder, "audit.jsonl");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.split("\n").slice(0, -2).join("\n").concat("\n"));
    const cut = await waybill(folder, "audit", "verify", "--log", "gateway.log");
    expect([cut.code, cut.stdout]).toEqual([1, expect.stringContaining("which was kept as a head")]);
    writeFileSync(file, text.replace('"subject":"bob"', '"subject":"ann"'));
    const changed = await waybill(folder, "audit", "verify", "--json");
    expect([changed.code, JSON.parse(changed.stdout)]).toMatchObject([
      1,
      { isWhole: false, faults: [{ line: 3 }] },
    ]);
  });

  it("says what is missing", async () => {
    const folder = makeFolder({ "waybill.config.json": "{}" });
    const without = await waybill(folder, "audit");
    expect([without.code, without.stderr]).toEqual([
      2,
      expect.stringContaining('write "audit": { "file": "audit.jsonl" }'),
    ]);
    const wrong = await waybill(folder, "audit", "--file", "none.jsonl", "--since", "soon");
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("--since takes a date")]);
    const none = await waybill(folder, "audit", "verify", "--file", "none.jsonl");
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("There is no audit file")]);
  });
});
