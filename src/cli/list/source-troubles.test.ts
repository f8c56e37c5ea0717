import { afterEach, describe, expect, it } from "vitest";
import { type CommandProject, moduleOf, openProject } from "../../../test/command-project.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import { downLines } from "./source-troubles.ts";

let project: CommandProject;
afterEach(() => project.remove());

const BROKEN = {
  "ops/good.mjs": moduleOf("shop.good"),
  "ops/bad.mjs": "export const x = 1;\nconst y = ;\n",
  "ops/throws.mjs": "throw new Error('no \\u001b[31mdatabase');",
  "waybill.config.json": { operations: ["ops/*.mjs", "more/*.mjs"], serve: { port: 0 } },
};

describe("modules of operations that cannot be used", () => {
  it("are told on stderr by list, with the place and the reason, and patterns that find nothing", async () => {
    project = openProject(BROKEN);
    const { code, out, err } = await project.run(["list"]);
    expect([code, out.split("\n")[1]]).toEqual([0, expect.stringContaining("shop.good")]);
    expect(err.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^waybill: ops.bad\.mjs: It cannot be loaded\. .*(?:Line |:)2:/),
      expect.stringMatching(/^waybill: ops.throws\.mjs: It cannot be loaded\. no database$/),
      'waybill: No file is found by "more/*.mjs", which "operations" of the config names.',
    ]);
    const json = await project.run(["list", "--json"]);
    expect(json.err.replace(/\?load=\d+/, "")).toBe(err);
  });

  it("are told by call where an operation is missing, and not where it is there", async () => {
    project = openProject(BROKEN);
    const { code, err } = await project.run(["call", "shop.nothing_like_it"]);
    expect(code).toBe(3);
    expect(err).toMatch(/^waybill: There is no operation "shop\.nothing_like_it"; "waybill list" shows/);
    expect(err).toMatch(/\n {2}ops.bad\.mjs: It cannot be loaded\. .*(?:Line |:)2:/);
    expect(err).toMatch(/\n {2}No file is found by "more\/\*\.mjs"/);
    expect(await project.run(["call", "shop.good"])).toEqual({ code: 0, out: '"good"\n', err: "" });
  });

  it("are told by call where all of them are broken", async () => {
    project = openProject({
      "bad.mjs": "const y = ;\n",
      "waybill.config.json": { operations: "*.mjs" },
    });
    expect((await project.run(["call", "shop.any"])).err).toMatch(
      /\n {2}The source "local" is down: bad\.mjs: It cannot be loaded\. .*(?:Line |:)1:/,
    );
  });

  it("are five by name at most", async () => {
    const broken = Array.from({ length: 7 }, (_, at) => [`ops/b${at}.mjs`, "const y = ;\n"]);
    project = openProject({
      ...Object.fromEntries(broken),
      "ops/good.mjs": moduleOf("shop.good"),
      "waybill.config.json": { operations: "ops/*.mjs" },
    });
    const { err } = await project.run(["list", "-c", "waybill.config.json"]);
    const lines = err.trimEnd().split("\n");
    expect(lines).toHaveLength(6);
    expect(lines[5]).toBe(
      'waybill: 2 more cannot be used; "waybill list --sources --json --config waybill.config.json" names them.',
    );
  });

  it("have doctor say that no file is found, and nothing of a policy", async () => {
    project = openProject({ "waybill.config.json": { operations: "more/*.mjs", serve: { port: 0 } } });
    const { code, out } = await project.run(["doctor"]);
    expect([code, out]).toEqual([
      1,
      expect.stringContaining('problem  source local: no file is found by "more/*.mjs"\n  fix: Correct'),
    ]);
    expect(out).not.toContain("policy");
    expect(out).not.toContain("not taken over");
  });

  it("are told with the last lines of standard error, all of them with --verbose", () => {
    const stderr = Array.from({ length: 7 }, (_, i) => `line ${i + 1}`);
    const report = (reason: string, lines: readonly string[]): SourceReport => ({
      name: "files",
      kind: "mcp",
      target: "files",
      state: { status: "down", since: 0, reason },
      operations: 0,
      offered: 0,
      unusable: [],
      notes: [],
      stderr: lines,
    });
    const lines = downLines([report("It ended.", stderr)]);
    expect(lines).toEqual([
      'The source "files" is down: It ended.',
      "  its last lines on standard error, 2 more with --verbose:",
      ...stderr.slice(2).map((line) => `  | ${line}`),
    ]);
    expect(downLines([report("It ended.", stderr)], true)).toHaveLength(9);
    const told = downLines([report("It ended.", ["no key", "  }", "]", "npm notice New version"])]);
    expect(told.slice(1)).toEqual([
      "  its last lines on standard error, 3 more with --verbose:",
      "  | no key",
    ]);
    expect(downLines([report("It ended; it last said: no key.", ["no key."])])).toHaveLength(1);
  });

  it("are in what serve announces", async () => {
    project = openProject(BROKEN);
    const { io, stop } = await project.serve();
    await stop();
    expect(io.err()).toContain('  ! No file is found by "more/*.mjs"');
    expect(io.err()).toMatch(/ {2}! ops.bad\.mjs: It cannot be loaded/);
  });
});
