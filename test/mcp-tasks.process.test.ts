import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { type CallerSide, OperationRegistry } from "../src/index.ts";
import { fromMcp, type McpSource } from "../src/mcp/index.ts";
import { rejection, until } from "./make-operation.ts";
import { ROOT } from "./run-node.ts";

const EVERYTHING = {
  command: process.execPath,
  args: [join(ROOT, "node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "stdio"],
};
const open: McpSource[] = [];
afterEach(async () => {
  for (const source of open.splice(0)) await source.close();
});

async function everything() {
  const source = await fromMcp(EVERYTHING, { namespace: "all", onWarning: () => {} });
  open.push(source);
  return { source, registry: new OperationRegistry([...source]) };
}

const RESEARCH = "all.simulate-research-query";

describe("the tool of server-everything that runs only as a task", () => {
  it("Mcp: is driven to its end, and tells how far it is", async () => {
    const { source, registry } = await everything();
    expect(source.notes).toEqual([]);
    const heard: unknown[] = [];
    const onProgress = (progress: unknown) => heard.push((progress as { readonly message: string }).message);
    const { data, meta } = await registry.execute(RESEARCH, { topic: "tea" }, { onProgress });
    expect(meta).toMatchObject({ isError: false });
    expect(JSON.stringify(data)).toContain("# Research Report: tea");
    expect(heard).toContain("Gathering sources...");
    expect(heard).toContain("Generating report...");
    expect(new Set(heard).size).toBe(heard.length);
  });

  it("Mcp: asks its caller in mid-flight, and goes on with the answer", async () => {
    const { registry } = await everything();
    const asked: string[] = [];
    const elicit: CallerSide["elicit"] = async ({ message }) => {
      asked.push(message);
      return { action: "accept", content: { interpretation: "snake" } };
    };
    const input = { topic: "python", ambiguous: true };
    const { data } = await registry.execute(RESEARCH, input, { caller: { elicit } });
    expect(asked).toEqual([expect.stringContaining('The research query "python" could have multiple')]);
    expect(JSON.stringify(data)).toContain("# Research Report: python (snake)");
  });

  it("Mcp: is cancelled when its caller leaves", async () => {
    const { source, registry } = await everything();
    const leaving = new AbortController();
    const heard: unknown[] = [];
    const options = { signal: leaving.signal, onProgress: (progress: unknown) => heard.push(progress) };
    const pending = rejection(registry.execute(RESEARCH, { topic: "tea" }, options));
    await until(() => heard.length > 0);
    leaving.abort();
    expect(await pending).toMatchObject({ code: "ABORTED" });
    expect((await source.call("echo", { message: "still there" })).data).toBeDefined();
  });
});

/** Servers that the first SDK brings along, with the variable that says where they listen, and calls of tools that run as tasks. */
const EXAMPLES = [
  ["simpleTaskInteractive", "PORT", "confirm_delete", { filename: "a.txt" }, "Deleted 'a.txt'"],
  ["simpleTaskInteractive", "PORT", "write_haiku", { topic: "frogs" }, "a frog leaps in"],
  ["simpleStreamableHttp", "MCP_PORT", "delay", { duration: 50 }, "Completed 50ms delay"],
] as const;

it.each(EXAMPLES)("Mcp: drives a task of %s, with %s: %s", async (server, variable, tool, input, answer) => {
  const port = await freePort();
  const script = `node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/${server}.js`;
  const env = { ...process.env, NODE_OPTIONS: "", [variable]: String(port) };
  const child = spawn(process.execPath, [join(ROOT, script)], { env, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const url = `http://localhost:${port}/mcp`;
  await untilListening(url);
  const source = await fromMcp({ url }, { namespace: "sdk", onWarning: () => {} });
  open.push(source);
  const caller: CallerSide = {
    elicit: async () => ({ action: "accept", content: { confirm: true } }),
    sample: async () => ({
      role: "assistant",
      model: "m",
      content: { type: "text", text: "a frog leaps in" },
    }),
  };
  const { data } = await new OperationRegistry([...source]).execute(`sdk.${tool}`, input, { caller });
  expect(JSON.stringify(data)).toContain(answer);
});

/** A port of this machine that was free a moment ago. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { readonly port: number };
      probe.close(() => resolve(port));
    });
  });
}

async function untilListening(url: string): Promise<void> {
  const end = Date.now() + 60_000;
  while (
    !(await fetch(url).then(
      () => true,
      () => false,
    ))
  ) {
    if (Date.now() > end) throw new Error("It never listened.");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
