import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLI, openFolder, waybill } from "../installed-command.ts";
import { HARDENED, HARDENED_FLAGS, runCommand } from "../run-node.ts";
import { runOnTerminal, terminalSuite } from "../run-on-terminal.ts";

const MODULE = `
import { defineOperation, Type } from "waybill";
const common = { version: "1.0.0", type: "query", inputSchema: Type.Object({}), outputSchema: Type.Unknown() };
export const one = defineOperation({ ...common, namespace: "garden", name: "water", description: "Waters $(touch ran-1) it.", handler: () => 1 });
export const two = defineOperation({ ...common, namespace: "garden", name: "weed", description: "Weeds it.", handler: () => 2 });
`;

const folder = openFolder();
/** No config is found from here. */
const outside = openFolder();
const bin = join(folder.state, "bin");
const config = join(folder.path, "waybill.config.json");

beforeAll(() => {
  mkdirSync(bin);
  const flags = HARDENED ? HARDENED_FLAGS : [];
  const words = [process.execPath, ...flags, CLI].map((word) => `'${word}'`).join(" ");
  writeFileSync(join(bin, "waybill"), `#!/bin/sh\nexec ${words} "$@"\n`);
  chmodSync(join(bin, "waybill"), 0o755);
  mkdirSync(join(folder.path, "bare"));
  writeFileSync(join(folder.path, "garden.mjs"), MODULE);
  const mcpServers = { toolshed: { command: "no-such-command-here" } };
  writeFileSync(config, JSON.stringify({ operations: "garden.mjs", mcpServers }));
  writeFileSync(join(folder.path, "result.json"), "{}");
});

afterAll(() => {
  folder.remove();
  outside.remove();
});

function environment(): Record<string, string> {
  return {
    PATH: `${bin}:${process.env["PATH"]}`,
    WAYBILL_STATE_DIR: folder.state,
    HOME: folder.state,
    INPUTRC: "/dev/null",
    HISTFILE: "/dev/null",
  };
}

const READY = "ready> ";

/** A list of candidates with this one is there in whole: the shell writes what was typed once more behind it. */
const listed = (name: string): string => `${name}[\\s\\S]*${READY}`;

/**
 * Types a line into an interactive bash that has loaded the script, and presses TAB twice; `wanted` is what has to appear. The shell
 * is then ended, so that nothing of the line runs.
 */
async function complete(line: string, wanted: string, cwd = folder.path): Promise<string> {
  const ran = await runOnTerminal(["/bin/bash", "--norc", "--noprofile", "-i"], {
    cwd,
    columns: 200,
    env: { ...environment(), PS1: READY, TERM: "dumb" },
    within: 100,
    steps: [
      {
        seen: READY,
        type: "bind 'set bell-style none'; bind 'set page-completions off'; source <(waybill completion bash); echo loa''ded\r",
      },
      { seen: `loaded[\\s\\S]*${READY}`, type: `${line}\t\t` },
      { seen: wanted, signal: "SIGKILL" },
    ],
  });
  expect(ran.left, ran.screen).toEqual([]);
  return ran.screen.slice(ran.screen.indexOf("loaded"));
}

terminalSuite("completion in an interactive bash", () => {
  // Names are those that an earlier command has kept.
  beforeAll(async () => {
    await waybill(["list"], { cwd: folder.path, env: environment() });
    await waybill(["list"], { cwd: outside.path, env: environment() });
  });

  it("knows the commands", async () => {
    const screen = await complete("waybill ", listed("transcode"));
    for (const name of [
      "serve",
      "init",
      "doctor",
      "list",
      "describe",
      "call",
      "types",
      "decode",
      "encode",
      "check",
      "lock",
    ])
      expect(screen).toContain(name);
    expect(screen).not.toMatch(/\bcomplete\b/);
  });

  it("finishes a command of which there is one", async () => {
    await complete("waybill desc", "waybill describe");
  });

  it("knows the flags of a command", async () => {
    const screen = await complete("waybill call garden.water --", listed("--idempotency-key"));
    for (const flag of ["--envelope", "--format", "--take", "--json", "--timeout", "--config"])
      expect(screen).toContain(flag);
  });

  it("knows the operations of the embedded default", async () => {
    const screen = await complete("waybill call parcel.", listed("parcel\\.watch"), outside.path);
    for (const name of ["parcel.book", "parcel.list", "parcel.track"]) expect(screen).toContain(name);
  });

  it("knows the operations of a config, and runs nothing of what they say", async () => {
    const screen = await complete("waybill call garden.w", listed("garden\\.weed"));
    expect(screen).toContain("garden.water");
    expect(screen).not.toContain("parcel.");
    expect(existsSync(join(folder.path, "ran-1"))).toBe(false);
  });

  it("finishes an operation of which there is one", async () => {
    await complete("waybill describe garden.we", "describe garden\\.weed");
  });

  it("knows the operations of a config that is named", async () => {
    const cwd = join(folder.path, "bare");
    await complete("waybill call --config ../waybill.config.json garden.wa", "garden\\.water", cwd);
  });

  it("knows the sources, also of those that are down", async () => {
    await complete("waybill lock tool", "lock toolshed");
  });

  it("knows the formats", async () => {
    const screen = await complete("waybill call garden.water --format t", listed("tool-envelope"));
    expect(screen).toContain("tiered-envelope");
    expect(screen).not.toContain("status-envelope");
  });

  it("knows files where files are wanted", async () => {
    await complete("waybill decode res", "decode result\\.json");
  });

  it("runs nothing of what was typed", async () => {
    await complete('waybill call "$(touch ran-2)" --env', "--envelope");
    expect(existsSync(join(folder.path, "ran-2"))).toBe(false);
  });
});

describe("completion scripts", () => {
  const script = async (shell: string): Promise<string> => {
    const ran = await waybill(["completion", shell], { env: environment() });
    expect([ran.code, ran.stderr]).toEqual([0, ""]);
    return ran.stdout;
  };

  it("of bash may be loaded twice, in strict mode, without noise", async () => {
    const line = `set -eu; source <(waybill completion bash); source <(waybill completion bash); complete -p waybill`;
    const ran = await runCommand("/bin/bash", ["--norc", "-c", line], {
      cwd: folder.path,
      env: environment(),
    });
    expect([ran.code, ran.stderr]).toEqual([0, ""]);
    expect(ran.stdout).toContain("waybill");
  });

  for (const shell of ["bash", "zsh", "fish"]) {
    const isMissing = spawnSync(shell, ["--version"]).error !== undefined;
    const title = `of ${shell} is understood by that shell`;
    it.skipIf(isMissing)(isMissing ? `${title} (skipped: no ${shell} on the PATH)` : title, async () => {
      const file = join(folder.state, `script.${shell}`);
      writeFileSync(file, await script(shell));
      const ran = await runCommand(shell, ["-n", file]);
      expect([ran.code, ran.stderr]).toEqual([0, ""]);
    });
  }

  it.each([
    ["zsh", "compdef"],
    ["fish", "complete -c waybill"],
    ["powershell", "Register-ArgumentCompleter"],
  ])("of %s registers itself", async (shell, word) => expect(await script(shell)).toContain(word));

  it("hear nothing but words, even where the config is broken or nothing answers", async () => {
    const broken = join(folder.path, "bare", "broken.json");
    writeFileSync(broken, "{");
    const cases = [
      ["call", "--config", broken, "x"],
      ["call", "--mcp", "no-such-command-here", "x"],
      ["call", "--url", "http://127.0.0.1:1", "x"],
      ["nonsense", "x"],
      ["call", "$(touch ran-3)", ""],
      [""],
      [],
    ];
    for (const words of cases) {
      const ran = await waybill(["complete", "--", ...words], { cwd: folder.path, env: environment() });
      expect([ran.code, ran.stderr], words.join(" ")).toEqual([0, ""]);
    }
  });
});
