import { afterAll, describe, expect, it } from "vitest";
import { moduleOf, openProject, refusingServer } from "../../test/command-project.ts";

const project = openProject({
  "hello.mjs": moduleOf("shop.hello"),
  "server.mjs": refusingServer("Reads."),
  "api.json": {
    openapi: "3.1.0",
    info: { title: "Parcels", version: "1.0.0" },
    paths: {
      "/parcels": { get: { operationId: "parcel.list", responses: { 200: { description: "All." } } } },
    },
  },
  "waybill.config.json": {
    operations: "hello.mjs",
    mcpServers: { files: { command: process.execPath, args: ["server.mjs"] } },
    openapi: { post: { document: "api.json" } },
  },
});
afterAll(() => project.remove());

describe("what somebody new to the command meets", () => {
  it("completion of lock offers MCP servers alone", async () => {
    const words = async (...args: string[]) =>
      (await project.run(["complete", ...args])).out.split("\n").map((line) => line.split("\t")[0]);
    await project.run(["list"]);
    expect(await words("--", "lock", "")).toEqual(expect.arrayContaining(["files"]));
    for (const name of ["post", "local"]) expect(await words("--", "lock", "")).not.toContain(name);
    expect(await words("--", "inspect", "")).toEqual(expect.arrayContaining(["files", "post"]));
  });
});
