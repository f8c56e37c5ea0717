import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONFIGS } from "../bad-config-cases.ts";
import { type BadInput, COMMAND_LINES, INPUTS, SECRET } from "../bad-input-cases.ts";
import { CLI, openFolder, waybill } from "../installed-command.ts";
import { HARDENED, HARDENED_FLAGS, runCommand, withoutConfigLine } from "../run-node.ts";

/** A project whose operations do what is asked, refuse, break, sleep, and say a lot. */
const MODULE = `
import { defineOperation, toolError, Type } from "waybill";
const common = { namespace: "shop", version: "1.0.0", outputSchema: Type.Unknown(), description: "Does it.", type: "query" };
export const order = defineOperation({
  ...common, name: "order",
  inputSchema: Type.Object(
    { id: Type.Integer(), tags: Type.Optional(Type.Array(Type.String())) },
    { additionalProperties: false },
  ),
  handler: (input) => input,
});
export const refuse = defineOperation({
  ...common, name: "refuse", inputSchema: Type.Object({}),
  handler: () => toolError({ left: 0 }, { code: "OUT_OF_STOCK", message: "There is none left." }),
});
export const breaks = defineOperation({
  ...common, name: "breaks", inputSchema: Type.Object({}),
  handler: () => { throw new Error("secret ${SECRET} inside"); },
});
export const sleeps = defineOperation({
  ...common, name: "sleeps", inputSchema: Type.Object({}),
  handler: (_, { signal }) => new Promise((resolve) => signal.addEventListener("abort", resolve)),
});
export const big = defineOperation({
  ...common, name: "big", inputSchema: Type.Object({}),
  handler: () => "x".repeat(4_000_000),
});
export const many = defineOperation({
  ...common, name: "many", type: "subscription", inputSchema: Type.Object({}),
  async *handler(_, { signal }) { for (let n = 0; !signal.aborted; n++) { yield { n, text: "y".repeat(1_000) }; await null; } },
});
`;

const folder = openFolder();
const env = { WAYBILL_STATE_DIR: folder.state, HOME: folder.state };

/** A folder with the project in it, and what a case adds. */
function makeProject(files: BadInput["files"] = {}): string {
  const path = mkdtempSync(join(folder.path, "case-"));
  writeFileSync(join(path, "shop.mjs"), MODULE);
  writeFileSync(join(path, "waybill.config.json"), JSON.stringify({ operations: "shop.mjs" }));
  for (const [name, text] of Object.entries(files)) {
    if (text === null) mkdirSync(join(path, name));
    else writeFileSync(join(path, name), text);
  }
  return path;
}

/** What a terminal acts on. */
const ACTED_ON =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/** One message in plain words: no stack, no secret, nothing that a terminal acts on. */
function expectOneMessage(stderr: string, lines = 3): void {
  expect(stderr).not.toMatch(/^ {4}at |node:internal|unexpected failure/m);
  expect(stderr).not.toContain(SECRET);
  expect(stderr).not.toMatch(ACTED_ON);
  expect(stderr.match(/^waybill: /gm), stderr).toHaveLength(1);
  expect(stderr.endsWith("\n")).toBe(true);
  expect(stderr.trimEnd().split("\n").length, stderr).toBeLessThanOrEqual(lines);
  expect(stderr.length).toBeLessThan(4_000);
}

async function expectMistake({
  args,
  says,
  code = 2,
  files,
  stdin = "",
  lines,
  stdout = /^$/,
  ...more
}: BadInput) {
  const cwd = makeProject(files);
  const ran = await waybill(args, { cwd, stdin, env: { ...env, ...more.env } });
  for (const part of says) expect(ran.stderr).toMatch(part instanceof RegExp ? part : literal(part));
  expect(ran.code, ran.stderr).toBe(code);
  expect(ran.stdout).toMatch(stdout);
  expectOneMessage(ran.stderr, lines);
}

function literal(text: string): RegExp {
  return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
}

afterAll(() => folder.remove());

describe.concurrent("a wrong command line", () => {
  it.each(COMMAND_LINES.map((bad) => [bad.title, bad] as const))("%s", (_, bad) => expectMistake(bad));
});

describe.concurrent("a wrong input", () => {
  it.each(INPUTS.map((bad) => [bad.title, bad] as const))("%s", (_, bad) => expectMistake(bad));
});

describe.concurrent("a wrong config", () => {
  it.each(CONFIGS.map((bad) => [bad.title, bad] as const))("%s", (_, bad) => expectMistake(bad));

  // Root may read everything.
  it.runIf(process.getuid?.() !== 0)("a config that may not be read", async () => {
    const cwd = makeProject({ "a.json": "{}" });
    chmodSync(join(cwd, "a.json"), 0);
    const ran = await waybill(["list", "-c", "a.json"], { cwd, env });
    expect([ran.code, ran.stdout]).toEqual([2, ""]);
    expectOneMessage(ran.stderr);
  });

  it("changes nothing in the folder", async () => {
    const cwd = makeProject({ "a.json": '{"serv":{}}' });
    const before = readdirSync(cwd).sort();
    for (const args of [["serve"], ["types"], ["lock", "--approve"]]) {
      const ran = await waybill([...args, "-c", "a.json"], { cwd, env });
      expect(ran.code, ran.stderr).toBe(2);
      expectOneMessage(ran.stderr);
    }
    expect(readdirSync(cwd).sort()).toEqual(before);
  });
});

describe.concurrent("what cannot be reached", () => {
  let server: Server;
  let url: string;

  beforeAll(async () => {
    server = createServer((request, response) => {
      if (request.url?.startsWith("/html")) response.end("<html><body>Hello</body></html>");
      else if (request.url?.startsWith("/closed")) response.destroy();
      else response.writeHead(401, { "www-authenticate": "Bearer" }).end("no");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  });

  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const fails = async (
    args: readonly string[],
    says: readonly RegExp[],
    code = 3,
    more: Record<string, string> = {},
  ) => {
    const ran = await waybill(args, { cwd: makeProject(), env: { ...env, ...more } });
    for (const part of says) expect(ran.stderr).toMatch(part);
    expect([ran.code, ran.stdout], ran.stderr).toEqual([code, ""]);
    expectOneMessage(ran.stderr);
  };

  it("an MCP server whose command is missing", () =>
    fails(["list", "--mcp", "no-such-command-here --flag"], [/no-such-command-here/]));
  it("an MCP server that ends at once", () =>
    fails(["list", "--mcp", `${process.execPath} -e process.exit(3)`], [/exit|end/i]));
  it("an MCP server that says no JSON", () =>
    fails(["call", "x", "--timeout", "5s", "--mcp", `${process.execPath} -e console.log("hi")`], [/./]));
  it("an MCP server at a port where nobody listens", () =>
    fails(["list", "--mcp", "http://127.0.0.1:1/mcp"], [/127\.0\.0\.1/]));
  it("an MCP server that wants a token", () =>
    fails(["list", "--mcp", `${url}/mcp`], [/401|token|authenti/i]));
  it("an MCP server that does not like the token", () =>
    fails(["list", "--mcp", `${url}/mcp`, "--token-env", "MINE"], [/401|token|authenti/i], 3, {
      MINE: SECRET,
    }));
  it("a gateway that is not there", () => fails(["list", "--url", "http://127.0.0.1:1"], [/127\.0\.0\.1:1/]));
  it("a gateway that does not like the token", () =>
    fails(["list", "--url", url], [/401|token|authenti/i], 3, { WAYBILL_TOKEN: SECRET }));
  it("a document that is missing", () => fails(["list", "--openapi", "none.yaml"], [/none\.yaml/]));
  it("a document that is a page", () => fails(["list", "--openapi", `${url}/html`], [/./]));
  it("a document whose server hangs up", () => fails(["list", "--openapi", `${url}/closed`], [/./]));
  it("a document that is no document", () => fails(["list", "--openapi", "shop.mjs"], [/shop\.mjs/]));

  it("a port that is in use", async () => {
    const port = new URL(url).port;
    await fails(["serve", "--port", port], [literal(`Port ${port} is in use`), /--port/], 2);
  });

  it("a host that is no address of this machine", async () => {
    const cwd = makeProject({
      "a.json": JSON.stringify({
        serve: { host: "203.0.113.7", auth: { tokens: { me: { token: SECRET } } } },
      }),
    });
    const ran = await waybill(["serve", "--port", "0", "-c", "a.json"], { cwd, env });
    expect([ran.code, ran.stdout], ran.stderr).toEqual([2, ""]);
    expect(ran.stderr).toContain("no address of this machine");
    expect(ran.stderr).not.toMatch(/^ {4}at /m);
    expect(ran.stderr).not.toContain(SECRET);
  });
});

describe.concurrent("a reader that leaves", () => {
  const words = [process.execPath, ...(HARDENED ? HARDENED_FLAGS : []), CLI];
  const pipe = async (args: string, tail: string) => {
    const line = `"$@" ${args} | ${tail}; echo "codes: \${PIPESTATUS[*]}" >&2`;
    const ran = await runCommand("bash", ["-c", line, "bash", ...words], { cwd: makeProject(), env });
    return { ...ran, stderr: withoutConfigLine(ran.stderr) };
  };

  it.each([
    ["a list", "list", "head -1"],
    ["a list as JSON", "list --json", "head -c 10"],
    ["a big result", "call shop.big", "head -c 10"],
    ["a stream without end", "call shop.many", "head -1"],
    ["help", "--help", "head -1"],
    ["the help of a command", "call --help", "head -1"],
    ["a completion script", "completion bash", "head -1"],
  ])("of %s is a normal end", async (_, args, tail) => {
    const { stdout, stderr } = await pipe(args, tail);
    expect(stdout.length).toBeGreaterThan(0);
    expect(stderr).toBe("codes: 0 0\n");
  });

  it("at once is a normal end too", async () => {
    const { stderr } = await pipe("call shop.big", "true");
    expect(stderr).toBe("codes: 0 0\n");
  });

  it("of messages does not matter", async () => {
    const cwd = makeProject();
    const ran = await runCommand(
      "bash",
      ["-c", '"$@" call shop.nothing 2>&1 >/dev/null | true; echo "${PIPESTATUS[0]}"', "bash", ...words],
      { cwd, env },
    );
    expect(ran.stdout.trim()).toMatch(/^[13]$/);
  });
});

describe.concurrent("streams that are closed", () => {
  const words = [process.execPath, ...(HARDENED ? HARDENED_FLAGS : []), CLI];
  const shell = async (line: string) => {
    const ran = await runCommand("bash", ["-c", line, "bash", ...words], { cwd: makeProject(), env });
    return { ...ran, stderr: withoutConfigLine(ran.stderr) };
  };

  it("stdin: a call that needs none works, one that does says so", async () => {
    const works = await shell('"$@" call shop.order id=1 <&-');
    expect(works).toEqual({ code: 0, stdout: '{"id":1}\n', stderr: "" });
    const needs = await shell('"$@" call shop.order - <&-');
    expect([needs.code, needs.stdout]).toEqual([2, ""]);
    expectOneMessage(needs.stderr);
  });

  it("stdout: nothing crashes", async () => {
    const { stderr } = await shell('"$@" call shop.order id=1 >&-');
    expect(stderr).not.toMatch(/^ {4}at /m);
  });

  it("a full device is told", async () => {
    const ran = await shell('"$@" call shop.order id=1 > /dev/full');
    expect(ran.code).toBe(1);
    expectOneMessage(ran.stderr);
    expect(ran.stderr).toContain("ENOSPC");
  });

  it("stdin that stays open does not keep a call waiting", async () => {
    const child = spawn(words[0] as string, [...words.slice(1), "call", "shop.order"], {
      cwd: makeProject(),
      env: { ...process.env, ...env },
      stdio: ["pipe", "ignore", "pipe"],
    });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    const code = await new Promise((resolve) => child.once("close", resolve));
    expect([code, stderr]).toEqual([3, expect.stringContaining("id is missing")]);
  });
});

describe.concurrent("options of Node", () => {
  it("that are wrong are Node's to tell, and end nothing else", async () => {
    const ran = await waybill(["--version"], { env: { ...env, NODE_OPTIONS: "--no-such-option" } });
    expect([ran.code, ran.stdout]).toEqual([9, ""]);
    expect(ran.stderr).not.toMatch(/^ {4}at /m);
  });
});
