import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { waybill } from "../installed-command.ts";
import { ROOT } from "../run-node.ts";
import { terminalSuite } from "../run-on-terminal.ts";
import { CTRL_C, openTerminalProject, SPINNER, seenOn } from "../terminal-project.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are what is looked for
const COLOUR = /\u001b\[[0-9;]*m/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are what is taken out
const COLOURS = /\u001b\[[0-9;]*m/g;

/** Columns of the few wide letters used here. */
function columnsOf(line: string): number {
  return [...line].reduce(
    (sum, sign) => sum + (/[\u3000-\u9fff\uac00-\ud7a3\uff00-\uff60📦]/u.test(sign) ? 2 : 1),
    0,
  );
}

const folder = openTerminalProject();
const { run, freshFile } = folder;

afterAll(() => folder.remove());

terminalSuite("colours and tables", () => {
  it("are on a terminal, and not in a pipe", async () => {
    const [terminal, pipe, plain] = await Promise.all([
      run(["list"], { columns: 200 }),
      run(["list"], { pipes: ["stdout"] }),
      waybill(["list"], { cwd: folder.path, env: { WAYBILL_STATE_DIR: folder.state } }),
    ]);
    expect(terminal.screen).toMatch(COLOUR);
    expect(terminal.screen).toContain("post.wide");
    expect(pipe.stdout).not.toContain("\u001b");
    expect(pipe.stdout).toContain("by far, the end.");
    expect(plain).toEqual({ code: 0, stdout: pipe.stdout, stderr: "" });
  });

  it.each([
    ["NO_COLOR", { NO_COLOR: "1" }, [], false],
    ["NO_COLOR over FORCE_COLOR", { NO_COLOR: "1", FORCE_COLOR: "1" }, [], false],
    ["an empty NO_COLOR", { NO_COLOR: "" }, [], true],
    ["FORCE_COLOR=0", { FORCE_COLOR: "0" }, [], false],
    ["TERM=dumb", { TERM: "dumb" }, [], false],
    ["--no-color", {}, ["--no-color"], false],
    ["a terminal of few words", { TERM: "vt100" }, [], true],
  ])("%s decides on a terminal", async (_, env, flags, isColoured) => {
    const list = await run(["list", ...flags], { env });
    expect([list.code, COLOUR.test(list.screen)]).toEqual([0, isColoured]);
    if ("TERM" in env && env.TERM === "dumb") expect(list.screen).not.toContain("\u001b");
  });

  it("are in a pipe where FORCE_COLOR says so", async () => {
    const env = { WAYBILL_STATE_DIR: folder.state, FORCE_COLOR: "1" };
    const help = await waybill(["--help"], { cwd: folder.path, env });
    expect(help.stdout).toMatch(COLOUR);
    const call = await waybill(["call", "post.wide"], { cwd: folder.path, env });
    expect(JSON.parse(call.stdout.replaceAll(COLOURS, ""))).toHaveProperty("kg", 2.5);
  });

  it("show data over several lines in colours, in one without with --json and in a pipe", async () => {
    const [pretty, json, pipe] = await Promise.all([
      run(["call", "post.wide"]),
      run(["call", "post.wide", "--json"]),
      run(["call", "post.wide"], { pipes: ["stdout"] }),
    ]);
    const line = '{"city":"東京","kg":2.5,"fragile":true,"note":null}';
    expect(pretty.screen).toMatch(COLOUR);
    expect(seenOn(pretty.screen).split("\n")).toHaveLength(6);
    expect(seenOn(json.screen)).toBe(line);
    expect(json.screen).not.toMatch(COLOUR);
    expect(pipe.stdout).toBe(`${line}\n`);
  });

  it("of errors are on stderr's terminal alone, whatever stdout is", async () => {
    const { stdout, screen, code } = await run(["call", "post.wid"], { pipes: ["stdout"] });
    expect([code, stdout]).toEqual([3, ""]);
    expect(seenOn(screen)).toContain('did you mean "post.wide"?');
  });
});

terminalSuite("the width of a terminal", () => {
  it.each([60, 80, 200])("of %i columns is kept to by tables, with wide letters too", async (columns) => {
    const commands = [["list"], ["list", "--sources"]];
    const runs = await Promise.all(commands.map((args) => run(args, { columns })));
    for (const { screen, code } of runs) {
      expect(code).toBe(0);
      const lines = seenOn(screen).split("\n");
      for (const line of lines) expect(columnsOf(line), line).toBeLessThanOrEqual(columns);
    }
    const lines = seenOn((runs[0] as { screen: string }).screen).split("\n");
    const starts = lines.map((line) =>
      columnsOf(/^.*?(?=\b(?:TYPE\b|query\b|subscri))/.exec(line)?.[0] ?? ""),
    );
    expect(new Set(starts).size, lines.join("\n")).toBe(1);
    // Ids are never cut: what has no room beside them is cut or left out.
    const [head = ""] = lines;
    expect(!head.includes("DESCRIPTION") || lines.some((line) => line.includes("…"))).toBe(columns < 200);
  });

  it("that is very small does not break anything", async () => {
    const runs = await Promise.all([1, 10, 24].map((columns) => run(["list"], { columns })));
    for (const { code, screen } of runs) {
      expect(code).toBe(0);
      expect(screen).toContain("post");
    }
  });

  it("holds for the fields of one operation and for what the doctor finds", async () => {
    const [describes, doctor] = await Promise.all([
      run(["describe", "post.held"], { columns: 60 }),
      run(["doctor"], { columns: 60 }),
    ]);
    expect(describes.code, describes.screen).toBe(0);
    const fields = seenOn(describes.screen)
      .split("\n")
      .filter((line) => /^ {2}(?:FIELD|file|started)/.test(line));
    expect(fields).toHaveLength(3);
    for (const line of fields) expect(columnsOf(line)).toBeLessThanOrEqual(60);
    const table = seenOn(doctor.screen)
      .split("\n\n")
      .filter((part) => part.includes("how it is"));
    expect(table).toHaveLength(1);
    for (const line of table.join().split("\n")) expect(columnsOf(line), line).toBeLessThanOrEqual(60);
  });
});

terminalSuite("progress", () => {
  it("is shown on stderr, and erased", async () => {
    const go = freshFile();
    const ran = await run(["call", "post.held", `file=${go}`], {
      pipes: ["stdout"],
      steps: [{ seen: "calling post\\.held", touch: go }],
    });
    expect([ran.code, ran.left, ran.stdout], ran.screen).toEqual([0, [], '{"held":true}\n']);
    expect(ran.screen).toMatch(SPINNER);
    expect(seenOn(ran.screen)).toBe("");
  });

  it("is shown to a person who could be asked, too", async () => {
    const go = freshFile();
    const steps = [{ seen: "calling post\\.held", touch: go }];
    const ran = await run(["call", "post.held", `file=${go}`, "--timeout", "90s"], { steps });
    expect([ran.code, ran.left], ran.screen).toEqual([0, []]);
    expect(seenOn(ran.screen)).toContain('"held": true');
  });

  it("is not shown for what is quick", async () => {
    const { screen, seconds } = await run(["call", "post.wide"], { pipes: ["stdout"] });
    if (seconds < 0.5) expect(screen).toBe("");
    expect(seenOn(screen)).toBe("");
  });

  it("is not shown with --quiet, nor in a pipe; on a dumb terminal it is a line", async () => {
    const [quiet, pipe, dumb] = await Promise.all([
      run(["call", "post.lasts", "-q"], { pipes: ["stdin", "stdout"] }),
      run(["call", "post.lasts"], { pipes: ["stdin", "stderr"] }),
      run(["call", "post.lasts"], { pipes: ["stdin", "stdout"], env: { TERM: "dumb" } }),
    ]);
    expect([quiet.screen, quiet.stdout]).toEqual(["", '"done"\n']);
    expect(pipe.stderr).toBe("");
    expect(dumb.screen).toBe("calling post.lasts\r\n");
  });

  it("of serve is a line of its own among those of the log", async () => {
    const go = freshFile();
    const mcp = `${process.execPath} ${join(ROOT, "test/mcp-children/waits.js")} ${go} late`;
    const ran = await run(["serve", "--port", "0", "--mcp", mcp], {
      steps: [
        { seen: "Starting sources", touch: go },
        { seen: "Try in another terminal[\\s\\S]*\\n\\r?\\n", type: CTRL_C },
      ],
    });
    expect([ran.code, ran.left], ran.screen).toEqual([0, []]);
    const text = seenOn(ran.screen);
    expect(text).toMatch(/^\d\d:\d\d:\d\d\.\d{3} INFO {2}source up source=mcp operations=2$/m);
  });

  it("makes way for a question of a server, and what is answered arrives", async () => {
    const go = freshFile();
    const mcp = `${process.execPath} ${join(ROOT, "test/mcp-children/waits.js")} ${go}`;
    const ran = await run(["call", "ask", "--mcp", mcp, "--json"], {
      pipes: ["stdout"],
      steps: [
        { seen: "calling mcp\\.ask", touch: go },
        { seen: "Answer it[\\s\\S]*No", type: "y" },
        { seen: "sure[\\s\\S]*No", type: "y" },
      ],
    });
    expect([ran.code, ran.left], ran.screen).toEqual([0, []]);
    expect(ran.stdout).toContain(String.raw`{\"action\":\"accept\",\"content\":{\"sure\":true}}`);
    const question = ran.screen.slice(ran.screen.indexOf("A server asks"), ran.screen.lastIndexOf("sure"));
    expect(question).not.toContain("calling");
  });

  it("is no longer than the terminal is wide", async () => {
    const go = freshFile();
    const ran = await run(["call", "post.held", `file=${go}`], {
      columns: 12,
      pipes: ["stdin", "stdout"],
      steps: [{ seen: "calling", touch: go }],
    });
    for (const frame of ran.screen.replaceAll(COLOURS, "").split("\u001b[2K").slice(1)) {
      const [shown = ""] = frame.split(/\r|\n|\p{Cc}\[/u);
      expect(columnsOf(shown), shown).toBeLessThan(12);
    }
  });
});

describe("without a terminal", () => {
  it("help is as wide as a page, and plain", async () => {
    const { stdout } = await waybill(["serve", "--help"], { env: { WAYBILL_STATE_DIR: folder.state } });
    expect(stdout).not.toContain("\u001b");
    expect(stdout).toContain("Examples:");
  });
});
