import { existsSync } from "node:fs";
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parse } from "smol-toml";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCommandLine } from "../../../test/run-command-line.ts";
import { readJsonText } from "../../gateway/config/json-text-map.ts";
import { CONNECTED_HOSTS, hostPlaces, withServer } from "./host-config.ts";

let folder: string;
let script: string;
let config: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "waybill-connect-")));
  script = join(folder, "package/dist/cli.js");
  config = join(folder, "project/waybill.config.json");
  for (const file of [script, config]) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, "{}");
  }
});

afterEach(() => rm(folder, { recursive: true, force: true }));

async function connect(...args: string[]) {
  const env = { HOME: folder, XDG_CONFIG_HOME: join(folder, ".config"), APPDATA: join(folder, "AppData") };
  return await runCommandLine(["connect", ...args], { cwd: join(folder, "project"), env, script } as never);
}

const entry = () => ({
  command: process.execPath,
  args: [script, "serve", "--stdio", "--config", config],
});

const cursorFile = () => join(folder, ".cursor/mcp.json");

async function putCursor(text: string): Promise<void> {
  await mkdir(dirname(cursorFile()), { recursive: true });
  await writeFile(cursorFile(), text);
}

describe("waybill connect", () => {
  it("prints the block of each host with whole paths, and where it goes on each platform", async () => {
    for (const host of CONNECTED_HOSTS) {
      const { code, stdout, stderr } = await connect(host);
      expect(code).toBe(0);
      const block = host === "codex" ? parse(stdout) : JSON.parse(stdout);
      const member = { claude: "mcpServers", cursor: "mcpServers", vscode: "servers", codex: "mcp_servers" }[
        host
      ];
      const server = host === "vscode" ? { type: "stdio", ...entry() } : entry();
      expect(JSON.parse(JSON.stringify(block))).toEqual({ [member]: { waybill: server } });
      for (const path of Object.values(hostPlaces(host))) expect(stderr).toContain(path);
    }
    expect(await readdir(folder)).toEqual(["package", "project"]);
  });

  it("knows where hosts keep their servers", () => {
    expect(hostPlaces("claude")).toEqual({
      Linux: "~/.config/Claude/claude_desktop_config.json",
      macOS: "~/Library/Application Support/Claude/claude_desktop_config.json",
      Windows: "%APPDATA%\\Claude\\claude_desktop_config.json",
    });
    expect(hostPlaces("vscode")["macOS"]).toBe("~/Library/Application Support/Code/User/mcp.json");
    expect(hostPlaces("cursor")["Windows"]).toBe("%USERPROFILE%\\.cursor\\mcp.json");
    expect(hostPlaces("codex")["Linux"]).toBe("~/.codex/config.toml");
  });

  it("says that the sample sources are served where there is no config", async () => {
    await rm(config);
    const { stdout, stderr } = await connect("cursor");
    expect(JSON.parse(stdout).mcpServers.waybill.args).toEqual([script, "serve", "--stdio"]);
    expect(stderr).toContain("there is no config here");
  });

  it.each([
    [["sublime"], "claude, cursor, vscode, codex"],
    [["cursor", "--config", "none.json"], 'The config "none.json" does not exist'],
    [["cursor", "--name", "a b"], "letters, digits, _ and -"],
    [["cursor", "--write"], "give --yes"],
  ])("refuses %j in one line, and writes nothing", async (args, message) => {
    const { code, stderr } = await connect(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(existsSync(cursorFile())).toBe(false);
  });
});

describe("waybill connect --write", () => {
  it("makes the file where there is none, for its owner alone", async () => {
    for (const host of CONNECTED_HOSTS) {
      const { code, stderr } = await connect(host, "--write", "--yes");
      expect([code, stderr]).toEqual([0, expect.stringContaining("Wrote   ")]);
      const [, file = ""] = /^Wrote {3}(.+)$/m.exec(stderr) ?? [];
      expect(await readFile(file, "utf8")).toContain(JSON.stringify(script));
      if (process.platform !== "win32") expect((await stat(file)).mode & 0o777).toBe(0o600);
    }
  });

  it("keeps everything else letter for letter, with the file as it was beside it", async () => {
    const before = `{\n\t// mine\n\t"mcpServers": {\n\t\t"other": { "command": "x" }, // kept\n\t},\n\t"theme": "dark",\n}\n`;
    await putCursor(before);
    if (process.platform !== "win32") await chmod(cursorFile(), 0o640);
    const { code, stderr } = await connect("cursor", "--write", "--yes");
    expect([code, stderr]).toEqual([0, expect.stringContaining("\nCursor starts 1 other server itself. ")]);
    const after = await readFile(cursorFile(), "utf8");
    expect(await readFile(`${cursorFile()}.old`, "utf8")).toBe(before);
    if (process.platform !== "win32") expect((await stat(cursorFile())).mode & 0o777).toBe(0o640);
    const at = after.indexOf('\n\t\t"waybill"');
    const end = after.indexOf('\n\t\t"other"');
    expect(after.slice(0, at) + after.slice(end)).toBe(before);
    expect(readJsonText(after, 256).value).toEqual({
      mcpServers: { waybill: entry(), other: { command: "x" } },
      theme: "dark",
    });
    expect((await readdir(dirname(cursorFile()))).sort()).toEqual(["mcp.json", "mcp.json.old"]);
  });

  it("writes nothing where the entry is there already, and replaces another of its name", async () => {
    await connect("cursor", "--write", "--yes");
    const again = await connect("cursor", "--write", "--yes");
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining("has it already")]);
    expect(existsSync(`${cursorFile()}.old`)).toBe(false);
    const text = (await readFile(cursorFile(), "utf8")).replace("--stdio", "--stdin");
    await writeFile(cursorFile(), text);
    expect((await connect("cursor", "--write", "--yes")).code).toBe(0);
    expect(JSON.parse(await readFile(cursorFile(), "utf8"))).toEqual({ mcpServers: { waybill: entry() } });
    expect(await readFile(`${cursorFile()}.old`, "utf8")).toBe(text);
  });

  it.each([
    ['{ "mcpServers": {} ', /mcp\.json:1:20 {2}/],
    ['{\n  "mcpServers": []\n}', /mcp\.json:2:17 {2}"mcpServers" is not an object/],
    ["[]", /mcp\.json:1:1 {2}the file is not an object/],
    ['{ "a": 1, "a": 2 }', /mcp\.json:1:11 {2}/],
  ])("refuses a broken file with the place, and leaves it: %j", async (text, message) => {
    await putCursor(text);
    const { code, stderr } = await connect("cursor", "--write", "--yes");
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
    expect(await readFile(cursorFile(), "utf8")).toBe(text);
    expect(await readdir(dirname(cursorFile()))).toEqual(["mcp.json"]);
  });

  it("refuses a file that is not UTF-8, which would not come back as it was", async () => {
    const bytes = Buffer.from('{ "name": "caf\u00e9" }', "latin1");
    await putCursor("");
    await writeFile(cursorFile(), bytes);
    const { code, stderr } = await connect("cursor", "--write", "--yes");
    expect([code, stderr]).toEqual([2, expect.stringContaining("is not UTF-8")]);
    expect(await readFile(cursorFile())).toEqual(bytes);
  });

  it("puts nothing in the place of a link that leads nowhere", async () => {
    const link = join(folder, "project/mcp.json");
    await symlink(cursorFile(), link);
    const { code, stderr: err } = await connect("cursor", "--write", "--yes", "--file", link);
    expect([code, err]).toEqual([2, expect.stringContaining("is a link that leads nowhere")]);
    expect((await lstat(link)).isSymbolicLink()).toBe(true);
  });

  it("follows a link to the file, which stays a link", async () => {
    await putCursor("{}");
    const link = join(folder, "project/mcp.json");
    await symlink(cursorFile(), link);
    expect((await connect("cursor", "--write", "--yes", "--file", "mcp.json")).code).toBe(0);
    expect(await realpath(link)).toBe(cursorFile());
    expect(JSON.parse(await readFile(link, "utf8"))).toEqual({ mcpServers: { waybill: entry() } });
  });
});

describe("the text of a host's file", () => {
  const server = { command: "/usr/bin/node", args: ["/a b/cli.js", "serve", "--stdio"] };
  const edit = (host: "cursor" | "vscode" | "codex", text: string) =>
    withServer(host, text, { file: "f", name: "waybill", entry: server });

  it.each([
    "{}",
    "{\n}\n",
    "\uFEFF{}",
    "",
    '{"mcpServers":{}}',
    '{"mcpServers":{ /* none */ }}',
    '{"a":[1,2,{"b":"}"}]}',
    '{\n    "a": 1\n}',
    '{ // "mcpServers": {}\n}',
  ])("stays JSON with what it had: %j", async (text) => {
    const after = await edit("cursor", text);
    const plain = (given: string): object =>
      given.trim() === "" ? {} : (readJsonText(given.replace("\uFEFF", ""), 99).value as object);
    expect(after.change).toBe("added");
    expect(plain(after.text)).toEqual({ ...plain(text), mcpServers: { waybill: server } });
    expect(after.text.startsWith("\uFEFF")).toBe(text.startsWith("\uFEFF"));
    for (const comment of ["/* none */", '// "mcpServers"'])
      if (text.includes(comment)) expect(after.text).toContain(comment);
  });

  it("stays TOML with what it had, comments too", async () => {
    const before = 'model = "o"\n# mine\n[mcp_servers.other]\ncommand = "x" # kept\n';
    const { text, change } = await edit("codex", before);
    expect([change, text.startsWith(before)]).toEqual(["added", true]);
    expect(JSON.parse(JSON.stringify(parse(text)))).toEqual({
      model: "o",
      mcp_servers: { other: { command: "x" }, waybill: server },
    });
    const other = text
      .replace("--stdio", "--stdin")
      .concat('\n[mcp_servers.waybill.env]\nA = "1"\n\n[last]\nb = 1\n');
    const replaced = await edit("codex", other);
    expect(replaced.change).toBe("replaced");
    expect(JSON.parse(JSON.stringify(parse(replaced.text)))).toEqual({
      model: "o",
      mcp_servers: { other: { command: "x" }, waybill: server },
      last: { b: 1 },
    });
    expect(replaced.text).toContain("# mine");
    expect((await edit("codex", replaced.text)).change).toBe("none");
  });

  it("keeps a comment of the table behind a server that is replaced", async () => {
    const before = '[mcp_servers.waybill]\ncommand = "q"\n\n# about z\n[z]\na = 1\n';
    const { text, change } = await edit("codex", before);
    expect([change, text]).toEqual(["replaced", expect.stringContaining("# about z\n[z]\na = 1\n")]);
    expect(text).not.toContain('"q"');
  });

  it("is refused where nothing else could be kept, and where it is no TOML", async () => {
    await expect(edit("codex", "mcp_servers = { other = { command = 'x' } }\n")).rejects.toThrow(/by hand/);
    await expect(edit("codex", 'a = 1\nb = "\n')).rejects.toThrow(/^f:2:\d+ {2}This is not TOML/);
  });
});
