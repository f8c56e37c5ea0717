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
      post: { operationId: "parcel.book", summary: "Books.", responses: { 200: { description: "Booked." } } },
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
  it("transcode says which flag it needs, in one sentence", async () => {
    expect(await project.run(["transcode"])).toEqual({
      code: 2,
      out: "",
      err: 'waybill: "transcode" needs --to <format>; "waybill transcode --help" tells more.\n',
    });
  });

  it("an operation of one document needs no namespace, and hints keep the flags that were given", async () => {
    const { code, err } = await project.run(["call", "parcel.list", "--openapi", "api.json"]);
    expect([code, err]).toEqual([
      3,
      expect.stringContaining("names no server, or a relative one. Say where the API is with --base-url. ("),
    ]);
    const missing = await project.run(["call", "parcel.zzzzzzz", "--openapi", "api.json"]);
    expect(missing.err).toBe(
      'waybill: There is no operation "parcel.zzzzzzz"; "waybill list --openapi api.json" shows what there is.\n',
    );
    const near = await project.run(["call", "parcel.lst", "--openapi", "api.json"]);
    expect(near.err).toContain('did you mean "api.parcel.list"?');
  });

  it("where the API of a config is, is said with the field of the config", async () => {
    const { err } = await project.run(["call", "post.parcel.list"]);
    expect(err).toContain("Say where the API is with openapi.post.baseUrl. (");
    const { out } = await project.run(["doctor", "--openapi", "api.json"]);
    expect(out).toContain("fix: Say where the API is with --base-url.");
    expect(out).not.toContain("Pass baseUrl");
  });

  it("describe writes a title once where the description says the same", async () => {
    const { out } = await project.run(["describe", "parcel.book", "--openapi", "api.json"]);
    expect(out).toMatch(/^api\.parcel\.book {2}Books\.\n\n {2}type /);
  });

  it("describe writes access in words, and breaks descriptions where the terminal ends", async () => {
    const plain = await project.run(["describe", "shop.guarded"]);
    expect(plain.out).toContain(
      '  access   needs the scopes a and b, one of the scopes c or d and the place that "place.id" of the input names\n',
    );
    expect(plain.out).toContain(LONG);
    const { out } = await project.run(["describe", "shop.guarded"], { columns: 60 });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours
    const lines = out.replace(/\u001b\[\d*m/g, "").split("\n");
    const [title = "", ...rest] = lines;
    expect(title).toContain("shop.guarded");
    const described = rest.slice(0, rest.indexOf("", 1)).join(" ").trim();
    expect(described).toBe(LONG);
    const table = lines.slice(lines.findIndex((line) => line.includes("FIELD")));
    expect(table.slice(0, table.indexOf("")).join(" ").replace(/\s+/g, " ")).toContain("other and ends.");
    for (const line of [...rest.slice(0, 6), ...table.slice(0, 8)])
      expect(line.length).toBeLessThanOrEqual(60);
  });

  it("describe tells what is always needed from what one of several ways needs", async () => {
    const ways = ["page", "base"].map((name) => ({
      properties: { kind: {}, [name]: { type: "string" } },
      required: ["kind", name],
    }));
    const inputSchema = { type: "object", properties: { to: { oneOf: ways } }, required: ["to"] };
    project.write({ "ops/w.mjs": moduleOf("w.w", `inputSchema: ${JSON.stringify(inputSchema)}`) });
    project.write({ "w.config.json": { operations: "ops/w.mjs" } });
    const { out } = await project.run(["describe", "w.w", "--config", "w.config.json"]);
    expect(out).toMatch(/^ {2}to +object +yes *$/m);
    expect(out).toMatch(/^ {2}to\.kind +any +yes *$/m);
    expect(out).toMatch(/^ {2}to\.page +string +depends *$/m);
    expect(out).toMatch(/^ {2}to\.base +string +depends *$/m);
  });

  it("describe shows no bounds that every exact integer has", async () => {
    const count = { type: "integer", minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };
    const inputSchema = { type: "object", properties: { count, kg: { type: "integer", maximum: 3 } } };
    project.write({ "ops/n.mjs": moduleOf("n.n", `inputSchema: ${JSON.stringify(inputSchema)}`) });
    project.write({ "n.config.json": { operations: "ops/n.mjs" } });
    const { out } = await project.run(["describe", "n.n", "--config", "n.config.json"]);
    expect(out).toMatch(/^ {2}count +integer *$/m);
    expect(out).toMatch(/^ {2}kg +integer ≤ 3 *$/m);
  });

  it("text that ends its last line is written as it is", async () => {
    project.write({ "ops/text.mjs": moduleOf("text.two", "handler: () => 'one\\ntwo\\n'") });
    project.write({ "text.config.json": { operations: "ops/text.mjs" } });
    const { out } = await project.run(["call", "text.two", "--raw", "--config", "text.config.json"]);
    expect(out).toBe("one\ntwo\n");
  });

  it("a subscription that gave values before its time was over says how many", async () => {
    const { code, out, err } = await project.run(["call", "shop.ticks", "--timeout", "300ms"]);
    expect([code, out]).toEqual([3, "1\n2\n"]);
    expect(err).toBe(
      'waybill: "shop.ticks" gave 2 values, which are written, and had not ended when its time was over. (TIMEOUT)\n  --take ends it after so many, without a failure.\n',
    );
  });
});
