import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SCRIPTED_SERVER, scriptedTool, type UsedFolder, useFolder } from "../installed-folder.ts";
import type { Finished } from "../run-node.ts";

const ERROR = { description: "No.", content: { "application/json": { schema: { type: "object" } } } };
const BOOK = { type: "object", properties: { id: { type: "string" } } };
const OK = { description: "Yes.", content: { "application/json": { schema: BOOK } } };
const ID = [{ name: "id", in: "path", required: true, schema: { type: "string" } }];

/** A small API with a key of its own, as its owner would describe it. */
const library = (url: string) => ({
  openapi: "3.0.3",
  info: { title: "Library", version: "2.1" },
  servers: [{ url }],
  components: { securitySchemes: { key: { type: "apiKey", in: "header", name: "x-key" } } },
  security: [{ key: [] }],
  paths: {
    "/books": {
      post: {
        operationId: "addBook",
        requestBody: {
          required: true,
          content: {
            "application/json": {
              schema: { type: "object", required: ["title"], properties: { title: { type: "string" } } },
            },
          },
        },
        responses: { 201: OK, 422: ERROR },
      },
    },
    "/books/{id}": { get: { operationId: "getBook", parameters: ID, responses: { 200: OK, "4XX": ERROR } } },
    "/slow": { get: { operationId: "slow", responses: { 200: OK } } },
  },
});

function startLibrary(): Server {
  return createServer((request, response) => {
    const answer = (status: number, value: object): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      const { url = "", headers, method } = request;
      if (headers["x-key"] !== "a key of the library") return answer(403, { message: "Shelf 7 is locked." });
      if (url === "/slow") return;
      if (method === "POST")
        return body.includes("Bad") ? answer(422, { message: "Banned." }) : answer(201, { id: body });
      if (url === "/books/1") return answer(200, { id: "1" });
      answer(404, { message: "There is no book 9." });
    });
  });
}

describe("the first hour with the installed command", () => {
  let folder: UsedFolder;
  let api: Server;
  beforeAll(async () => {
    api = startLibrary();
    await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
    folder = useFolder();
    const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
    folder.write("library.json", library(url));
    folder.write("server.mjs", SCRIPTED_SERVER);
    const files = { content: [{ type: "text", text: "Two notes.\n" }] };
    folder.write("tools.json", [scriptedTool("read", "Reads.", {}, files)]);
  });
  afterAll(async () => {
    api.closeAllConnections();
    await new Promise((resolve) => api.close(resolve));
    await folder.remove();
  });

  describe("npx", () => {
    it("RE-30 passes words on, in the order that pages and messages write them", async () => {
      const help = await folder.shell("npx --no waybill help");
      expect([help.code, help.stdout]).toEqual([0, expect.stringContaining("Run a gateway")]);
      const missing = await folder.shell("npx --no waybill frobnicate");
      expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('waybill help" lists')]);
      const one = await folder.shell("npx --no waybill list --help");
      expect(one.stdout).toContain("Usage: waybill list");
      expect(one.stdout).toContain("\n  npx --no waybill list 'parcel.*'");
    });
  });

  describe("an API with a key", () => {
    const call = (words: string, key = "a key of the library"): Promise<Finished> =>
      folder.run(["call", ...words.split(" ")], { env: { LIBRARY_KEY: key } });
    beforeEach(() => {
      folder.write("waybill.config.json", {
        openapi: {
          library: {
            document: "library.json",
            auth: { apiKey: `\${LIBRARY_KEY}` },
            allowPrivate: [`127.0.0.1:${(api.address() as AddressInfo).port}`],
          },
        },
      });
    });

    it("X-11 ends with 3 where the key is refused, with the words of the API", async () => {
      const { code, stderr } = await call("library.getBook id=1", "another key");
      expect([code, stderr]).toEqual([3, expect.stringContaining("> Shelf 7 is locked.")]);
    });

    it("X-5 ends with 1 where the document names the status, by number or by range", async () => {
      const missing = await call("library.getBook id=9");
      expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining("> There is no book 9.")]);
      const banned = await call("library.addBook title=Bad");
      expect([banned.code, banned.stderr]).toEqual([1, expect.stringContaining("> Banned.")]);
    });

    it("RE-30 takes a member of the body by its name, shows that, and says what is missing", async () => {
      const described = await folder.run(["describe", "library.addBook"], { env: { LIBRARY_KEY: "k" } });
      expect(described.stdout).toMatch(/waybill call library\.addBook title=\S+\n/);
      expect(await call("library.addBook title=Hi")).toMatchObject({
        code: 0,
        stdout: `${JSON.stringify({ id: '{"title":"Hi"}' })}\n`,
      });
      const { code, stderr } = await call("library.addBook");
      expect([code, stderr]).toEqual([3, expect.stringContaining("\n  body is missing\n")]);
    });

    it("RE-30 takes times with a unit, and says how a bare number is read", async () => {
      const short = await call("library.slow --timeout 50ms");
      expect([short.code, short.stderr]).toEqual([3, expect.stringContaining("(TIMEOUT)")]);
      expect((await call("library.getBook id=1 --timeout 60")).stderr).toContain("is read as 60s");
    });

    it("RE-30 lets doctor say that a key is asked for and none is given", async () => {
      const { openapi } = JSON.parse(folder.read("waybill.config.json"));
      const { auth: _, ...bare } = openapi.library;
      folder.write("waybill.config.json", { openapi: { library: bare } });
      const { code, stdout } = await folder.run(["doctor"]);
      expect([code, stdout]).toEqual([
        0,
        expect.stringContaining(`fix: Set openapi.library.auth, such as { "apiKey": "\${API_KEY}" }.`),
      ]);
    });
  });

  it("RE-30 takes over what other hosts have, with no secret left in the config and no name said twice", async () => {
    const token = "ntn_41886726139ab8Yc7wXJ1aBcDeFgHiJk";
    const headers = JSON.stringify({ Authorization: `Bearer ${token}`, "Notion-Version": "2022-06-28" });
    const key = "figd_Zx81aaaaBBBBccccDDDDeeeeFFFF0000";
    const server = { command: process.execPath, args: ["server.mjs", "tools.json"] };
    folder.write("taken/desktop.json", {
      mcpServers: {
        notion: { ...server, env: { OPENAPI_MCP_HEADERS: headers } },
        figma: { ...server, env: { FIGMA_API_KEY: key } },
        asana: { url: "https://mcp.asana.example/sse" },
      },
    });
    const cwd = `${folder.path}/taken`;
    const { code, stderr } = await folder.run(["init", "--yes", "--from", "desktop.json"], { cwd });
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(
        /asana: has no credentials\. If it wants a person to log in, run: npx --no waybill login asana/,
      ),
    ]);
    const config = folder.read("taken/waybill.config.json");
    for (const secret of [token, key]) expect(config).not.toContain(secret);
    expect(config).toContain(`\\"Bearer \${NOTION_AUTHORIZATION}\\"`);
    expect(folder.read("taken/.env.waybill").split("\n")).toEqual([
      `NOTION_AUTHORIZATION='${token}'`,
      `FIGMA_API_KEY='${key}'`,
      "",
    ]);
  });

  it("RE-30 connects each host with whole paths, and keeps what its file has", async () => {
    folder.write("hosts/config.toml", 'model = "x"\n');
    folder.write("hosts/mcp.json", '{\n  // mine\n  "inputs": []\n}\n');
    for (const [host, file, member] of [
      ["codex", "config.toml", "[mcp_servers.waybill]"],
      ["vscode", "mcp.json", '"servers"'],
    ] as const) {
      const { code } = await folder.run(
        ["connect", host, "--write", "--yes", "--file", file, "--config", "../waybill.config.json"],
        { cwd: `${folder.path}/hosts` },
      );
      expect(code).toBe(0);
      const text = folder.read(`hosts/${file}`);
      expect(text).toContain(host === "codex" ? 'model = "x"' : "// mine");
      expect(text).toContain(member);
      expect(text).toContain(process.execPath);
      expect(text).toContain(`${folder.path}/waybill.config.json`);
    }
  });

  it("RE-30 starts the sources alone that are named, whoever else hangs", async () => {
    folder.write("hanging/waybill.config.json", {
      mcpServers: {
        notes: { command: process.execPath, args: ["../server.mjs", "../tools.json"] },
        hangs: {
          command: process.execPath,
          args: ["-e", "console.error('loading');setInterval(() => {}, 1e9)"],
        },
      },
    });
    const cwd = `${folder.path}/hanging`;
    const called = await folder.run(["call", "notes.read", "--source", "notes", "--raw"], { cwd });
    expect(called).toMatchObject({ code: 0, stdout: "Two notes.\n" });
  });
});
