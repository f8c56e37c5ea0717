import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ROOT, runCommand } from "../../../test/run-node.ts";

const TITLE = "waybill init on a terminal";
const MISSING = spawnSync("python3", ["-c", "import pty"]).status !== 0;

/** Runs a program on a terminal of its own; for each step waits until a text is on the screen, then types. Prints what came of it. */
const TYPIST = `
import fcntl, json, os, pty, select, struct, sys, termios, time
steps, command = json.loads(sys.argv[1]), sys.argv[2:]
pid, screen = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    os.execv(command[0], command)
seen, at, until = "", 0, time.time() + 100
while time.time() < until:
    if select.select([screen], [], [], 0.05)[0]:
        try:
            data = os.read(screen, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data.decode("utf-8", "replace")
    if steps and steps[0][0] in seen[at:]:
        at = len(seen)
        time.sleep(0.15)
        for key in steps.pop(0)[1]:
            os.write(screen, key.encode())
            time.sleep(0.03)
else:
    os.kill(pid, 9)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps({"code": code, "seen": seen, "left": steps}))
`;

const ENTER = "\r";
const DOWN = "\u001b[B";
const SPACE = " ";
const CTRL_C = "\u0003";

let tools: string;
let cwd: string;
let home: string;

async function writeTypist(): Promise<void> {
  tools = await mkdtemp(join(tmpdir(), "waybill-typist-"));
  await writeFile(join(tools, "typist.py"), TYPIST);
}

type Step = readonly [seen: string, typed: readonly string[]];

async function type(steps: readonly Step[], ...args: string[]): Promise<{ code: number; seen: string }> {
  const command = [process.execPath, join(ROOT, "dist/cli.js"), "init", ...args];
  const { stdout, stderr } = await runCommand(
    "python3",
    [join(tools, "typist.py"), JSON.stringify(steps), ...command],
    {
      cwd,
      env: { HOME: home, TERM: "xterm", CI: "" },
    },
  );
  expect(stderr).toBe("");
  const { code, seen, left } = JSON.parse(stdout);
  expect(left, seen).toEqual([]);
  return { code, seen };
}

function terminalSuite(body: () => void): void {
  if (!MISSING) describe(TITLE, body);
  else if (process.env["CI"] === "true") {
    it(`${TITLE}: python3 is installed`, () => {
      throw new Error("No python3 was found on the PATH.");
    });
  } else describe.skip(`${TITLE} (skipped: no python3 on the PATH)`, body);
}

terminalSuite(() => {
  beforeAll(writeTypist);
  afterAll(() => rm(tools, { recursive: true, force: true }));

  beforeEach(async () => {
    const folder = await mkdtemp(join(tools, "run-"));
    cwd = join(folder, "project");
    home = join(folder, "home");
    await mkdir(cwd);
    await mkdir(home);
  });

  it("asks, and writes what was answered", async () => {
    const { code, seen } = await type([
      ["What should be mounted?", [SPACE, DOWN, SPACE, ENTER]],
      ["Where is the OpenAPI document?", [..."https://shop.example/openapi.json", ENTER]],
      ["Under which name?", [ENTER]],
      ["Which command", [..."npx -y some-server .", ENTER]],
      ["Under which name?", [..."-here", ENTER]],
      ["How should the config be written?", [DOWN, ENTER]],
      ["Which port", ["\u007f", "1", ENTER]],
      ["Serve the inspector", [ENTER]],
    ]);
    expect(code, seen).toBe(0);
    expect(await readFile(join(cwd, "waybill.config.yaml"), "utf8")).toBe(
      [
        "mcpServers:",
        "  some-server-here:",
        "    command: npx",
        "    args:",
        "      - -y",
        "      - some-server",
        "      - .",
        "openapi:",
        "  shop:",
        "    document: https://shop.example/openapi.json",
        "operations: operations/*.{ts,mts,js,mjs}",
        "serve:",
        "  port: 4101",
        "  inspect: true",
        "",
      ].join("\n"),
    );
    expect(seen).toContain("Wrote   waybill.config.yaml");
  });

  it("offers what other hosts have, that of the project first, and shows no secret", async () => {
    const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    const server = { command: "npx", args: ["github"], env: { GITHUB_TOKEN: secret } };
    await writeFile(join(cwd, ".mcp.json"), JSON.stringify({ mcpServers: { github: server } }));
    const { code, seen } = await type(
      [
        ["What should be mounted?", [ENTER]],
        ["Which port", [ENTER]],
        ["Serve the inspector", ["n"]],
      ],
      "--format",
      "ts",
    );
    expect(code, seen).toBe(0);
    expect(seen).toContain("github");
    expect(seen).not.toContain(secret);
    const config = await readFile(join(cwd, "waybill.config.ts"), "utf8");
    expect(config).toContain('import { defineConfig } from "waybill/gateway";');
    expect(config).toContain("export default defineConfig({");
    expect(config).not.toContain(secret);
    expect(config).not.toContain("inspect");
    expect((await readdir(cwd)).sort()).toEqual([".env.waybill", ".mcp.json", "waybill.config.ts"]);
  });

  it("writes nothing when it is left with Ctrl-C, at any question", async () => {
    const first: Step = ["What should be mounted?", [ENTER]];
    const second: Step = ["How should the config be written?", [ENTER]];
    const asked = [
      first,
      second,
      ["Which port", [ENTER]] as const,
      ["Serve the inspector", [ENTER]] as const,
    ];
    for (let at = 0; at < asked.length; at++) {
      const [text] = asked[at] as Step;
      const { code, seen } = await type([...asked.slice(0, at), [text, [CTRL_C]]]);
      expect([code, await readdir(cwd)], seen).toEqual([130, []]);
      expect(seen).toContain("Nothing was written.");
    }
  });

  it("replaces a config only when the person says so", async () => {
    const config = join(cwd, "waybill.config.json");
    await writeFile(config, "mine");
    const no = await type([["Replace it?", [ENTER]]]);
    expect([no.code, await readFile(config, "utf8"), await readdir(cwd)]).toEqual([
      0,
      "mine",
      ["waybill.config.json"],
    ]);
    const yes = await type([
      ["Replace it?", ["y"]],
      ["What should be mounted?", [ENTER]],
      ["How should the config be written?", [ENTER]],
      ["Which port", [ENTER]],
      ["Serve the inspector", [ENTER]],
    ]);
    expect(yes.code, yes.seen).toBe(0);
    expect(await readFile(`${config}.old`, "utf8")).toBe("mine");
    expect(JSON.parse(await readFile(config, "utf8"))).toHaveProperty("operations");
  });

  it("says at once what is wrong with an answer", async () => {
    const { code, seen } = await type([
      ["What should be mounted?", [SPACE, ENTER]],
      ["Where is the OpenAPI document?", [..."none.yaml", ENTER]],
      ["There is no file none.yaml.", [CTRL_C]],
    ]);
    expect([code, await readdir(cwd)], seen).toEqual([130, []]);
  });
});
