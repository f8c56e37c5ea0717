import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { moduleOf, openProject } from "../test/command-project.ts";
import { ROOT, runCommand, runNode } from "../test/run-node.ts";

const CLI = join(ROOT, "dist/cli.js");
const run = (...args: string[]) => runNode([CLI, ...args]);

describe("waybill tour", () => {
  it("shows one of each outcome", async () => {
    const named = await run("tour");
    expect(named).toMatchObject({ code: 0, stderr: "" });
    for (const outcome of ["ok", "tool error", "call error"])
      expect(named.stdout).toContain(`outcome ${outcome}\n`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what must not be there
    expect(named.stdout).not.toMatch(/\u001b/);
  });

  it("writes one line of JSON for each stop when asked", async () => {
    const { code, stdout } = await run("tour", "--json");
    expect(code).toBe(0);
    const stops = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(stops.map((stop) => [stop.operation, stop.outcome, stop.error?.code])).toEqual([
      ["parcel.track", "ok", undefined],
      ["archive.find", "ok", undefined],
      ["parcel.track", "tool error", undefined],
      ["parcel.book", "call error", "VALIDATION_ERROR"],
      ["parcel.deliver", "call error", "ACCESS_DENIED"],
      ["parcel.plan", "call error", "OPERATION_NOT_FOUND"],
      ["parcel.watch", "call error", "TIMEOUT"],
      ["parcel.watch", "ok", undefined],
    ]);
    expect(stops[0].envelopes[0].data).toEqual({
      id: "P-1001",
      to: "Lisbon",
      kg: 2.5,
      status: "delivered",
      bookedAt: "2026-01-05T08:15:00.000Z",
      deliveredAt: "2026-01-05T16:40:00.000Z",
      signedBy: "Ines",
    });
    expect(stops[1].envelopes[0].data).toEqual({ id: "P-7", kg: 2.5, to: "Lisbon", status: "in transit" });
    expect(stops[1].envelopes[0].meta.waybill.normalization).toMatchObject({
      stripped: ["/internalNote"],
      defaulted: ["/status"],
      converted: ["/kg"],
    });
    expect(stops[7].envelopes.map(({ data }: { data: { what: string } }) => data.what)).toEqual([
      "booked",
      "delivered",
    ]);
  });

  it("ends quietly when its reader leaves after the first line", async () => {
    const child = spawn(process.execPath, [CLI, "tour", "--json"], { stdio: ["ignore", "pipe", "pipe"] });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.stdout.once("data", () => child.stdout.destroy());
    const code = await new Promise((resolve) => child.on("close", resolve));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });
});

describe("the waybill command", () => {
  it("writes results alone to stdout, whatever a module and a handler print", async () => {
    const project = openProject({
      "ops.mjs": `console.log("loaded");\n${moduleOf("shop.hello").replace("=> ", '=> console.info("called") ?? ')}`,
      "waybill.config.json": { operations: "ops.mjs" },
    });
    const { code, stdout, stderr } = await runCommand(process.execPath, [CLI, "call", "shop.hello", "-q"], {
      cwd: project.folder,
      env: { ...process.env, WAYBILL_STATE_DIR: join(project.folder, "state") },
    });
    project.remove();
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '"hello"\n', stderr: "loaded\ncalled\n" });
  });

  it("prints its help and its version", async () => {
    const help = await run("--help");
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining("Usage: waybill"), stderr: "" });
    expect(await run()).toEqual(help);
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(await run("--version")).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  it.each([
    [["tuor"], 'waybill: there is no command "tuor"; did you mean "tour"?\n'],
    [
      ["tour", "twice"],
      'waybill: "tour" takes fewer arguments; "node dist/cli.js tour --help" tells more.\n',
    ],
    [["--jsno"], 'waybill: there is no option --jsno; "node dist/cli.js help" lists what there is.\n'],
    [["-x"], 'waybill: there is no option -x; "node dist/cli.js help" lists what there is.\n'],
    [
      ["--constructor"],
      'waybill: there is no option --constructor; "node dist/cli.js help" lists what there is.\n',
    ],
    [["tour", "--jsno"], "waybill: there is no option --jsno; did you mean --json?\n"],
  ])("answers %j with one line and exit code 2", async (args, stderr) => {
    expect(await run(...args)).toEqual({ code: 2, stdout: "", stderr });
  });
});
