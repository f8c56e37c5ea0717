import { afterEach, describe, expect, it } from "vitest";
import { type CommandProject, moduleOf, openProject } from "../../../test/command-project.ts";

let project: CommandProject;
afterEach(() => project.remove());

/** Reads what it is sent, and never answers. */
const MUTE = "process.stdin.resume(); setInterval(() => {}, 1_000);";
const FILES = {
  "shop.mjs": moduleOf("shop.good"),
  "mute.mjs": MUTE,
  "waybill.config.json": {
    operations: "shop.mjs",
    mcpServers: { mute: { command: process.execPath, args: ["mute.mjs"] } },
  },
};

describe("a source that hangs", () => {
  it("does not hold the others up: list goes on without it, and says so", async () => {
    project = openProject(FILES);
    const { code, out, err } = await project.run(["list", "--timeout", "1s"]);
    expect([code, out]).toEqual([0, expect.stringContaining("shop.good")]);
    expect(err).toBe(
      'waybill: The source "mute" has not come up within 1s, and is left out; --timeout gives it longer.\n',
    );
    expect((await project.run(["list", "--timeout", "1s", "--strict", "-q"])).code).toBe(3);
  });

  it("is not started where it is not wanted", async () => {
    project = openProject(FILES);
    expect(await project.run(["list", "--source", "local"])).toMatchObject({
      code: 0,
      out: expect.stringContaining("shop.good"),
      err: "",
    });
    expect(await project.run(["call", "shop.good", "--source", "local"])).toMatchObject({ out: '"good"\n' });
    const { sources } = JSON.parse((await project.run(["doctor", "--source", "local", "--json"])).out);
    expect(sources).toMatchObject([{ name: "local", state: { status: "up" } }]);
    expect(await project.run(["list", "--source", "lokal"])).toMatchObject({
      code: 2,
      err: expect.stringContaining('There is no source "lokal"; did you mean "local"?'),
    });
  });

  it("is not waited for longer than was said by a call of it", async () => {
    project = openProject(FILES);
    const { code, err } = await project.run(["call", "mute.anything", "--timeout", "1s"]);
    expect([code, err]).toEqual([3, expect.stringContaining('The source "mute" is not there yet')]);
  });
});
