import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../gateway-process.ts";
import { CLI, openFolder, type RunningCommand, startWaybill } from "../installed-command.ts";
import { runNode } from "../run-node.ts";

const SHOP = `
export const pid = { namespace: "shop", name: "pid", version: "1.0.0", type: "query", description: "Says where it runs.",
  handler: () => process.pid };
`;

let folder: ReturnType<typeof openFolder>;
let running: RunningCommand | undefined;
beforeEach(() => {
  folder = openFolder();
  writeFileSync(join(folder.path, "shop.mjs"), SHOP);
  writeFileSync(join(folder.path, "waybill.config.json"), JSON.stringify({ operations: "shop.mjs" }));
});
afterEach(async () => {
  await running?.stop("SIGKILL");
  running = undefined;
  folder.remove();
});

const env = (): Record<string, string> => ({ WAYBILL_STATE_DIR: folder.state });
const files = (): readonly string[] => {
  try {
    return readdirSync(join(folder.state, "gateways"));
  } catch {
    return [];
  }
};

/** Starts a gateway, and waits until commands can find it. */
async function serve(...flags: string[]): Promise<number> {
  running = startWaybill(["serve", "--lame-duck", "0", ...flags], { cwd: folder.path, env: env() });
  await eventually("a file of the gateway", files, (found) => found.length > 0);
  return running.child.pid ?? 0;
}

/** In which process a call ran. */
async function calledIn(...flags: string[]): Promise<{ pid: number; isTold: boolean }> {
  const { code, stdout, stderr } = await runNode([CLI, "call", "shop.pid", ...flags], {
    cwd: folder.path,
    env: env(),
  });
  expect(code).toBe(0);
  return { pid: Number(stdout), isTold: stderr.includes("by the gateway that runs for it") };
}

describe("commands beside a gateway that runs", () => {
  it("RE-30 run in it, unless they are told not to", async () => {
    const pid = await serve("--port", "0");
    const places = ["gateways", ...files().map((name) => join("gateways", name))];
    expect(places.map((place) => (statSync(join(folder.state, place)).mode & 0o777).toString(8))).toEqual([
      "700",
      "600",
    ]);
    expect(await calledIn()).toEqual({ pid, isTold: true });
    expect((await running?.says(/.*"event":"call".*/))?.[0]).toContain('"entry":"cli"');
    const own = await calledIn("--no-gateway");
    expect([own.pid === pid, own.isTold]).toEqual([false, false]);
  });

  it("RE-30 run in one that serves a desktop host over stdio alone", async () => {
    const pid = await serve("--stdio");
    expect(await calledIn()).toEqual({ pid, isTold: true });
  });

  it("RE-30 start their own sources once it has ended, and leave nothing of one that was killed", async () => {
    const pid = await serve("--port", "0");
    await running?.stop("SIGTERM");
    expect(files()).toEqual([]);
    expect((await calledIn()).pid).not.toBe(pid);
    await serve("--port", "0");
    await running?.stop("SIGKILL");
    expect(files()).toHaveLength(1);
    expect((await calledIn()).isTold).toBe(false);
    expect(files()).toEqual([]);
  });
});
