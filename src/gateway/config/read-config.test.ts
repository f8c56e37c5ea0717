import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GatewayConfig } from "./gateway-config.ts";
import { ConfigError, type LoadedConfig } from "./loaded-config.ts";
import { loadConfig, loadConfigObject } from "./read-config.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-config-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function load(name: string, text: string, env: NodeJS.ProcessEnv = {}): Promise<LoadedConfig> {
  await writeFile(join(folder, name), text);
  return loadConfig(name, { env, cwd: folder });
}

async function issuesOf(loading: Promise<unknown>): Promise<readonly string[]> {
  const thrown = await loading.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ConfigError);
  return (thrown as ConfigError).issues;
}

const json = (value: unknown): string => JSON.stringify(value, null, 2);
const fromObject = (config: unknown, env: NodeJS.ProcessEnv = {}): Promise<LoadedConfig> =>
  loadConfigObject(config as GatewayConfig, { baseDir: folder, env });

const CALLERS = { serve: { auth: { tokens: { ann: { token: "0123456789abcdef" } } } } };

describe("kinds of config", () => {
  const expected = {
    name: "depot",
    serve: { port: 4200 },
    mcpServers: { files: { command: "node", args: ["x.js"] } },
  };

  it("RE-30 reads JSON, JSON with comments and trailing commas, and YAML", async () => {
    const plain = await load("waybill.config.json", json(expected));
    expect(plain.config).toEqual(expected);
    expect(plain.path).toBe(join(folder, "waybill.config.json"));
    expect(plain.baseDir).toBe(folder);
    expect([...plain.files.keys()]).toEqual([join(folder, "waybill.config.json")]);
    const lenient =
      '\uFEFF// a comment\n{ "name": "depot", /* another */ "serve": { "port": 4200, }, "mcpServers": { "files": { "command": "node", "args": ["x.js",], }, }, }\n';
    expect((await load("waybill.config.json", lenient)).config).toEqual(expected);
    const yaml =
      "name: depot\nserve: { port: 4200 }\nmcpServers:\n  files:\n    command: node\n    args: [x.js]\n";
    expect((await load("waybill.config.yaml", yaml)).config).toEqual(expected);
    expect((await load("other.yml", yaml)).config).toEqual(expected);
  });

  it.each([
    ["a.js", "export default { name: 'a' };"],
    ["a.mjs", "export const config = { name: 'a' };"],
    ["a.mjs", "export default async () => ({ name: 'a', serve: undefined });"],
    ["a.ts", "const config: { name: string } = { name: 'a' };\nexport default config;"],
    ["a.mts", "export const config = (): { name: string } => ({ name: 'a' });"],
  ])("RE-30 reads %s: %s", async (name, text) => {
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    expect((await load(name, text)).config).toEqual({ name: "a" });
  });

  it("sees what has changed when it reads again, in imported files of TypeScript too", async () => {
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    for (const name of ["a", "b"]) {
      expect((await load("c.mjs", `export default { name: "${name}" };`)).config.name).toBe(name);
      await writeFile(join(folder, "name.ts"), `export const name: string = "${name}";`);
      const text = "import { name } from './name.ts';\nexport default { name };";
      expect((await load("c.ts", text)).config.name).toBe(name);
    }
  });

  it("says what is wrong with a module, and where", async () => {
    expect(await issuesOf(load("a.mjs", "\nthrow new Error('no database');"))).toEqual([
      expect.stringMatching(/^a\.mjs:2:7 {2}The config could not be loaded: no database$/),
    ]);
    expect(await issuesOf(load("b.ts", "const x: = 1;"))).toEqual([
      expect.stringMatching(/^b\.ts(?::\d+:\d+)? {2}The config could not be loaded: /),
    ]);
    expect(await issuesOf(load("c.mjs", "export const other = 1;"))).toEqual([
      "c.mjs exports no config; export it as default.",
    ]);
    expect(await issuesOf(load("d.mjs", "export default { name: 1, serve: { mcp: () => 1 } };"))).toEqual([
      "d.mjs:1:36  serve.mcp must be plain data; it is a function.",
      "d.mjs:1:18  name must be a text; it is 1.",
    ]);
  });

  it("says so when there is no file, no file that is read, or no config in it", async () => {
    const at = (name: string) => issuesOf(loadConfig(name, { env: {}, cwd: folder }));
    expect(await at("none.json")).toEqual(["none.json does not exist."]);
    expect(await at("none.ts")).toEqual(["none.ts does not exist."]);
    await mkdir(join(folder, "folder.json"));
    expect(await at("folder.json")).toEqual(["folder.json is no file."]);
    expect(await issuesOf(load("a.toml", ""))).toEqual([
      expect.stringContaining("a.toml is of no kind that is read"),
    ]);
    expect(await issuesOf(load("a.json", "[]"))).toEqual([
      "a.json:1:1  The config must be an object; it is a list.",
    ]);
    expect(await issuesOf(load("a.yaml", ""))).toEqual([
      "a.yaml:1:1  The config must be an object; it is null.",
    ]);
    expect(await issuesOf(load("a.json", ""))).toEqual([
      "a.json:1:1  The text ends where a value should stand.",
    ]);
  });
});

describe("mistakes", () => {
  it.each([
    ['{\n  "name": "a"\n  "serve": {}\n}', 'c.json:3:3  A comma or "}" is missing before this.'],
    ["{\n  \"name\": 'a'\n}", "c.json:2:11  A text stands in double quotes."],
    ['{ name: "a" }', "c.json:1:3  A name in double quotes should stand here."],
    ['{ "name" "a" }', "c.json:1:10  A colon is missing after the name."],
    ['{ "name": "a', "c.json:1:11  This text is not closed."],
    ['{ "name": "a\tb" }', "c.json:1:11  This text has a character that must be escaped."],
    ['{ "name": "a" } x', "c.json:1:17  There is more text after the end."],
    ['{ "name": /* ', "c.json:1:11  This comment is not closed."],
    ['{ "args": [1', 'c.json:1:13  The text ends where "]" is missing.'],
    ['{ "name": , }', "c.json:1:11  A value should stand here."],
    [
      '{ "name": "a",\n  "name": "b" }',
      'c.json:2:3  The name "name" stands in this object already; remove one of the two.',
    ],
    [
      '{ "serve": { "port": 1, /* twice */ "\\u0070ort": 2 } }',
      'c.json:1:37  The name "port" stands in this object already; remove one of the two.',
    ],
  ])("points at what is wrong with %j", async (text, issue) => {
    expect(await issuesOf(load("c.json", text))).toEqual([issue]);
  });

  it("points at what is wrong with YAML", async () => {
    expect(await issuesOf(load("c.yaml", "name: a\nserve: [1\nlog: {}\n"))).toEqual([
      expect.stringMatching(/^c\.yaml:\d:\d+ {2}\S.*\.$/),
    ]);
    expect(await issuesOf(load("c.yaml", "name: a\nname: b\n"))).toEqual([
      "c.yaml:2:1  Map keys must be unique.",
    ]);
  });

  it.each([
    ["mcpServers:\n  a: { url: x, bearer: ${A_TOKEN} }\n", "c.yaml:2:24", "${A_TOKEN}"],
    ["operations: [${A:-b c}]\n", "c.yaml:1:14", "${A:-b c}"],
    ["serve: { host: a ${\n", "c.yaml:1:18", "${NAME}"],
  ])("says that the reference in %j stands in quotes", async (text, place, reference) => {
    const said = "Within braces or brackets a value with a reference stands in quotes";
    expect(await issuesOf(load("c.yaml", text))).toEqual([`${place}  ${said}; write "${reference}".`]);
  });

  it("lists every mistake with its line, its column and what is right", async () => {
    const text = json({
      serve: { port: "80a", prot: 1, mcp: 3, format: "xml", formats: ["mcp", 4] },
      mcpServers: { a: { command: "x", comand: 1, env: { A: 1 } }, b: { url: "nonsense" } },
      openapi: { p: { auth: { bearer: { username: "u" } } } },
      policies: { "a.*": { rate: { calls: 0 } } },
      nothing: true,
    });
    expect(await issuesOf(load("c.json", text))).toEqual([
      'c.json:3:13  serve.port must be a whole number from 0 to 65535; it is "80a".',
      'c.json:4:5  There is no serve.prot; did you mean "port"?',
      "c.json:5:12  serve.mcp must be true or false or an object; it is 3.",
      'c.json:6:15  serve.format must be one of "tool-envelope", "tiered-envelope", "status-envelope", "mcp", "response-envelope"; it is "xml".',
      expect.stringMatching(/^c\.json:9:7 {2}serve\.formats\[1\] must be one of .*; it is 4\.$/),
      'c.json:15:7  There is no mcpServers.a.comand; did you mean "command"?',
      "c.json:17:14  mcpServers.a.env.A must be a text; it is a number.",
      "c.json:25:10  openapi.p.document is missing.",
      "c.json:27:19  openapi.p.auth.bearer.password is missing.",
      'c.json:35:15  policies["a.*"].rate.perMs is missing.',
      'c.json:36:18  policies["a.*"].rate.calls must be a whole number, 1 or more; it is 0.',
      "c.json:40:3  There is no nothing.",
      "c.json:21:14  mcpServers.b.url must be an address such as https://example.com/mcp.",
      'c.json:6:15  serve.format "xml" is not among serve.formats.',
    ]);
  });

  it("points at the same in YAML, through aliases too", async () => {
    const text = "serve:\n  port: 80a\n  prot: 1\nmcpServers:\n  a: &a\n    command: 1\n  b: *a\n";
    expect(await issuesOf(load("c.yaml", text))).toEqual([
      'c.yaml:2:9  serve.port must be a whole number from 0 to 65535; it is "80a".',
      'c.yaml:3:3  There is no serve.prot; did you mean "port"?',
      "c.yaml:6:14  mcpServers.a.command must be a text; it is 1.",
      "c.yaml:6:14  mcpServers.b.command must be a text; it is 1.",
    ]);
  });

  it("lists twenty mistakes and how many more there are", async () => {
    const config = (count: number) => ({
      mcpServers: Object.fromEntries(Array.from({ length: count }, (_, i) => [`s${i}`, {}])),
    });
    expect(await issuesOf(fromObject(config(20)))).toHaveLength(20);
    const issues = await issuesOf(fromObject(config(23)));
    expect(issues).toHaveLength(21);
    expect(issues.at(-1)).toBe("… and 3 more.");
  });

  it("never shows a text that may be a secret", async () => {
    const secret = "hunter2hunter2";
    const config = {
      serve: {
        port: "${PORT}",
        auth: { tokens: { ci: { token: secret.slice(0, 7), scopes: secret, tier: secret } }, jwt: secret },
      },
      mcpServers: {
        a: {
          url: `ftp://u:${secret}@h`,
          headers: secret,
          bearer: [secret],
          oauth: { clientSecret: secret, clientId: 1 },
        },
      },
      openapi: { p: { document: "x", auth: secret } },
      bus: { nats: 1, password: { secret }, token: true },
    };
    const issues = await issuesOf(fromObject(config, { PORT: secret }));
    expect(issues.length).toBeGreaterThan(8);
    expect(issues.join("\n")).not.toContain("hunter2");
    expect(issues).toContain("serve.port must be a whole number from 0 to 65535; it is a text.");
    expect(issues).toContain("serve.auth.tokens.ci.token must have at least 16 characters; it has 7.");
  });

  it("takes one key of sessions or several, each long enough, and shows none", async () => {
    const key = "hunter2hunter2hunter2hunter2-key";
    const issuesWith = async (given: unknown) =>
      await issuesOf(fromObject({ serve: { sessions: { key: given } } }, { KEY: key, SHORT: key.slice(1) }));
    const read = await fromObject({ serve: { sessions: { key: ["${env:KEY}", key] } } }, { KEY: key });
    expect(read.config.serve?.sessions?.key).toEqual([key, key]);
    expect(read.secrets.mask(`it is ${key}`)).not.toContain("hunter2");
    const least = "must have at least 32 characters";
    expect(await issuesWith("${env:SHORT}")).toEqual([`serve.sessions.key ${least}; it has 31.`]);
    expect(await issuesWith([key, "${env:SHORT}"])).toEqual([`serve.sessions.key[1] ${least}; it has 31.`]);
    expect(await issuesWith([])).toEqual(["serve.sessions.key must have at least one key."]);
    const wrong = [
      await issuesWith(5),
      await issuesWith({ key }),
      await issuesWith([key, 5]),
      await issuesWith(""),
    ];
    for (const issues of wrong) {
      expect(issues).toHaveLength(1);
      expect(issues[0]).toContain("serve.sessions.key");
      expect(issues[0]).not.toContain("hunter2");
    }
  });

  it("shows nothing that a terminal acts on", async () => {
    const issues = await issuesOf(fromObject({ name: 1, "\u001b[31m": 1, log: { level: "a\u001b[2J\nb" } }));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    for (const issue of issues) expect(issue).not.toMatch(/[\u0000-\u001f]/);
  });
});

describe("names that are spelled differently now", () => {
  it.each([
    [{ policies: { "a.*": { retries: {} } } }, 'policies["a.*"].retries is spelled retry now.'],
    [
      { mcpServers: { a: { command: "x", policy: { retries: {} } } } },
      "mcpServers.a.policy.retries is spelled retry now.",
    ],
  ])("%j is refused with the new name", async (config, message) => {
    expect(await issuesOf(fromObject(config))).toEqual([message]);
  });
});

describe("fields that go together", () => {
  it.each([
    [{ mcpServers: { a: {} } }, "mcpServers.a needs a command to start, or the url of a server."],
    [
      { mcpServers: { a: { command: "x", url: "https://a" } } },
      "mcpServers.a has both command and url; keep one of them.",
    ],
    [
      { mcpServers: { a: { url: "https://a", httpUrl: "https://b" } } },
      "mcpServers.a has both url and httpUrl; keep url.",
    ],
    [
      { mcpServers: { a: { type: "stdio", url: "https://a" } } },
      'mcpServers.a.type is "stdio", which needs a command; it has url.',
    ],
    [
      { mcpServers: { a: { type: "http", command: "x" } } },
      'mcpServers.a.type is "http", which needs a url; it has command.',
    ],
    [{ mcpServers: { a: { url: "file:///x" } } }, "mcpServers.a.url must begin with https:// or http://."],
    [{ mcpServers: { "": { command: "x" } } }, "A name in mcpServers is empty."],
    [{ policies: { "": {} } }, "A name in policies is empty."],
    [
      { policies: { ["a".repeat(1025)]: {} } },
      "A name in policies has 1025 characters; at most 1024 are read.",
    ],
    [
      { serve: { format: "mcp", formats: ["tool-envelope"] } },
      'serve.format "mcp" is not among serve.formats.',
    ],
    [
      { serve: { auth: { tokens: { a: { token: "0123456789abcdef" }, b: { token: "0123456789abcdef" } } } } },
      'serve.auth.tokens.b.token is that of "a" too; each holder needs one of their own.',
    ],
    [
      { mcpServers: { a: { url: "https://a", identity: "caller" } } },
      'mcpServers.a.identity is "caller", and nothing says who calls; add serve.auth.tokens (or serve.auth.jwt).',
    ],
    [
      { ...CALLERS, mcpServers: { a: { command: "x", identity: "key" } } },
      'mcpServers.a.identity is "key", which needs a url; a process that is started is one for all callers.',
    ],
    [
      { ...CALLERS, openapi: { a: { document: "a.json", identity: { mode: "caller" } } } },
      'openapi.a.identity is "caller", and no credential in openapi.a.auth is a login; add "auth": { "oauth2": { "login": true } }.',
    ],
    [
      { ...CALLERS, openapi: { a: { document: "a.json", identity: "forward" } } },
      'openapi.a.identity is "forward", which needs audience.',
    ],
    [
      {
        ...CALLERS,
        mcpServers: { a: { url: "https://a", identity: { mode: "exchange", issuer: "https://b" } } },
      },
      'mcpServers.a.identity is "exchange", which needs clientId.',
    ],
    [
      { ...CALLERS, mcpServers: { a: { url: "https://a", identity: { mode: "caller", header: "x-key" } } } },
      'mcpServers.a.identity.header is not for the mode "caller".',
    ],
    [
      { ...CALLERS, openapi: { a: { document: "a.json", identity: { mode: "key", connections: 5 } } } },
      "openapi.a.identity.connections is for MCP servers.",
    ],
    [
      { serve: { host: "0.0.0.0", auth: { tokens: {} } } },
      'serve.host "0.0.0.0" lets other machines in, and nothing says who may call; add serve.auth.tokens (or serve.auth.jwt), or use "127.0.0.1".',
    ],
  ])("refuses %j", async (config, issue) => {
    expect(await issuesOf(fromObject(config))).toEqual([issue]);
  });

  it.each(["127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST", "::1", "[::1]", "app.localhost"])(
    "takes %s for this machine",
    async (host) => {
      expect((await fromObject({ serve: { host } })).config.serve?.host).toBe(host);
    },
  );

  it("RE-30 says of a token that refers to nothing only that it is not set", async () => {
    const tokens = { a: { token: "${NO_TOKEN}" }, b: { token: "${NO_TOKEN}" } };
    expect(await issuesOf(fromObject({ serve: { auth: { tokens } } }))).toEqual([
      "The environment variable NO_TOKEN is not set; serve.auth.tokens.a.token refers to it.",
      "The environment variable NO_TOKEN is not set; serve.auth.tokens.b.token refers to it.",
    ]);
    expect(await issuesOf(fromObject({ bus: { nats: "x", secret: "${NO_SECRET}" } }))).toEqual([
      "The environment variable NO_SECRET is not set; bus.secret refers to it.",
    ]);
  });

  it("RE-30 names an env file that is not there beside the variables that may be in it", async () => {
    const serve = { auth: { tokens: { a: { token: "${NO_TOKEN}" } } } };
    expect(await issuesOf(fromObject({ envFile: ".env.nope", serve }))).toEqual([
      'The env file ".env.nope" does not exist.',
      "The environment variable NO_TOKEN is not set; serve.auth.tokens.a.token refers to it.",
    ]);
    expect(await issuesOf(fromObject({ envFile: ".env.nope", serve: { port: -1 } }))).toHaveLength(1);
  });

  it("RE-30 takes a secret of the bus from 32 characters on, and never shows it", async () => {
    const config = (secret: string) => ({ bus: { nats: "nats://127.0.0.1", secret } });
    const loaded = await fromObject(config("0123456789abcdef0123456789abcdef"));
    expect(loaded.secrets.mask("is 0123456789abcdef0123456789abcdef")).toBe("is ***");
    expect(await issuesOf(fromObject(config("0123456789abcdef0123456789abcde")))).toEqual([
      "bus.secret must have at least 32 characters; it has 31.",
    ]);
  });

  it("takes a webhook of approvals with an address and a secret from 32 characters on", async () => {
    const config = (url: string, secret: string) => ({ approvals: { webhook: { url, secret } } });
    const secret = "0123456789abcdef0123456789abcdef";
    const loaded = await fromObject(config("https://chat.example/hook", secret));
    expect(loaded.secrets.mask(`is ${secret}`)).toBe("is ***");
    expect(await issuesOf(fromObject(config("chat.example", secret.slice(1))))).toEqual([
      "approvals.webhook.url must be an address such as https://example.com/mcp.",
      "approvals.webhook.secret must have at least 32 characters; it has 31.",
    ]);
    expect(await issuesOf(fromObject(config("file:///hook", secret)))).toEqual([
      "approvals.webhook.url must begin with https:// or http://.",
    ]);
  });

  it("takes any host once tokens say who may call, from 16 characters on", async () => {
    const config = (token: string) => ({ serve: { host: "0.0.0.0", auth: { tokens: { a: { token } } } } });
    expect((await fromObject(config("0123456789abcdef"))).config.serve?.host).toBe("0.0.0.0");
    expect(await issuesOf(fromObject(config("0123456789abcde")))).toHaveLength(1);
  });

  it("takes the spellings of other hosts, and says what it does not use", async () => {
    const config = {
      mcpServers: {
        a: { serverUrl: "https://a/mcp", type: "streamableHttp" },
        b: { httpUrl: "https://b/mcp", trust: true },
        c: { command: "x", type: "local", alwaysAllow: ["y"] },
      },
    };
    const loaded = await load("c.json", json(config));
    expect(loaded.config.mcpServers).toEqual({
      a: { url: "https://a/mcp", type: "streamable-http" },
      b: { url: "https://b/mcp", trust: true },
      c: { command: "x", type: "stdio", alwaysAllow: ["y"] },
    });
    expect(loaded.warnings).toEqual([
      "c.json:9:7  mcpServers.b.trust is not used by Waybill.",
      "c.json:14:7  mcpServers.c.alwaysAllow is not used by Waybill.",
    ]);
  });
});
