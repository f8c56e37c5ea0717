import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { makeFolder } from "../../../test/gateway-sources.ts";
import { until } from "../../../test/make-operation.ts";
import { ROOT, runCommand } from "../../../test/run-node.ts";
import { openMcpConnection } from "../../mcp/client/mcp-connection.ts";

const MODULE = `export const drop = {
  id: "shop.drop", namespace: "shop", name: "drop", version: "1.0.0", type: "mutation", description: "Drops a table.",
  annotations: { destructive: true },
  inputSchema: { type: "object", properties: { table: { type: "string" } } }, handler: ({ table }) => ({ dropped: table }),
};`;
const AGENT = "the-token-of-agent-1";
const ADA = "the-token-of-ada-123";

async function serve(folder: string) {
  const child: ChildProcess = spawn(
    process.execPath,
    [join(ROOT, "dist/cli.js"), "serve", "--log-format", "json", "--lame-duck", "0"],
    { cwd: folder, env: environment(folder), stdio: ["ignore", "ignore", "pipe"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  let log = "";
  child.stderr?.setEncoding("utf8").on("data", (more: string) => {
    log += more;
  });
  await until(() => log.includes('"listening"') || child.exitCode !== null);
  const url = /"url":"(http:[^"]+)"/.exec(log)?.[1] ?? "";
  const call = async (table: string) =>
    (
      await fetch(`${url}/api/shop/drop`, {
        method: "POST",
        headers: { authorization: `Bearer ${AGENT}`, "content-type": "application/json" },
        body: JSON.stringify({ table }),
      })
    ).status;
  const stop = async (signal: "SIGTERM" | "SIGKILL"): Promise<void> => {
    child.kill(signal);
    await once(child, "close");
  };
  return { url, call, stop };
}

function environment(folder: string): NodeJS.ProcessEnv {
  return { ...process.env, NODE_OPTIONS: "", HOME: folder, WAYBILL_STATE_DIR: join(folder, "own") };
}

const waybill = (folder: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  runCommand(process.execPath, [join(ROOT, "dist/cli.js"), "approvals", ...args], {
    cwd: folder,
    env: { ...environment(folder), ...env } as Record<string, string>,
  });

function makeProject(): string {
  return makeFolder({
    "shop.mjs": MODULE,
    "waybill.config.json": JSON.stringify({
      operations: "shop.mjs",
      policies: { "shop.*": { approve: { calls: "destructive", holdMs: 0 } } },
      state: { store: { files: "state" } },
      audit: { file: "audit.jsonl" },
      serve: {
        port: 0,
        auth: {
          tokens: { agent: { token: AGENT }, ada: { token: ADA, scopes: ["waybill:approve"] } },
        },
      },
    }),
  });
}

describe("waybill approvals", () => {
  it("decides about calls that wait, over kills of the gateway before and after the decision", async () => {
    const folder = makeProject();
    const first = await serve(folder);
    expect(await first.call("users")).toBe(428);
    await first.stop("SIGKILL");

    const second = await serve(folder);
    const listed = await waybill(folder, []);
    expect(listed.stdout).toMatch(/waiting\s+agent\s+shop\.drop\s+\{ "table": "users" \}/);
    const id = /^([0-9a-f]{12})\s/m.exec(listed.stdout)?.[1] ?? "";
    expect((await waybill(folder, ["show", id.slice(0, 6)])).stdout).toMatch(
      /"table": "users"[\s\S]*Drops a table\./,
    );
    const approved = await waybill(folder, ["approve", id]);
    expect([approved.code, approved.stdout]).toEqual([
      0,
      "shop.drop of agent: Approved. The same call runs once.\n",
    ]);
    await second.stop("SIGKILL");

    const third = await serve(folder);
    expect(await third.call("orders")).toBe(428);
    expect(await third.call("users")).toBe(200);
    expect(await third.call("users")).toBe(428);
    const remote = ["--url", third.url];
    const left = JSON.parse((await waybill(folder, ["--json", ...remote], { WAYBILL_TOKEN: ADA })).stdout);
    const orders = left.approvals.find(({ input }: { input: string }) => input.includes("orders")).id;
    expect((await waybill(folder, ["deny", orders, ...remote], { WAYBILL_TOKEN: AGENT })).code).toBe(3);
    const denied = await waybill(folder, ["deny", orders, "--comment", "not today", ...remote], {
      WAYBILL_TOKEN: ADA,
    });
    expect(denied.code).toBe(0);
    expect(await third.call("orders")).toBe(403);
    await third.stop("SIGTERM");

    const audit = readFileSync(join(folder, "audit.jsonl"), "utf8");
    const records = audit
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const ran = records.filter(({ outcome }) => outcome === "ok");
    const decided = records.filter(({ event }) => event === "approval");
    expect(decided).toMatchObject([
      { subject: "agent", operation: "shop.drop", approval: { decision: "approved", via: "command" } },
      {
        subject: "agent",
        operation: "shop.drop",
        approval: { decision: "denied", by: "ada", via: "command" },
      },
    ]);
    expect(ran).toHaveLength(1);
    expect(ran[0]).toMatchObject({
      subject: "agent",
      approval: { decision: "approved", via: "command", by: expect.any(String), at: expect.any(String) },
    });
    expect(records.at(-1)).toMatchObject({ approval: { decision: "denied", by: "ada", via: "command" } });
  });

  it.each(["SIGKILL", "SIGTERM"] as const)(
    "decides about a call that is a task, which waits on over %s, runs once and gives its client its result",
    async (signal) => {
      const folder = makeProject();
      const connect = (url: string) =>
        openMcpConnection({ url: `${url}/mcp`, protocol: "2025", auth: { bearer: AGENT } });
      const first = await serve(folder);
      const before = await connect(first.url);
      const asked = { name: "shop_drop", arguments: { table: "users" }, task: { ttl: 600_000 } };
      const created = await before.request("tools/call", asked);
      const { taskId } = created["task"] as { taskId: string };
      await expect
        .poll(async () => (await waybill(folder, [])).stdout, { timeout: 20_000 })
        .toContain("waiting");
      const stopped = first.stop(signal);
      await before.close();
      await stopped;

      const second = await serve(folder);
      const after = await connect(second.url);
      onTestFinished(() => after.close());
      expect(await after.request("tasks/get", { taskId })).toMatchObject({ status: "working" });
      const id = /^([0-9a-f]{12})\s/m.exec((await waybill(folder, [])).stdout)?.[1] ?? "";
      expect((await waybill(folder, ["approve", id])).code).toBe(0);
      expect(await after.request("tasks/result", { taskId })).toMatchObject({
        structuredContent: { dropped: "users" },
      });
      expect(JSON.parse((await waybill(folder, ["--json"])).stdout)).toEqual({ approvals: [] });
      const audit = readFileSync(join(folder, "audit.jsonl"), "utf8");
      expect(audit.match(/"outcome":"ok"/g)).toHaveLength(1);
    },
  );

  it("says what is wrong where no gateway runs, or a request is not named", async () => {
    const folder = makeProject();
    expect((await waybill(folder, ["list"])).stderr).toContain("No gateway runs for this config");
    const served = await serve(folder);
    expect((await waybill(folder, ["approve"])).stderr).toContain("Name the request");
    expect((await waybill(folder, ["approve", "abcdef"])).stderr).toContain("There is no request");
    const { stderr } = await waybill(folder, ["--url", served.url], { WAYBILL_TOKEN: "" });
    expect(stderr).toContain("wants a token");
    await served.stop("SIGTERM");
  });
});
