import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { freePort } from "../../../test/free-port.ts";
import { ROOT } from "../../../test/run-node.ts";
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

describe("a gateway that is a server of its own config", () => {
  /** What `list --sources` says in a folder, and what it wrote to stderr. */
  const listed = (folder: string): { readonly sources: readonly object[]; readonly stderr: string } => {
    const ran = spawnSync(
      process.execPath,
      [join(ROOT, "dist/cli.js"), "list", "--sources", "--json", "--verbose"],
      {
        cwd: folder,
        env: { ...process.env, NODE_OPTIONS: "", WAYBILL_STATE_DIR: join(folder, "state") },
        encoding: "utf8",
      },
    );
    return { sources: JSON.parse(ran.stdout).sources ?? JSON.parse(ran.stdout), stderr: ran.stderr };
  };
  const gatewayOf = (folder: string) => ({
    command: process.execPath,
    args: [join(ROOT, "dist/cli.js"), "serve", "--stdio", "--config", join(folder, "waybill.config.json")],
  });

  it("is down and says so, and does not start itself again and again", () => {
    const folder = makeFolder();
    writeConfig(folder, { operations: "*.mjs", mcpServers: { me: gatewayOf(folder) } });
    const { sources, stderr } = listed(folder);
    expect(sources).toMatchObject([{ name: "me", state: { status: "down" } }, { name: "local" }]);
    expect(stderr).toContain("mounts this gateway in itself. Remove the MCP server that starts it");
  });

  it("is down in another that it mounts, whose own operations are there", () => {
    const [folder, other] = [makeFolder(), makeFolder()];
    writeConfig(folder, { mcpServers: { other: gatewayOf(other) } });
    writeConfig(other, { operations: "*.mjs", mcpServers: { first: gatewayOf(folder) } });
    expect(listed(folder).sources).toMatchObject([{ name: "other", state: { status: "up" }, operations: 1 }]);
  });
});

/** Serves a folder in a process of its own; nobody reads what it writes to stderr unless a test does. */
async function start(args: readonly string[] = [], serving: object = {}) {
  const port = await freePort();
  const folder = makeFolder({ serve: { port, ...serving } });
  const child = spawn(process.execPath, [join(ROOT, "dist/cli.js"), "serve", ...args], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: "", WAYBILL_STATE_DIR: join(folder, "state") },
    stdio: ["pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  const url = `http://127.0.0.1:${port}`;
  const statusOf = async (path: string, method = "GET") => {
    const response = await fetch(url + path, { method });
    await response.arrayBuffer();
    return response.status;
  };
  return { child, ended, url, statusOf };
}

function textOf({ stderr }: ChildProcess): () => string {
  let text = "";
  stderr?.setEncoding("utf8").on("data", (more: string) => {
    text += more;
  });
  return () => text;
}

describe("waybill serve on a signal", () => {
  it("RE-30 serves everything for a while after SIGTERM, says at /ready that it leaves, and ends on a second signal", async () => {
    const { child, ended, statusOf } = await start(["--log-format", "json"], { lameDuckMs: FOR_EVER_MS });
    const err = textOf(child);
    await until(async () => (await statusOf("/ready")) === 200);
    child.kill("SIGTERM");
    await until(async () => (await statusOf("/ready")) === 503);
    expect(await statusOf("/health")).toBe(200);
    expect(await statusOf("/api/shop/hello", "POST")).toBe(200);
    expect(err()).toContain('"msg":"leaving"');
    expect(err()).not.toContain('"msg":"stopping"');
    child.kill("SIGTERM");
    expect(await ended).toBe(143);
  });

  it("RE-30 closes once that time is over, which a flag may make another one", async () => {
    const { child, ended, statusOf } = await start(["--log-format", "json", "--lame-duck", "50ms"], {
      lameDuckMs: FOR_EVER_MS,
    });
    const err = textOf(child);
    await until(async () => (await statusOf("/ready")) === 200);
    child.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(err()).toMatch(/"msg":"leaving"[\s\S]*"msg":"stopping"[\s\S]*"msg":"stopped"/);
  });

  it.each([
    ["SIGINT", []],
    ["SIGHUP", []],
    ["SIGTERM", ["--stdio", "--port"]],
    ["SIGTERM", ["--lame-duck", "0"]],
  ] as const)("RE-30 closes at once on %s with %j", async (signal, flags) => {
    const port = String(await freePort());
    const args = flags.at(-1) === "--port" ? [...flags, port] : [...flags];
    const { child, ended, url } = await start(["--log-format", "json", ...args], {
      lameDuckMs: FOR_EVER_MS,
    });
    const err = textOf(child);
    const ready = flags.at(-1) === "--port" ? `http://127.0.0.1:${port}/ready` : `${url}/ready`;
    await until(async () => (await fetch(ready)).status === 200);
    child.kill(signal);
    expect(await ended).toBe(0);
    expect(err()).not.toContain('"msg":"leaving"');
  });
});

describe("the log of waybill serve", () => {
  it.each(["json", "text"])(
    "RE-30 holds up no call, and not the end, while nobody reads it (%s)",
    async (format) => {
      const { child, ended, statusOf } = await start(["--log-format", format, "--lame-duck", "0"]);
      child.stderr.pause();
      await until(async () => (await statusOf("/ready")) === 200);
      for (let calls = 0; calls < 1_500; calls++) expect(await statusOf("/api/shop/hello", "POST")).toBe(200);
      child.kill("SIGTERM");
      const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
      expect(await exited).toBe(0);
      child.stderr.resume();
      await ended;
    },
  );

  it("RE-30 says nothing with --quiet but what went wrong", async () => {
    const { child, ended, statusOf } = await start(["--quiet", "--lame-duck", "0", "--log-format", "json"]);
    const err = textOf(child);
    await until(async () => (await statusOf("/ready")) === 200);
    expect(await statusOf("/api/shop/hello", "POST")).toBe(200);
    child.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(err()).toBe("");
  });
});
