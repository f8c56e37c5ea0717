import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ImportedServers, knownHostFiles, readHostFile } from "./import-hosts.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-hosts-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function read(name: string, content: unknown): Promise<ImportedServers> {
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  return readHostFile(path, { cwd: folder });
}

describe("knownHostFiles", () => {
  it.each([
    ["linux", "/home/me/.config/Claude/claude_desktop_config.json", "/home/me/.config/Code/User/mcp.json"],
    [
      "darwin",
      "/home/me/Library/Application Support/Claude/claude_desktop_config.json",
      "/home/me/.config/zed/settings.json",
    ],
    ["win32", "\\home\\me\\AppData\\Roaming\\Claude\\claude_desktop_config.json", "\\w\\.vscode\\mcp.json"],
  ] as const)("lists the files of every host on %s", (platform, ...paths) => {
    const files = knownHostFiles({ home: "/home/me", env: {}, platform, cwd: "/w" });
    expect(files.map(({ path }) => path)).toEqual(expect.arrayContaining([...paths]));
    expect(new Set(files.map(({ host }) => host)).size).toBe(15);
    expect(new Set(files.map(({ path }) => path)).size).toBe(files.length);
  });

  it("follows where the environment says that settings are", () => {
    const env = { APPDATA: "D:\\Data", CODEX_HOME: "D:\\Codex" };
    const paths = knownHostFiles({ home: "C:\\me", env, platform: "win32", cwd: "C:\\w" }).map(
      ({ path }) => path,
    );
    expect(paths).toContain("D:\\Data\\Code\\User\\settings.json");
    expect(paths).toContain("D:\\Codex\\config.toml");
  });
});

describe("readHostFile", () => {
  const server = { command: "npx", args: ["-y", "server"] };

  it.each([
    ["claude_desktop_config.json", "Claude Desktop", { mcpServers: { a: server } }],
    [".mcp.json", "Claude Code", { mcpServers: { a: { type: "stdio", ...server } } }],
    [".cursor/mcp.json", "Cursor", { mcpServers: { a: server } }],
    [".vscode/mcp.json", "VS Code", { servers: { a: server }, inputs: [] }],
    ["Code/User/settings.json", "VS Code", { mcp: { servers: { a: server } }, "editor.tabSize": 2 }],
    ["Code/User/settings.json", "VS Code", { "mcp.servers": { a: server } }],
    ["windsurf/mcp_config.json", "Windsurf", { mcpServers: { a: server } }],
    ["zed/settings.json", "Zed", { context_servers: { a: { source: "custom", ...server } } }],
    [
      "zed/settings.json",
      "Zed",
      { context_servers: { a: { command: { path: "npx", args: ["-y", "server"] } } } },
    ],
    [".gemini/settings.json", "Gemini CLI", { mcpServers: { a: server } }],
    [".codex/config.toml", "Codex", '[mcp_servers.a]\ncommand = "npx"\nargs = ["-y", "server"]\n'],
    [
      "goose/config.yaml",
      "Goose",
      "extensions:\n  a:\n    type: stdio\n    cmd: npx\n    args: [-y, server]\n    enabled: true\n",
    ],
    [
      ".continue/config.yaml",
      "Continue",
      "mcpServers:\n  - name: a\n    command: npx\n    args: [-y, server]\n",
    ],
    [
      "opencode.jsonc",
      "opencode",
      '{ // comment\n "mcp": { "a": { "type": "local", "command": ["npx", "-y", "server"], }, } }',
    ],
    ["some.json", "another host", { mcpServers: { a: server } }],
  ])("reads %s of %s", async (name, host, content) => {
    const found = await read(name, content);
    expect(found.host).toBe(host);
    const { type: _, ...taken } = found.servers["a"] ?? {};
    expect(taken).toEqual(server);
    expect(found.notes).toEqual([]);
  });

  it("takes servers of the folder at hand from Claude Code, over those of the person", async () => {
    const projects = {
      [folder]: { mcpServers: { b: { url: "https://b" } } },
      "/other": { mcpServers: { c: server } },
    };
    const found = await read(".claude.json", { mcpServers: { a: server, b: server }, projects });
    expect(found.servers).toEqual({ a: server, b: { url: "https://b" } });
  });

  it("takes addresses in every spelling, what is off, folders and times", async () => {
    const found = await read(
      "x.toml",
      [
        '[mcp_servers.a]\nurl = "https://a"\nbearer_token_env_var = "A_TOKEN"\nstartup_timeout_sec = 5\n',
        '[mcp_servers.a.env_http_headers]\n"X-Key" = "KEY"\n[mcp_servers.b]\ncommand = "b"\nenabled = false\ncwd = "x"\n',
      ].join(""),
    );
    expect(found.servers).toEqual({
      a: { url: "https://a", bearer: "${A_TOKEN}", connectTimeoutMs: 5_000, headers: { "X-Key": "${KEY}" } },
      b: { command: "b", disabled: true, cwd: "x" },
    });
    const other = {
      a: { serverUrl: "https://a" },
      b: { httpUrl: "https://b", disabled: true },
      c: { type: "sse", url: "https://c" },
    };
    expect((await read("y.json", { mcpServers: other })).servers).toEqual({
      a: { url: "https://a" },
      b: { url: "https://b", disabled: true },
      c: { type: "sse", url: "https://c" },
    });
  });

  it("moves secrets out, under names of their own, and leaves the rest", async () => {
    const found = await read("x.json", {
      mcpServers: {
        git: {
          command: "x",
          env: { GITHUB_TOKEN: "one", NODE_ENV: "production" },
          args: ["--api-key=key-1", "--name", "n"],
        },
        hub: {
          command: "x",
          env: { GITHUB_TOKEN: "ghp_two2two2", KEPT_TOKEN: "${KEPT}" },
          args: ["--token", "tok-9"],
        },
        web: {
          url: "https://h/mcp?api_key=abc123&x=1",
          headers: { Authorization: "Bearer xyz-1", Accept: "text/plain" },
        },
        same: { command: "x", env: { GITHUB_TOKEN: "ghp_two2two2" } },
      },
    });
    expect(found.servers["hub"]).toEqual({
      command: "x",
      args: ["--token", "${HUB_TOKEN}"],
      env: { GITHUB_TOKEN: "${GITHUB_TOKEN}", KEPT_TOKEN: "${KEPT}" },
    });
    // Three characters cannot be told from other text.
    expect(found.servers["git"]?.env).toEqual({ GITHUB_TOKEN: "one", NODE_ENV: "production" });
    expect(found.servers["git"]?.args).toEqual(["--api-key=${GIT_API_KEY}", "--name", "n"]);
    expect(found.servers["web"]).toEqual({
      url: "https://h/mcp?api_key=${WEB_API_KEY}&x=1",
      headers: { Authorization: "Bearer ${WEB_AUTHORIZATION}", Accept: "text/plain" },
    });
    expect(found.secrets).toEqual({
      GIT_API_KEY: "key-1",
      GITHUB_TOKEN: "ghp_two2two2",
      HUB_TOKEN: "tok-9",
      WEB_API_KEY: "abc123",
      WEB_AUTHORIZATION: "xyz-1",
    });
  });

  it("moves secrets out of JSON in a value, which stays as it was written otherwise", async () => {
    const header = (token: string) => `{"Authorization": "Bearer ${token}", "Notion-Version": "2022-06-28" }`;
    const found = await read("x.json", {
      mcpServers: {
        notion: { command: "x", env: { OPENAPI_MCP_HEADERS: header("ntn_0123456789abcdefABCDEF") } },
        deep: { command: "x", env: { SETTINGS: '{"a":[{"apiKey":"k-12345","name":"n"}],"level":3}' } },
        plain: { command: "x", env: { SETTINGS: '{"level":3,"name":"n"}', LIST: "[1]", ODD: "{not json" } },
        escaped: { command: "x", env: { SETTINGS: '{"token":"quo\\"te-12345"}' } },
        whole: { command: "x", env: { GOOGLE_CREDENTIALS: '{"private_key":"k-12345","type":"t"}' } },
      },
    });
    const envOf = (name: string) => found.servers[name]?.env;
    expect(envOf("notion")).toEqual({ OPENAPI_MCP_HEADERS: header("${NOTION_AUTHORIZATION}") });
    expect(envOf("deep")).toEqual({ SETTINGS: '{"a":[{"apiKey":"${DEEP_API_KEY}","name":"n"}],"level":3}' });
    expect(envOf("plain")).toEqual({ SETTINGS: '{"level":3,"name":"n"}', LIST: "[1]", ODD: "{not json" });
    expect(envOf("escaped")).toEqual({ SETTINGS: "${ESCAPED_SETTINGS}" });
    expect(envOf("whole")).toEqual({ GOOGLE_CREDENTIALS: "${GOOGLE_CREDENTIALS}" });
    expect(found.secrets).toEqual({
      NOTION_AUTHORIZATION: "ntn_0123456789abcdefABCDEF",
      DEEP_API_KEY: "k-12345",
      ESCAPED_SETTINGS: '{"token":"quo\\"te-12345"}',
      GOOGLE_CREDENTIALS: '{"private_key":"k-12345","type":"t"}',
    });
  });

  it("leaves no secret in JSON that refers to variables, names a member twice, or lies deep", async () => {
    const deep = `${'{"a":'.repeat(30)}{"token":"k-12345"}${"}".repeat(30)}`;
    const found = await read("x.json", {
      mcpServers: {
        mixed: { command: "x", env: { SETTINGS: '{"token":"k-12345","home":"${HOME}"}' } },
        twice: { command: "x", env: { SETTINGS: '{"token":"k-12345","token":""}' } },
        deep: { command: "x", env: { SETTINGS: deep } },
      },
    });
    const envOf = (name: string) => found.servers[name]?.env;
    expect(envOf("mixed")).toEqual({ SETTINGS: '{"token":"${MIXED_TOKEN}","home":"${HOME}"}' });
    expect(envOf("twice")).toEqual({ SETTINGS: "${TWICE_SETTINGS}" });
    expect(envOf("deep")).toEqual({ SETTINGS: "${DEEP_SETTINGS}" });
    expect(found.secrets).toMatchObject({ MIXED_TOKEN: "k-12345", DEEP_SETTINGS: deep });
  });

  it("names no variable after a server twice", async () => {
    const found = await read("x.json", {
      mcpServers: {
        other: { command: "x", env: { FIGMA_API_KEY: "first-1" } },
        figma: { command: "x", args: ["--figma-api-key=second-2"] },
      },
    });
    expect(found.secrets).toEqual({ FIGMA_API_KEY: "first-1", FIGMA_API_KEY_2: "second-2" });
    expect(found.servers["figma"]?.args).toEqual(["--figma-api-key=${FIGMA_API_KEY_2}"]);
    const alone = await read("y.json", {
      mcpServers: { figma: { command: "x", args: ["--figma-api-key", "second-2"] } },
    });
    expect(alone.secrets).toEqual({ FIGMA_API_KEY: "second-2" });
    const wordy = await read("z.json", {
      mcpServers: { "Framelink Figma MCP": { command: "x", args: ["--figma-api-key=third-3"] } },
    });
    expect(wordy.secrets).toEqual({ FIGMA_API_KEY: "third-3" });
  });

  it("keeps different secrets of one name apart", async () => {
    const entry = (value: string) => ({ command: "x", env: { API_KEY: value } });
    const found = await read("x.json", {
      mcpServers: { a: entry("first"), b: entry("second"), c: entry("first") },
    });
    expect(found.secrets).toEqual({ API_KEY: "first", B_API_KEY: "second" });
    expect(found.servers["b"]?.env).toEqual({ API_KEY: "${B_API_KEY}" });
    expect(found.servers["c"]?.env).toEqual({ API_KEY: "${API_KEY}" });
  });

  it("turns what hosts put in for texts into references, and says so", async () => {
    const code = await read(".vscode/mcp.json", {
      inputs: [{ id: "api-key", type: "promptString" }],
      servers: {
        a: {
          command: "x",
          args: ["${workspaceFolder}/a", "${userHome}", "${env:B}", "$${"],
          env: { K: "${input:api-key}" },
        },
      },
    });
    expect(code.servers["a"]).toEqual({
      command: "x",
      args: [`${folder}/a`, "${HOME}", "${env:B}", "$${"],
      env: { K: "${API_KEY}" },
    });
    expect(code.notes).toEqual(['a: set API_KEY, which VS Code asks for as "api-key".']);
    const open = await read("opencode.json", {
      mcp: { a: { type: "remote", url: "https://a", headers: { k: "{env:K}" } } },
    });
    expect(open.servers["a"]?.headers).toEqual({ k: "${env:K}" });
    const gemini = await read(".gemini/settings.json", {
      mcpServers: { a: { command: "x", env: { T: "$T_TOKEN" } } },
    });
    expect(gemini.servers["a"]?.env).toEqual({ T: "${T_TOKEN}" });
    const list = await read(
      ".continue/config.yaml",
      "mcpServers:\n  - name: a\n    command: x\n    env: { T: '${{ secrets.T_KEY }}' }\n",
    );
    expect(list.servers["a"]?.env).toEqual({ T: "${T_KEY}" });
    const odd = await read("x.json", { mcpServers: { a: { command: "x", args: ["${what is this}"] } } });
    expect(odd.servers["a"]?.args).toEqual(["$${what is this}"]);
    expect(odd.notes).toHaveLength(1);
  });

  it("keeps off what the host has off, and in what time a tool must answer", async () => {
    const codex = await read(
      ".codex/config.toml",
      '[mcp_servers.a]\ncommand = "x"\nenabled_tools = ["read", "list"]\ndisabled_tools = ["list"]\ntool_timeout_sec = 1.5\n',
    );
    expect(codex.servers["a"]?.policy).toEqual({ allow: ["read", "list"], deny: ["list"], timeoutMs: 1_500 });
    const gemini = await read(".gemini/settings.json", {
      mcpServers: {
        a: { command: "x", includeTools: ["run(ls)", "odd*name"], excludeTools: [], timeout: 30_000 },
        b: { command: "x", includeTools: [] },
        c: { url: "https://x.example/sse", type: "sse" },
      },
    });
    expect(gemini.servers["a"]?.policy).toEqual({ allow: ["run", "odd?name"], timeoutMs: 30_000 });
    expect(gemini.servers["b"]?.policy).toEqual({ allow: [] });
    expect(gemini.servers["c"]).toEqual({ url: "https://x.example/sse", type: "sse" });
    expect(gemini.notes).toEqual([]);
  });

  it("says what it did not take over", async () => {
    const found = await read(
      "goose/config.yaml",
      "extensions:\n  a: { type: builtin, name: developer }\n  b: { cmd: x, odd: 3, type: odd }\n",
    );
    expect(found.servers).toEqual({ b: { command: "x" } });
    expect(found.notes).toEqual([
      "a: has neither a command nor an address, and was left out.",
      'b: "odd" was not taken over.',
      'b: its type "odd" is not known, and was not taken over.',
    ]);
  });

  it("says why a file cannot be read", async () => {
    await expect(read("x.json", '{\n "a": }')).rejects.toThrow("Line 2: A value should stand here.");
    await expect(read("x.toml", "= 1")).rejects.toThrow("cannot be read as TOML");
    await expect(read("x.yaml", "a: [")).rejects.toThrow("cannot be read as YAML");
    await expect(readHostFile(join(folder, "none"), { cwd: folder })).rejects.toThrow("does not exist");
    expect((await read("x.json", "[]")).servers).toEqual({});
  });

  it("takes __proto__ for an ordinary name", async () => {
    const found = await read("x.json", '{ "mcpServers": { "__proto__": { "command": "x" } } }');
    expect(Object.entries(found.servers)).toEqual([["__proto__", { command: "x" }]]);
  });
});
