import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type CommandProject, openProject } from "../../../test/command-project.ts";

let project: CommandProject;
afterEach(() => project.remove());

const PIXEL = Buffer.from([137, 80, 78, 71, 0, 255]);
const RESULTS = {
  say: {
    content: [
      { type: "text", text: "one\u001b[31m\ntwo" },
      { type: "text", text: "three" },
    ],
  },
  shot: {
    content: [
      { type: "text", text: "Done." },
      { type: "image", data: PIXEL.toString("base64"), mimeType: "image/png" },
    ],
  },
  album: {
    content: [
      { type: "image", data: PIXEL.toString("base64"), mimeType: "image/png" },
      { type: "audio", data: Buffer.from("wave").toString("base64"), mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "a:b", blob: Buffer.from("blob").toString("base64") } },
    ],
  },
  many: {
    content: Array.from({ length: 101 }, () => ({ type: "image", data: "AAAA", mimeType: "image/png" })),
  },
  link: { content: [{ type: "resource_link", uri: "notes://1", name: "notes" }] },
  lost: { content: [{ type: "resource_link", uri: "notes://2", name: "notes" }] },
};
const SERVER = `import { createInterface } from "node:readline";
const results = ${JSON.stringify(RESULTS)};
const tools = Object.keys(results).map((name) => ({ name, description: name, inputSchema: { type: "object" } }));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answers = {
    initialize: () => ({ protocolVersion: "2025-06-18", capabilities: { tools: {}, resources: {} }, serverInfo: { name: "s", version: "1.0.0" } }),
    "tools/list": () => ({ tools }),
    "resources/list": () => ({ resources: [] }),
    "resources/templates/list": () => ({ resourceTemplates: [] }),
    "tools/call": () => results[params.name],
    "resources/read": () => params.uri === "notes://1" ? { contents: [{ uri: params.uri, text: "read me" }] } : undefined,
  };
  const result = answers[method]?.();
  const rest = result === undefined ? { error: { code: -32002, message: "none" } } : { result };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...rest }) + "\\n");
}
`;
const FILES = {
  "server.mjs": SERVER,
  "waybill.config.json": { mcpServers: { s: { command: process.execPath, args: ["server.mjs"] } } },
};
const TERMINAL = { columns: 100, env: { NO_COLOR: "1" } };

describe("what a tool answered", () => {
  it("is written as text on a terminal and with --raw, and as JSON in a pipe and with --json", async () => {
    project = openProject(FILES);
    expect((await project.run(["call", "s.say"], TERMINAL)).out).toBe("one\ntwo\nthree\n");
    expect((await project.run(["call", "s.say", "--raw"])).out).toBe("one\ntwo\nthree\n");
    const json = [
      { type: "text", text: expect.stringContaining("two") },
      { type: "text", text: "three" },
    ];
    expect(JSON.parse((await project.run(["call", "s.say"])).out)).toEqual(json);
    expect(JSON.parse((await project.run(["call", "s.say", "--json"], TERMINAL)).out)).toEqual(json);
  });

  it("is saved as what it is: one file under the name given, several numbered, the text on stdout", async () => {
    project = openProject(FILES);
    const read = (name: string): Buffer => readFileSync(join(project.folder, name));
    const one = await project.run(["call", "s.shot", "-o", "shot.png"]);
    expect(one).toEqual({
      code: 0,
      out: "Done.\n",
      err: "waybill: wrote 6 bytes of image/png to shot.png\n",
    });
    expect(read("shot.png")).toEqual(PIXEL);
    const several = await project.run(["call", "s.album", "-o", "all.bin"]);
    expect(several.err.match(/to all-\d\.bin/g)).toEqual(["to all-1.bin", "to all-2.bin", "to all-3.bin"]);
    expect(["all-2.bin", "all-3.bin"].map((name) => read(name).toString())).toEqual(["wave", "blob"]);
    await project.run(["call", "s.say", "-o", "said.txt"]);
    expect(read("said.txt").toString()).toMatch(/two\nthree$/);
  });

  it("writes over no file that was not named, and ends at 100 files", async () => {
    project = openProject({ ...FILES, "all-2.bin": "mine" });
    symlinkSync(join(project.folder, "elsewhere"), join(project.folder, "many-1.png"));
    const { err } = await project.run(["call", "s.album", "-o", "all.bin"]);
    expect(err.match(/to all-\d\.bin/g)).toEqual(["to all-1.bin", "to all-3.bin", "to all-4.bin"]);
    expect(readFileSync(join(project.folder, "all-2.bin"), "utf8")).toBe("mine");
    const many = await project.run(["call", "s.album", "-o", "many.png"]);
    expect(many.err.match(/to many-\d\.png/g)).toEqual(["to many-2.png", "to many-3.png", "to many-4.png"]);
    expect(existsSync(join(project.folder, "elsewhere"))).toBe(false);
    const most = await project.run(["call", "s.many", "-o", "most.png"]);
    expect(most.err).toContain("waybill: 1 more files of the result are not saved.");
    expect(readdirSync(project.folder).filter((name) => name.startsWith("most-"))).toHaveLength(100);
  });

  it("is saved from where it links to, and said where that cannot be", async () => {
    project = openProject(FILES);
    const { err } = await project.run(["call", "s.link", "-o", "notes.txt"]);
    expect(err).toBe("waybill: wrote 7 bytes of text/plain to notes.txt\n");
    expect(readFileSync(join(project.folder, "notes.txt"), "utf8")).toBe("read me");
    expect((await project.run(["call", "s.lost", "-o", "lost.txt"])).err).toContain(
      "waybill: the result links to notes://2, which cannot be read: ",
    );
    expect((await project.run(["call", "s.link"], TERMINAL)).out).toContain("notes://1");
  });
});

describe("how a call of an API ends", () => {
  let api: Server;
  let origin = "";
  beforeAll(async () => {
    api = createServer(({ url = "" }, response) => {
      response.writeHead(Number(url.slice(1)), { "content-type": "application/json" });
      response.end(JSON.stringify({ message: `No: ${url}` }));
    });
    await new Promise<void>((done) => api.listen(0, "127.0.0.1", done));
    origin = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  });
  afterAll(() => api.close());

  const described = (...statuses: string[]) =>
    Object.fromEntries(["200", ...statuses].map((status) => [status, { description: "It." }]));
  const paths = {
    "/404": described("404"),
    "/409": described("4XX"),
    "/403": described("403", "4XX"),
    "/401": described("401"),
    "/408": described("4XX"),
    "/429": described("4XX"),
    "/418": described("default"),
    "/422": described(),
    "/500": described("500", "5XX"),
  };
  const files = () => ({
    "api.json": {
      openapi: "3.1.0",
      info: { title: "A", version: "1" },
      servers: [{ url: origin }],
      paths: Object.fromEntries(
        Object.entries(paths).map(([path, responses]) => [
          path,
          { get: { operationId: `s${path.slice(1)}`, responses } },
        ]),
      ),
    },
    "waybill.config.json": { openapi: { a: { document: "api.json", allowPrivate: true } } },
  });

  it.each([
    ["404", 1],
    ["409", 1],
    ["403", 3],
    ["401", 3],
    ["408", 3],
    ["429", 3],
    ["418", 3],
    ["422", 3],
    ["500", 3],
  ])("%s exits with %i, and what the API said is told", async (status, code) => {
    project = openProject(files());
    const ended = await project.run(["call", `a.s${status}`]);
    expect({ code: ended.code, out: ended.out }).toEqual({ code, out: "" });
    expect(ended.err).toContain(`The source said:\n  > No: /${status}`);
  });
});
