import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { ROOT, runNode } from "./run-node.ts";

const ENTRY = pathToFileURL(join(ROOT, "dist/index.js")).href;
const DIST = pathToFileURL(join(ROOT, "dist/")).href;

const NEW_BUILTINS = `
  const empty = new URL(process.argv[1]);
  await import(empty);
  const before = new Set(process.moduleLoadList);
  await import(process.argv[2]);
  console.log(JSON.stringify(process.moduleLoadList.filter((name) => !before.has(name))));`;

const LOADED_FILES = `
  import { register } from "node:module";
  import { MessageChannel } from "node:worker_threads";
  const { port1, port2 } = new MessageChannel();
  const hook = \`let port;
    export function initialize(given) { port = given; }
    export async function load(url, context, next) { port.postMessage(url); return next(url, context); }\`;
  register("data:text/javascript," + encodeURIComponent(hook), { data: port2, transferList: [port2] });
  const loaded = [];
  port1.on("message", (url) => loaded.push(url));
  await import(process.argv[1]);
  // The port keeps the order: once this one is there, so is all that came before it.
  const last = "data:text/javascript,0";
  await import(last);
  while (!loaded.includes(last)) await new Promise((resolve) => setTimeout(resolve, 5));
  loaded.splice(loaded.indexOf(last), 1);
  console.log(JSON.stringify(loaded));
  port1.close();`;

const LOAD_TIME = `
  const before = process.cpuUsage();
  await import(process.argv[1]);
  const { user, system } = process.cpuUsage(before);
  console.log(JSON.stringify([(user + system) / 1000]));`;

async function evaluate<T = string>(script: string, ...args: string[]): Promise<T[]> {
  const child = await runNode(["--input-type=module", "--eval", script, ...args]);
  expect(child).toMatchObject({ code: 0, stderr: "" });
  return JSON.parse(child.stdout);
}

describe("importing the root", () => {
  const empty = join(mkdtempSync(join(tmpdir(), "waybill-load-")), "empty.mjs");
  writeFileSync(empty, "");

  it("RE-5 loads no Node module, and so neither an MCP SDK nor HTTP", async () => {
    expect(await evaluate(NEW_BUILTINS, pathToFileURL(empty).href, ENTRY)).toEqual([]);
  });

  it("RE-5 reads no file outside dist", async () => {
    const loaded = await evaluate(LOADED_FILES, ENTRY);
    expect(loaded).toContain(ENTRY);
    expect(loaded.filter((url) => !url.startsWith(DIST))).toEqual([]);
  });

  // Compared with a package that many programs load: how fast the machine is at the moment makes no difference.
  it("costs less than importing zod", async () => {
    const zod = pathToFileURL(createRequire(import.meta.url).resolve("zod")).href;
    const least = { root: Number.POSITIVE_INFINITY, zod: Number.POSITIVE_INFINITY };
    for (let run = 0; run < 15 && (run < 3 || least.root >= least.zod); run++) {
      least.zod = Math.min(least.zod, ...(await evaluate<number>(LOAD_TIME, zod)));
      least.root = Math.min(least.root, ...(await evaluate<number>(LOAD_TIME, ENTRY)));
    }
    expect(least.root).toBeLessThan(least.zod);
  });
});

describe("the command", () => {
  it("loads nothing from outside dist to call through a gateway that runs", async () => {
    const folder = mkdtempSync(join(tmpdir(), "waybill-load-"));
    const args = [fileURLToPath(new URL("cli.js", DIST)), "call", "any.thing", "--url", "http://127.0.0.1:9"];
    const { stderr } = await runNode(args, { env: { NODE_V8_COVERAGE: folder, HOME: folder } });
    expect(stderr).toContain("127.0.0.1:9");
    const loaded = readdirSync(folder)
      .filter((file) => file.endsWith(".json"))
      .flatMap((file) => JSON.parse(readFileSync(join(folder, file), "utf8")).result as { url: string }[])
      .filter(({ url }) => url.startsWith("file:"));
    rmSync(folder, { recursive: true, force: true });
    expect(loaded.length).toBeGreaterThan(10);
    expect(loaded.filter(({ url }) => !url.startsWith(DIST))).toEqual([]);
  });
});
