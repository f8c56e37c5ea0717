import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { moduleOf, openProject } from "../../test/command-project.ts";

/** A module that leaves a file behind when it is loaded, and has one operation. */
const traced = (mark: string, id: string) =>
  `import { writeFileSync } from "node:fs";\nwriteFileSync(new URL("./ran-${mark}", import.meta.url), "");\n${moduleOf(id)}`;

const leaveMark = (mark: string) =>
  `require("node:fs").writeFileSync("ran-${mark}", ""); process.stdin.resume();`;

const project = openProject({
  "shop.mjs": traced("module", "shop.hello"),
  "waybill.config.mjs": `import { writeFileSync } from "node:fs";
writeFileSync(new URL("./ran-config", import.meta.url), "");
export default {
  operations: "shop.mjs",
  mcpServers: { files: { command: process.execPath, args: ["-e", ${JSON.stringify(leaveMark("server"))}], connectTimeoutMs: 300 } },
};
`,
});
afterAll(() => project.remove());

const marks = () => readdirSync(project.folder).filter((name) => name.startsWith("ran-"));
const complete = async (...words: string[]) => {
  const { code, out, err } = await project.run(["complete", "--", ...words]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out.split("\n").map((line) => line.split("\t")[0]);
};

describe("completion", () => {
  it("RE-30 loads no config, loads no module and starts no server, found or typed", async () => {
    for (const command of ["call", "describe", "list", "lock", "check", "inspect"])
      await complete(command, "");
    const typed = `${process.execPath} -e '${leaveMark("typed")}'`;
    await complete("call", "--mcp", typed, "");
    await complete("call", `--mcp=${typed}`, "");
    await complete("list", "--config", "waybill.config.mjs", "");
    expect(marks()).toEqual([]);
    expect(existsSync(join(project.folder, "state"))).toBe(false);
  });

  it("RE-30 offers the names that an earlier command has kept, and loads nothing for them", async () => {
    expect((await project.run(["list"])).out).toContain("shop.hello");
    expect(marks()).not.toEqual([]);
    for (const mark of marks()) rmSync(join(project.folder, mark));
    expect(await complete("call", "sh")).toContain("shop.hello");
    expect(await complete("lock", "")).toContain("files");
    expect(await complete("call", "--source", "fi")).toContain("files");
    project.write({ "waybill.config.mjs": "throw new Error('it was loaded')" });
    expect(await complete("call", "sh")).toContain("shop.hello");
    expect(marks()).toEqual([]);
  });

  it("RE-30 offers the words that an argument or a flag may be", async () => {
    expect(await complete("connect", "")).toEqual(
      expect.arrayContaining(["claude", "cursor", "vscode", "codex"]),
    );
    expect(await complete("approvals", "")).toEqual(
      expect.arrayContaining(["list", "show", "approve", "deny"]),
    );
    expect(await complete("tasks", "wa")).toContain("wait");
    expect(await complete("auth", "")).toContain("status");
    expect(await complete("init", "--format", "")).toEqual(expect.arrayContaining(["json", "yaml", "ts"]));
    expect(await complete("encode", "--to", "")).toContain("status-envelope");
  });

  it("RE-30 keeps names where nobody else can read them", async () => {
    const folder = join(project.folder, "state", "names");
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  });
});
