import { chmodSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type CommandProject, moduleOf, openProject } from "../../../test/command-project.ts";
import { runInShell, SHELLS } from "../../../test/installed-shells.ts";

let project: CommandProject;
afterEach(() => project.remove());

const ATTACKS: readonly Readonly<Record<string, unknown>>[] = [
  // What a terminal acts on is not shown, and took the quotes around it along.
  { a: "x\u001b", b: "y", c: "; touch pwned #" },
  { a: "x\u009b", b: "y", c: "; touch pwned #" },
  { a: "x\u001b]", b: "; touch pwned #\u0007", c: "; touch pwned #" },
  // In the quotes of fish, a backslash is one only where no quote and no other follows.
  { a: "x\\'; touch pwned #" },
  { a: "x\\\\'; touch pwned #\\" },
  { a: "\\", b: "; touch pwned #" },
  { "k\u001b": "x", b: "y", c: "; touch pwned #" },
  { a: ["it's", "\u202e$(touch pwned)`touch pwned`", { b: "'; touch pwned #" }], c: "\n; touch pwned" },
];

describe("the example of waybill describe", () => {
  it.each(ATTACKS)("means in every shell what the schema asks for: %j", async (input) => {
    const properties = Object.fromEntries(
      Object.entries(input).map(([name, value]) => [name, { const: value }]),
    );
    const schema = { type: "object", properties, required: Object.keys(input) };
    project = openProject({
      "ops.mjs": moduleOf("odd.one", `inputSchema: ${JSON.stringify(schema)}`),
      "waybill.config.json": { operations: ["ops.mjs"] },
      "bin/waybill": `#!${process.execPath}\nconsole.log(JSON.stringify(process.argv.slice(2)));\n`,
    });
    chmodSync(join(project.folder, "bin/waybill"), 0o755);
    const { out } = await project.run(["describe", "odd.one"]);
    const example = out.slice(out.indexOf("Example\n") + 8).trim();
    const env = { ...process.env, PATH: `${join(project.folder, "bin")}${delimiter}${process.env["PATH"]}` };
    expect(SHELLS).toContain("bash");
    for (const shell of SHELLS) {
      const words: string[] = JSON.parse(runInShell(shell, example, { env, cwd: project.folder }));
      expect([shell, words.slice(0, 2)]).toEqual([shell, ["call", "odd.one"]]);
      const ran = await project.run([...words, "--json"]);
      expect([shell, ran]).toMatchObject([shell, { code: 0, out: '"one"\n' }]);
    }
    expect(readdirSync(project.folder)).not.toContain("pwned");
  });
});
