import { afterAll, describe, expect, it } from "vitest";
import { moduleOf, openProject, refusingServer } from "../../test/command-project.ts";

const LONG = `Reads ${"one word after the other ".repeat(8)}and ends.`;
const TICKS = `export const ticks = { namespace: "shop", name: "ticks", version: "1.0.0", type: "subscription", description: "Ticks.",
  async *handler(_, { signal }) {
    yield 1;
    yield 2;
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  } };
`;
const ACCESS = {
  scopes: { allOf: ["a", "b"], anyOf: ["c", "d"] },
  resource: { pointer: "/place/id", type: "place" },
};
const INPUT = { type: "object", properties: { place: { type: "string", description: LONG } } };
const API = {
  openapi: "3.1.0",
  info: { title: "Parcels", version: "1.0.0" },
  paths: {
    "/parcels": {
      get: { operationId: "parcel.list", responses: { 200: { description: "All." } } },
      post: { operationId: "parcel.book", responses: { 200: { description: "Booked." } } },
    },
  },
};

const project = openProject({
  "ticks.mjs": TICKS,
  "guarded.mjs": moduleOf(
    "shop.guarded",
    `access: ${JSON.stringify(ACCESS)}, inputSchema: ${JSON.stringify(INPUT)}, description: ${JSON.stringify(LONG)}`,
  ),
  "server.mjs": refusingServer("Reads."),
  "api.json": API,
  "waybill.config.json": {
    operations: "{ticks,guarded}.mjs",
    mcpServers: { files: { command: process.execPath, args: ["server.mjs"] } },
    openapi: { post: { document: "api.json" } },
  },
});
afterAll(() => project.remove());

describe("what somebody new to the command meets", () => {
  it("completion of lock offers MCP servers alone", async () => {
    const words = async (...args: string[]) =>
      (await project.run(["complete", ...args])).out.split("\n").map((line) => line.split("\t")[0]);
    expect(await words("--", "lock", "")).toEqual(expect.arrayContaining(["files"]));
    for (const name of ["post", "local"]) expect(await words("--", "lock", "")).not.toContain(name);
    expect(await words("--", "inspect", "")).toEqual(expect.arrayContaining(["files", "post"]));
  });
});
