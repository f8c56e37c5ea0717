import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { text as readAll } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ROOT } from "../../../test/run-node.ts";
import { loadConfig } from "../../gateway/config/read-config.ts";
import { addInitCommand } from "../commands/gateway-commands.ts";
import { createProgram } from "../create-program.ts";
import type { Io } from "../io.ts";
import { runProgram } from "../run-command.ts";

const SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
const OTHER_SECRET = "ghp_another_one_9876543210_zyxwvutsrqpo";

let cwd: string;
let home: string;

beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-init-"));
  cwd = join(folder, "project");
  home = join(folder, "home");
  await mkdir(cwd);
  await mkdir(home);
});

afterEach(async () => {
  await rm(dirname(cwd), { recursive: true, force: true });
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `waybill init` in the folder of the test, without a terminal. */
async function init(...args: string[]): Promise<Ended> {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const io = { stdin, stdout, stderr, env: { HOME: home }, cwd } as unknown as Io;
  const code = await runProgram(createProgram(io, [addInitCommand]), io, ["init", ...args]);
  stdout.end();
  stderr.end();
  return { code, stdout: await readAll(stdout), stderr: await readAll(stderr) };
}

async function put(path: string, content: unknown): Promise<string> {
  const file = join(cwd, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

async function take(path: string): Promise<string> {
  return await readFile(join(cwd, path), "utf8");
}

function serverWith(token: string) {
  return { mcpServers: { github: { command: "npx", args: ["github"], env: { GITHUB_TOKEN: token } } } };
}

/** Puts the package where the config looks for it. */
async function installPackage(): Promise<void> {
  const source = JSON.stringify(join(ROOT, "src/gateway/config/gateway-config.ts"));
  await put("node_modules/waybill/package.json", {
    name: "waybill",
    exports: { "./gateway": "./gateway.ts" },
  });
  await put("node_modules/waybill/gateway.ts", `export { defineConfig } from ${source};`);
}

describe("waybill init", () => {
  it("says what to give where nobody can be asked, and writes nothing", async () => {
    const { code, stdout, stderr } = await init();
    expect([code, stdout, await readdir(cwd)]).toEqual([2, "", []]);
    for (const flag of ["--yes", "--from", "--openapi", "--mcp"]) expect(stderr).toContain(flag);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  it("begins with a sample where there is nothing to take over", async () => {
    const { code, stdout, stderr } = await init("--yes");
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(await take("waybill.config.json"))).toEqual({
      operations: "operations/*.{ts,mts,js,mjs}",
    });
    expect(await readdir(join(cwd, "operations"))).toEqual(["hello.mjs"]);
    expect(stdout).toContain("waybill.config.json");
    expect(stdout).toMatch(/Next: waybill call hello\.greet name=Ada, or waybill serve\n$/);
  });

  it("takes over what the project has, and not what is the person's", async () => {
    await put(".mcp.json", { mcpServers: { files: { command: "files" } } });
    await put("../home/.cursor/mcp.json", { mcpServers: { private: { command: "private" } } });
    const { code, stdout } = await init("--yes");
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^Read {4}\.mcp\.json \(files\)\nWrote {3}waybill\.config\.json\n/),
    ]);
    const { mcpServers, operations } = JSON.parse(await take("waybill.config.json"));
    expect(Object.keys(mcpServers)).toEqual(["files"]);
    expect(operations).toBeUndefined();
  });

  it.each(["json", "yaml", "ts"])("writes %s that can be read back", async (format) => {
    await installPackage();
    await put("api.json", { openapi: "3.1.0", info: { title: "A", version: "1" }, paths: {} });
    const args = [
      "--openapi",
      "shop=api.json",
      "--mcp",
      "files=npx -y 'a b'",
      "--mcp",
      "far=https://mcp.example/mcp",
    ];
    expect((await init(...args, "--sample", "--port", "4200", "--format", format)).code).toBe(0);
    const { config, warnings } = await loadConfig(join(cwd, `waybill.config.${format}`), { env: {} });
    expect(warnings).toEqual([]);
    expect(config).toMatchObject({
      openapi: { shop: { document: "api.json" } },
      mcpServers: {
        files: { command: "npx", args: ["-y", "a b"] },
        far: { url: "https://mcp.example/mcp" },
      },
      serve: { port: 4200 },
    });
    expect(await readdir(join(cwd, "operations"))).toEqual([format === "ts" ? "hello.ts" : "hello.mjs"]);
  });

  it("says of a server at an address without credentials how a person logs in where it wants that", async () => {
    const { stderr } = await init("--mcp", "far=https://mcp.example/mcp", "--mcp", "near=npx near");
    expect(stderr).toMatch(
      /^far: has no credentials\. If it wants a person to log in, run: waybill login far$/m,
    );
    expect(stderr).not.toContain("near:");
  });

  it("turns the inspector on where that is asked for, and says nothing of it otherwise", async () => {
    await init("--sample", "--inspector", "--port", "4200");
    expect(JSON.parse(await take("waybill.config.json")).serve).toEqual({ port: 4200, inspect: true });
    await init("--sample", "--force");
    expect(JSON.parse(await take("waybill.config.json")).serve).toBeUndefined();
  });

  it("names the schema where the package is installed", async () => {
    await put("node_modules/waybill/dist/waybill.schema.json", {});
    await init("--sample");
    const { $schema } = JSON.parse(await take("waybill.config.json"));
    expect($schema).toBe("./node_modules/waybill/dist/waybill.schema.json");
  });

  it("writes a sample that works as it is", async () => {
    const text = (await init("--sample", "--format", "ts").then(() => take("operations/hello.ts"))).replace(
      'from "waybill"',
      `from ${JSON.stringify(join(ROOT, "src/index.ts"))}`,
    );
    const { greet } = await import(await put("operations/tried.ts", text));
    const { OperationRegistry } = await import("../../index.ts");
    expect((await new OperationRegistry([greet]).execute("hello.greet", { name: "Ada" })).data).toEqual({
      text: "Hello, Ada.",
    });
  });
});

describe("what waybill init takes over", () => {
  it("is copied: the file of the host stays as it is", async () => {
    const before = `// mine\n${JSON.stringify(serverWith(SECRET))}`;
    const file = await put("host/mcp.json", before);
    expect((await init("--from", file)).code).toBe(0);
    expect(await readFile(file, "utf8")).toBe(before);
  });

  it("has its secrets in a file of their own, and nowhere else", async () => {
    const { code, stdout, stderr } = await init("--from", await put("host/mcp.json", serverWith(SECRET)));
    expect(code).toBe(0);
    expect(await take(".env.waybill")).toContain(SECRET);
    if (process.platform !== "win32")
      expect((await stat(join(cwd, ".env.waybill"))).mode & 0o777).toBe(0o600);
    const written = await take("waybill.config.json");
    expect(stdout + stderr + written).not.toContain(SECRET);
    expect(JSON.parse(written)).toMatchObject({ envFile: ".env.waybill" });
    const { config } = await loadConfig(join(cwd, "waybill.config.json"), { env: {} });
    expect(config.mcpServers?.["github"]?.env).toEqual({ GITHUB_TOKEN: SECRET });
    await expect(stat(join(cwd, ".gitignore"))).rejects.toThrow("ENOENT");
  });

  it("keeps two secrets of one name apart, and those that are there", async () => {
    await put(".env.waybill", "GITHUB_TOKEN=mine # kept");
    const one = await put("one.json", serverWith(SECRET));
    const two = await put("two.json", serverWith(OTHER_SECRET));
    expect((await init("--from", one, "--from", two)).code).toBe(0);
    expect((await take(".env.waybill")).startsWith("GITHUB_TOKEN=mine # kept\n")).toBe(true);
    const { config } = await loadConfig(join(cwd, "waybill.config.json"), { env: {} });
    const tokens = Object.values(config.mcpServers ?? {}).map(({ env }) => env?.["GITHUB_TOKEN"]);
    expect(tokens).toEqual([SECRET, OTHER_SECRET]);
    if (process.platform !== "win32")
      expect((await stat(join(cwd, ".env.waybill"))).mode & 0o777).toBe(0o600);
  });

  it.each([
    ["by its config", ["cli.js", "serve", "--stdio", "--config", "<cwd>/waybill.config.json"]],
    ["by its config in one word", ["cli.js", "serve", "--stdio", "--config=<cwd>/waybill.config.ts"]],
    ["by where it starts", ["/srv/node_modules/waybill/dist/cli.js", "serve", "--stdio"]],
  ])("is not the gateway of this folder, which would start itself: %s", async (_, words) => {
    const args = words.map((word) => word.replace("<cwd>", cwd));
    const waybill = { command: "/usr/bin/node", args };
    const other = {
      command: "/usr/bin/node",
      args: ["cli.js", "serve", "--stdio", "--config", "/srv/other/waybill.config.json"],
    };
    const file = await put("host/mcp.json", JSON.stringify({ mcpServers: { waybill, other } }));
    const { code, stderr } = await init("--from", file);
    expect([code, stderr]).toEqual([0, "waybill: starts the gateway of this folder, and was left out.\n"]);
    expect(JSON.parse(await take("waybill.config.json"))).toMatchObject({ mcpServers: { other } });
    expect(await take("waybill.config.json")).not.toContain('"waybill"');
    const alone = await put("host/alone.json", JSON.stringify({ mcpServers: { waybill } }));
    const refused = await init("--from", alone, "--force");
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining("has no MCP servers besides this gateway."),
    ]);
  });

  it("begins with a sample where a project has this gateway and nothing else", async () => {
    const waybill = { command: "npx", args: ["--no", "waybill", "serve", "--stdio"] };
    await put(".cursor/mcp.json", JSON.stringify({ mcpServers: { waybill } }));
    expect((await init("--yes")).stdout).toContain("operations/hello.mjs");
  });

  it("is said to want a person with a browser where it does, and what to do", async () => {
    const linear = { command: "npx", args: ["-y", "mcp-remote@latest", "https://mcp.example/sse?key=abc"] };
    const keyed = { ...linear, args: [...linear.args, "--header", "Authorization: Bearer ${TOKEN}"] };
    const file = await put("host/mcp.json", JSON.stringify({ mcpServers: { linear, keyed } }));
    const { code, stderr } = await init("--from", file);
    expect(code).toBe(0);
    expect(stderr).toContain("linear: mcp-remote logs a person in with a browser");
    expect(stderr).toContain(
      'Write "url": "https://mcp.example/sse" in place of command and args, and run: ',
    );
    expect(stderr).toMatch(/ login linear\n/);
    expect(stderr).not.toContain("keyed");
  });

  it("is kept out of the repository, once", async () => {
    await put(".git/HEAD", "ref: refs/heads/main\n");
    await put(".gitignore", "node_modules");
    const file = await put("host/mcp.json", serverWith(SECRET));
    await init("--from", file);
    expect(await take(".gitignore")).toBe("node_modules\n.env.waybill\n");
    await rm(join(cwd, ".env.waybill"));
    await init("--from", file, "--force");
    expect(await take(".gitignore")).toBe("node_modules\n.env.waybill\n");
  });

  it("is shown by --dry-run without a secret, and nothing is written", async () => {
    const file = await put("host/mcp.json", serverWith(SECRET));
    const { code, stdout, stderr } = await init("--from", file, "--dry-run");
    expect(code).toBe(0);
    expect(stdout).toContain("# waybill.config.json");
    expect(stdout).toContain("GITHUB_TOKEN=***");
    const json = await init("--from", file, "--dry-run", "--json");
    expect(JSON.parse(json.stdout)).toMatchObject({ dryRun: true, next: ["waybill list", "waybill serve"] });
    expect(stdout + stderr + json.stdout + json.stderr).not.toContain(SECRET);
    expect(await readdir(cwd)).toEqual(["host"]);
  });

  it.each([
    ["nowhere.json", undefined, "there is no file nowhere.json"],
    ["broken.json", "{ not json", "broken.json cannot be taken over"],
    ["empty.json", '{"mcpServers":{}}', "empty.json has no MCP servers"],
  ])("is refused in one line when it is no file of a host: %s", async (path, content, message) => {
    if (content !== undefined) await put(path, content);
    const { code, stdout, stderr } = await init("--from", path);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    await expect(stat(join(cwd, "waybill.config.json"))).rejects.toThrow("ENOENT");
  });
});

describe("a config that is there", () => {
  it.each(["waybill.config.json", "waybill.config.yml", "waybill.config.mjs"])(
    "is never overwritten: %s",
    async (name) => {
      await put(name, "mine");
      const { code, stderr } = await init("--yes");
      expect(code).toBe(2);
      expect(stderr).toBe(`waybill: ${name} is there already; give --force to replace it.\n`);
      expect([await take(name), await readdir(cwd)]).toEqual(["mine", [name]]);
    },
  );

  it("is kept beside the new one with --force, as often as that is asked for", async () => {
    await put("waybill.config.yaml", "first");
    await put("waybill.config.yaml.old", "older");
    const { code, stdout } = await init("--sample", "--force");
    expect(code).toBe(0);
    expect(stdout).toContain("waybill.config.yaml as waybill.config.yaml.old-2");
    expect(await take("waybill.config.yaml.old-2")).toBe("first");
    expect(await take("waybill.config.yaml.old")).toBe("older");
    expect((await readdir(cwd)).filter((name) => /config\.\w+$/.test(name))).toEqual(["waybill.config.json"]);
  });

  it("does not lose operations that are there", async () => {
    await put("operations/hello.mjs", "mine");
    const { code, stderr } = await init("--sample");
    expect([code, await take("operations/hello.mjs")]).toEqual([0, "mine"]);
    expect(stderr).toContain("operations/hello.mjs is there already");
  });
});

describe("mistakes of waybill init", () => {
  it.each([
    [["--format", "toml"], "toml"],
    [["--openapi", "shop"], "--openapi takes a name"],
    [["--openapi", "shop=none.yaml"], "There is no file none.yaml"],
    [["--mcp", "files=npx 'a"], "not closed"],
    [["--mcp", "a=b", "--mcp", "a=c"], 'the name "a" twice'],
    [["--sample", "--port", "65536"], "--port takes a whole number"],
    [["--form", "json"], "--form"],
  ])("are told in one line: %j", async (args, message) => {
    const { code, stdout, stderr } = await init(...args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(await readdir(cwd)).toEqual([]);
  });

  it("are told when a file cannot be written", async () => {
    await put("operations", "a file where the folder should be");
    const { code, stderr } = await init("--sample");
    expect(code).toBe(2);
    expect(stderr).toMatch(/^waybill: operations\/hello\.mjs cannot be written \(E[A-Z]+\)\.\n$/);
    await expect(stat(join(cwd, "waybill.config.json"))).rejects.toThrow("ENOENT");
  });

  it("do not break a link to the env file", async () => {
    await put("shared.env", "A=1\n");
    await symlink(join(cwd, "shared.env"), join(cwd, ".env.waybill"));
    expect((await init("--from", await put("mcp.json", serverWith(SECRET)))).code).toBe(0);
    expect(await take("shared.env")).toContain(SECRET);
  });
});
