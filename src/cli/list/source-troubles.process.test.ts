import { afterEach, describe, expect, it } from "vitest";
import { type CommandProject, openProject, refusingServer } from "../../../test/command-project.ts";

let project: CommandProject;
afterEach(() => project.remove());

describe("tools that are not as approved", () => {
  const server = { command: process.execPath, args: ["server.mjs"] };

  it("are marked by list and told by serve, with the command that shows and approves them", async () => {
    project = openProject({
      "server.mjs": refusingServer("Reads."),
      "waybill.config.json": { mcpServers: { files: server }, lock: true },
    });
    expect((await project.run(["lock", "--approve"])).code).toBe(0);
    expect(await project.run(["list"])).toMatchObject({ err: "" });
    project.write({ "server.mjs": refusingServer("Reads more than it did.") });
    const line =
      '1 tool of "files" is refused until it is approved: read (changed). "waybill lock files" shows why, "waybill lock --approve files" approves it.';
    const { out, err } = await project.run(["list"]);
    expect(out).toContain("[refused: changed since it was approved] Reads.");
    expect(out).not.toContain("Reads more");
    expect(err).toBe(`waybill: ${line}\n`);
    const { operations } = JSON.parse((await project.run(["list", "--json"])).out);
    expect(operations).toMatchObject([{ id: "files.read", refused: "changed" }]);
    const { io, stop } = await project.serve();
    await stop();
    expect(io.err()).toContain(`  ! ${line}`);
  });

  it("are new where nothing was approved, and nothing is said where nothing is locked", async () => {
    project = openProject({
      "server.mjs": refusingServer("Reads."),
      "waybill.config.json": { mcpServers: { files: server }, lock: true },
    });
    const line =
      '1 tool of "files" is refused until it is approved: read (new). "waybill lock files" shows why, "waybill lock --approve files" approves it.';
    expect(await project.run(["list"])).toMatchObject({ out: "", err: expect.stringContaining(line) });
    const missing = await project.run(["call", "files.read"]);
    expect([missing.code, missing.err.includes(line)]).toEqual([3, true]);
    project.write({ "waybill.config.json": { mcpServers: { files: server } } });
    const { out, err } = await project.run(["list"]);
    expect([out.includes("refused"), err]).toEqual([false, ""]);
  });
});

describe("why a tool says no", () => {
  it("is told in the same words here and by way of a gateway", async () => {
    project = openProject({
      "server.mjs": refusingServer("Reads."),
      "waybill.config.json": {
        mcpServers: { files: { command: process.execPath, args: ["server.mjs"] } },
      },
    });
    const said = "waybill: tool error: Access denied - path outside the folder\n";
    const here = await project.run(["call", "files.read"]);
    const { url, stop } = await project.serve();
    const there = await project.run(["call", "files.read", "--url", url]);
    await stop();
    expect([here.code, here.err]).toEqual([1, said]);
    expect([there.code, there.err]).toEqual([1, said]);
  });
});
