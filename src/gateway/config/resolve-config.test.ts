import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CONFIG_LIMITS } from "./config-path.ts";
import type { GatewayConfig } from "./gateway-config.ts";
import { ConfigError, type LoadedConfig } from "./loaded-config.ts";
import { loadConfig, loadConfigObject } from "./read-config.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-references-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const load = (config: unknown, env: NodeJS.ProcessEnv = {}): Promise<LoadedConfig> =>
  loadConfigObject(config as GatewayConfig, { baseDir: folder, env });

describe("references", () => {
  it("are replaced in every text but $schema, and never in names", async () => {
    const config = {
      $schema: "${A}",
      name: "x-${A}",
      mcpServers: { "${A}": { command: "${env:A}", args: ["${B:-b}", "$${A}"], env: { "${A}": "${A}" } } },
    };
    expect((await load(config, { A: "a" })).config).toEqual({
      $schema: "${A}",
      name: "x-a",
      mcpServers: { "${A}": { command: "a", args: ["b", "${A}"], env: { "${A}": "a" } } },
    });
  });

  it("stand for numbers and flags as well", async () => {
    const config = {
      serve: { port: "${PORT:-4100}", metrics: "${METRICS}", mcp: "${MCP}" },
      lock: "${LOCK}",
    };
    const { serve, lock } = (await load(config, { METRICS: "false", MCP: "true", LOCK: "a.json" })).config;
    expect({ serve, lock }).toEqual({ serve: { port: 4100, metrics: false, mcp: true }, lock: "a.json" });
    await expect(load({ serve: { port: "4100" } })).rejects.toThrow('it is "4100"');
  });

  it("lead to files beside the config, without the last line end, up to the limit", async () => {
    await writeFile(join(folder, "key"), "file-secret-1\n");
    await writeFile(join(folder, "long"), "x".repeat(CONFIG_LIMITS.referencedBytes));
    const loaded = await load({
      mcpServers: { a: { url: "https://a", bearer: "${file:key}", headers: { x: "${file:long}" } } },
    });
    expect(loaded.config.mcpServers?.["a"]?.bearer).toBe("file-secret-1");
    expect([...loaded.files.keys()]).toEqual([join(folder, "key"), join(folder, "long")]);
    await writeFile(join(folder, "long"), "x".repeat(CONFIG_LIMITS.referencedBytes + 1));
    const { faults } = await load({
      mcpServers: { a: { command: "${file:long}" }, b: { command: "${file:none}" } },
    });
    expect(faults).toEqual({
      "mcpServers.a": 'The file "long" has more than 65536 bytes (mcpServers.a.command)',
      "mcpServers.b": 'The file "none" does not exist (mcpServers.b.command)',
    });
  });

  it("that lead nowhere are the fault of their source, with the place, and a mistake elsewhere", async () => {
    const config = {
      mcpServers: {
        github: { command: "x", env: { GITHUB_TOKEN: "${GITHUB_TOKEN}" } },
        off: { command: "${NO}", disabled: true },
      },
      openapi: { p: { document: "${DOC}", baseUrl: "${BASE}" } },
    };
    await writeFile(join(folder, "c.json"), JSON.stringify(config, null, 2));
    const { faults } = await loadConfig("c.json", { env: {}, cwd: folder });
    expect(faults).toEqual({
      "mcpServers.github":
        "The environment variable GITHUB_TOKEN is not set (c.json:6:25, mcpServers.github.env.GITHUB_TOKEN)",
      "openapi.p": "The environment variable DOC is not set (c.json:16:19, openapi.p.document)",
    });
    const elsewhere = load({ name: "${NO}", bus: { nats: "${env:NATS}" } });
    await expect(elsewhere).rejects.toEqual(
      new ConfigError([
        "The environment variable NO is not set; name refers to it.",
        "The environment variable NATS is not set; bus.nats refers to it.",
      ]),
    );
    await expect(load({ mcpServers: { a: { command: "${input:x}" } } })).rejects.toThrow(
      "mcpServers.a.command has a reference that is not known; write ${NAME}",
    );
  });

  it("take an empty variable for set, unless there is a default", async () => {
    expect((await load({ name: "a${E}${E:-b}" }, { E: "" })).config.name).toBe("ab");
  });

  it("know nothing of what every object has", async () => {
    await expect(load({ name: "${constructor}" })).rejects.toThrow("constructor is not set");
  });

  it("are looked up in env files, later ones first, after the environment", async () => {
    await writeFile(join(folder, ".env"), "A=1\nB=1\nC=1\n");
    await writeFile(join(folder, ".env.b"), "export B='2'\n");
    const loaded = await load(
      { envFile: [".env", "${X:-.env.b}", "none"], name: "${A}${B}${C}" },
      { C: "3" },
    );
    expect(loaded.config.name).toBe("123");
    expect([...loaded.files.keys()]).toEqual([".env", ".env.b", "none"].map((name) => join(folder, name)));
    expect(loaded.warnings).toEqual(['The env file "none" does not exist.']);
    await expect(load({ envFile: "." })).rejects.toThrow('The env file "." is no file.');
  });
});

describe("secrets of a config", () => {
  const isMasked = async (value: string, config: unknown, env: NodeJS.ProcessEnv = {}): Promise<boolean> =>
    !(await load(config, env)).secrets.mask(`<${value}>`).includes(value);
  const withEnv = (name: string, value: string) => ({
    mcpServers: { a: { command: "x", env: { [name]: value } } },
  });

  it.each([
    ["a variable called like one", { name: "${MY_TOKEN}" }, { MY_TOKEN: "tok5" }],
    [
      "a variable that says nothing, with a value that says nothing either",
      { name: "${THING}" },
      { THING: "q8zK-2mvv" },
    ],
    ["a field called like one", withEnv("API_KEY", "${X}"), { X: "plainword" }],
  ])("are values from %s", async (_, config, env) => {
    expect(await isMasked(Object.values(env)[0] as string, config, env)).toBe(true);
  });

  it.each([
    ["bearer", "lit-bearer", { mcpServers: { a: { url: "https://a", bearer: "lit-bearer" } } }],
    [
      "a header",
      "abc-def",
      { mcpServers: { a: { url: "https://a", headers: { Authorization: "Bearer abc-def" } } } },
    ],
    [
      "Basic",
      "pa55!",
      { mcpServers: { a: { url: "https://a", headers: { Authorization: `Basic ${btoa("u:pa55!")}` } } } },
    ],
    ["an environment variable", "sesame", withEnv("DB_PASSWORD", "sesame")],
    ["a random value", "A9fk20dKq81mZpQx7Lw2", withEnv("WHATEVER", "A9fk20dKq81mZpQx7Lw2")],
    ["an argument", "opensesame", { mcpServers: { a: { command: "x", args: ["--api-key", "opensesame"] } } }],
    [
      "an argument with =",
      "opensesame",
      { mcpServers: { a: { command: "x", args: ["--token=opensesame"] } } },
    ],
    ["an address", "hush5", { mcpServers: { a: { url: "https://u:hush5@a/?x=1" } } }],
    ["a parameter", "hush6", { mcpServers: { a: { url: "https://a/?api_key=hush6" } } }],
    ["a credential", "k1e2y", { openapi: { p: { document: "x", auth: { apiKey: "k1e2y" } } } }],
    [
      "a password",
      "w0rd",
      { openapi: { p: { document: "x", auth: { basic: { username: "user-name", password: "w0rd" } } } } },
    ],
    ["a token", "0123456789abcdef", { serve: { auth: { tokens: { a: { token: "0123456789abcdef" } } } } }],
    ["the bus", "natspw", { bus: { nats: "nats://h", password: "natspw" } }],
  ])("are literal values of %s", async (_, value, config) => {
    expect(await isMasked(value, config)).toBe(true);
  });

  it.each([
    ["a name and a password", { username: "ada", password: "w0" }, "ada:w0"],
    ["a name and a common password", { username: "ada", password: "admin" }, "ada:admin"],
    ["references", { username: "${NAME_OF}", password: "${WORD_OF}" }, "ada:w0?>"],
    ["a key without a password", { username: "plain-key", password: "" }, "plain-key:"],
  ])("are %s as a header has them", async (_, basic, login) => {
    const config = { openapi: { p: { document: "x", auth: { basic } } } };
    const env = { NAME_OF: "ada", WORD_OF: "w0?>" };
    for (const form of ["base64", "base64url"] as const) {
      const sent = Buffer.from(login).toString(form);
      expect((await load(config, env)).secrets.mask(`Basic ${sent}`)).toMatch(/^Basic \*\*\*=*$/);
    }
  });

  it("are the login of an address as a header has it, and a key in place of a name", async () => {
    const { secrets } = await load({
      mcpServers: {
        a: { url: "https://ada:h%C3%BCsh@a/" },
        b: { url: "https://A9fk20dKq81mZpQx7Lw2@b/" },
        c: { url: "https://postgres@c/" },
      },
    });
    expect(secrets.mask(Buffer.from("ada:hüsh").toString("base64"))).toMatch(/^\*\*\*=*$/);
    expect(secrets.mask("A9fk20dKq81mZpQx7Lw2 is not postgres of ada")).toBe("*** is not postgres of ada");
  });

  it.each([
    ["HOME", "/home/somebody"],
    ["REGION", "eu-central-1"],
    ["NODE_ENV", "production"],
    ["DOCS", "https://docs.example.com/a"],
    ["SERVICE", "db.example.com:5432"],
    ["MODEL", "large-2-turbo"],
    ["TOKEN_FILE", "/run/secrets/token"],
    ["PWD", "/home/somebody/work"],
    ["COUNT", "12345678"],
  ])("are not values such as that of %s", async (name, value) => {
    expect(await isMasked(value, withEnv(name, `\${${name}}`), { [name]: value })).toBe(false);
    expect(await isMasked(value, withEnv(name, value))).toBe(false);
  });
});

describe("limits of a config", () => {
  it("are 1,000 sources", async () => {
    const servers = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`s${i}`, { command: "x" }]));
    const openapi = { p: { document: "x" } };
    expect(
      Object.keys((await load({ mcpServers: servers(999), openapi })).config.mcpServers ?? {}),
    ).toHaveLength(999);
    await expect(load({ mcpServers: servers(1_000), openapi })).rejects.toThrow(
      "has 1001 sources; at most 1000 are mounted",
    );
  });

  it("are 64 levels, in every kind", async () => {
    const text = (levels: number) =>
      `{"openapi":{"p":{"document":"x","overlay":{"document":${"[".repeat(levels - 4)}${"]".repeat(levels - 4)}}}}}`;
    const nested = (levels: number) =>
      text(levels)
        .replace(/\[/, '{"a":[')
        .replace(/\]\}\}\}\}$/, "]}}}}}");
    for (const name of ["c.json", "c.yaml"]) {
      await writeFile(join(folder, name), nested(63));
      expect((await loadConfig(name, { env: {}, cwd: folder })).config.openapi).toBeDefined();
      for (const levels of [64, 200_000]) {
        await writeFile(join(folder, name), nested(levels));
        await expect(loadConfig(name, { env: {}, cwd: folder })).rejects.toBeInstanceOf(ConfigError);
      }
    }
    const circle: Record<string, unknown> = {};
    circle["mcpServers"] = circle;
    await expect(load(circle)).rejects.toThrow("nested more than 64 levels");
  });

  it("are 4 MiB", async () => {
    const text = (length: number) => `{"name":"a"}${" ".repeat(length - 12)}`;
    await writeFile(join(folder, "c.json"), text(CONFIG_LIMITS.bytes));
    expect((await loadConfig("c.json", { env: {}, cwd: folder })).config).toEqual({ name: "a" });
    await writeFile(join(folder, "c.json"), text(CONFIG_LIMITS.bytes + 1));
    await expect(loadConfig("c.json", { env: {}, cwd: folder })).rejects.toThrow(
      "c.json has more than 4194304 bytes.",
    );
  });

  it("do not include names: __proto__ is an ordinary one", async () => {
    for (const [name, text] of [
      ["c.json", '{ "mcpServers": { "__proto__": { "command": "x", }, "constructor": { "command": "y" } } }'],
      ["d.json", '{ "mcpServers": { "__proto__": { "command": "x" }, "constructor": { "command": "y" } } }'],
      ["c.yaml", "mcpServers:\n  __proto__: { command: x }\n  constructor: { command: y }\n"],
    ] as const) {
      await writeFile(join(folder, name), text);
      const { mcpServers } = (await loadConfig(name, { env: {}, cwd: folder })).config;
      expect(Object.entries(mcpServers ?? {})).toEqual([
        ["__proto__", { command: "x" }],
        ["constructor", { command: "y" }],
      ]);
    }
    await writeFile(join(folder, "c.json"), '{ "__proto__": 1, "serve": { "constructor": 1 } }');
    await expect(loadConfig("c.json", { env: {}, cwd: folder })).rejects.toThrow(
      "c.json:1:3  There is no __proto__.",
    );
  });

  it("hold aliases of YAML that multiply", async () => {
    const lines = ["a: &a [x, x, x, x, x, x, x, x, x]"];
    for (let i = 0; i < 12; i++) {
      const [last, next] = [String.fromCharCode(97 + i), String.fromCharCode(98 + i)];
      lines.push(`${next}: &${next} [${`*${last}, `.repeat(9)}]`);
    }
    await writeFile(join(folder, "c.yaml"), lines.join("\n"));
    await expect(loadConfig("c.yaml", { env: {}, cwd: folder })).rejects.toThrow("aliases");
  });
});
