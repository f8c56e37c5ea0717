import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCommandLine } from "../../../test/run-command-line.ts";
import type { CheckReport } from "./check-report.ts";

let folder: string;
let service: Server;
let base: string;
let called: string[];

const json = (schema: object) => ({ description: "x", content: { "application/json": { schema } } });
const PET = {
  type: "object",
  required: ["name"],
  properties: { name: { type: "string" }, age: { type: "integer" } },
};
const DOCUMENT = {
  openapi: "3.1.0",
  info: { title: "Pets", version: "1.2.0" },
  servers: [{ url: "/" }],
  paths: {
    "/good": { get: { operationId: "good", responses: { 200: json(PET) } } },
    "/schema": { get: { operationId: "schema", responses: { 200: json(PET) } } },
    "/status": { get: { operationId: "status", responses: { 200: json(PET) } } },
    "/media": { get: { operationId: "media", responses: { 200: json(PET) } } },
    "/lies": { get: { operationId: "lies", responses: { 200: json(PET) } } },
    "/broken": { get: { operationId: "broken", responses: { 200: json(PET) } } },
    "/pets/{id}": {
      parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" } }],
      get: { operationId: "getPet", responses: { 200: json(PET) } },
      delete: { operationId: "dropPet", responses: { 204: { description: "gone" } } },
    },
  },
};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-check-"));
  called = [];
  service = createServer((request, response) => {
    const { method, url = "" } = request;
    if (method !== "HEAD" && url !== "/openapi.json") called.push(`${method} ${url}`);
    const send = (status: number, body: unknown, type = "application/json") =>
      response
        .writeHead(status, { "content-type": type })
        .end(typeof body === "string" ? body : JSON.stringify(body));
    if (url === "/openapi.json") return send(200, DOCUMENT);
    if (url === "/schema") return send(200, { name: 5, age: "old" });
    if (url === "/status") return send(202, { name: "Rex" });
    if (url === "/media") return send(200, "<pet/>", "application/xml");
    if (url === "/lies") return send(200, "{half");
    if (url === "/broken") return send(500, { message: "\u001b[31mboom" });
    if (method === "DELETE") return response.writeHead(204).end();
    return send(200, { name: "Rex", age: 3 });
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
});

afterEach(async () => {
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
  await rm(folder, { recursive: true });
});

const run = (...args: string[]) => runCommandLine(["check", ...args], { cwd: folder });
const reportsOf = (stdout: string) => (JSON.parse(stdout) as { reports: CheckReport[] }).reports;
const failing = ([report]: readonly CheckReport[]) =>
  report?.checks.filter(({ status }) => status === "fail").map(({ id, subject }) => `${id} ${subject}`);

describe("check of an API", () => {
  it("finds every way in which it breaks its document, and calls nothing that may change something", async () => {
    const { code, stdout } = await run(`${base}/openapi.json`, "--json");
    expect(code).toBe(1);
    expect(failing(reportsOf(stdout))).toEqual([
      "openapi.response.schema GET /schema",
      "openapi.response.status GET /status",
      "openapi.response.media GET /media",
      "openapi.call GET /lies",
      "openapi.call GET /broken",
    ]);
    expect(called).toEqual([
      "GET /good",
      "GET /schema",
      "GET /status",
      "GET /media",
      "GET /lies",
      "GET /broken",
    ]);
  });

  it("names what it did not call, with the reason", async () => {
    const { stdout } = await run(`${base}/openapi.json`);
    expect(stdout).toContain("skip  GET /pets/{id}: Not called: it needs id; give an input with --input.\n");
    expect(stdout).toContain("skip  DELETE /pets/{id}: Not called: it may change something;");
  });

  it("calls what is named, with the input given", async () => {
    await run(`${base}/openapi.json`, "--input", 'getPet={"id":7}', "--call", "DELETE /pets/{id}");
    expect(called).toEqual(expect.arrayContaining(["GET /pets/7", "DELETE /pets/1"]));
    const { code, stderr } = await run(`${base}/openapi.json`, "--call", "getPat");
    expect([code, stderr]).toEqual([2, 'waybill: There is no operation "getPat"; did you mean "getPet"?\n']);
  });

  it("reads a file offline, and says what is wrong with it", async () => {
    const bad = {
      openapi: "3.0.3",
      info: { title: "Bad", version: "1" },
      paths: {
        "/a": {
          get: {
            operationId: "same",
            security: [{ nobody: [] }],
            responses: { 200: json({ type: "string", pattern: "(" }) },
          },
        },
        "/b": { get: { operationId: "same", responses: {} }, post: { responses: {} } },
      },
    };
    await writeFile(join(folder, "bad.json"), JSON.stringify(bad));
    const { code, stdout } = await run("bad.json", "--offline", "--json");
    const [report] = reportsOf(stdout);
    expect(code).toBe(1);
    expect(failing(reportsOf(stdout))).toContain("openapi.operation-id same");
    expect(failing(reportsOf(stdout))).toContain("openapi.security GET /a");
    expect(report?.checks.find(({ id }) => id === "openapi.server")?.status).toBe("skip");
    await writeFile(join(folder, "none.yaml"), "a: 1\n");
    expect((await run("none.yaml")).code).toBe(1);
  });

  it("says with 3 that it cannot be reached", async () => {
    expect((await run("http://127.0.0.1:9/openapi.json")).code).toBe(3);
    await writeFile(join(folder, "api.json"), JSON.stringify(DOCUMENT));
    const { code, stdout } = await run("api.json", "--base-url", "http://127.0.0.1:9");
    expect([code, stdout.includes("cannot be reached")]).toEqual([3, true]);
  });
});

describe("check of an API at a private address that a document names", () => {
  const local = () =>
    writeFile(join(folder, "api.json"), JSON.stringify({ ...DOCUMENT, servers: [{ url: base }] }));

  it("calls nothing, says so, and says how to", async () => {
    await local();
    const { code, stdout } = await run("api.json");
    expect([code, called]).toEqual([0, []]);
    expect(stdout).toContain("Nothing was called: 127.0.0.1:");
    expect(stdout).toContain("--allow-private");
    expect(stdout.trimEnd().split("\n").at(-1)).toMatch(/^not called \(the API is at a private address\)/);
    expect(stdout).not.toContain("passed: ");
    const [report] = reportsOf((await run("api.json", "--json")).stdout);
    expect(report?.notCalled).toBe("the API is at a private address");
  });

  it("calls it with --allow-private", async () => {
    await local();
    expect((await run("api.json", "--allow-private")).code).toBe(1);
    expect(called).toContain("GET /good");
  });
});

describe("check and tokens", () => {
  it("gives WAYBILL_TOKEN to nobody that merely looks like a gateway", async () => {
    const seen: (string | undefined)[] = [];
    const looks = createServer((request, response) => {
      seen.push(request.headers.authorization);
      const body = request.url === "/openapi.json" ? JSON.stringify(DOCUMENT) : '{"status":"ok"}';
      response.writeHead(request.url === "/" ? 404 : 200, { "content-type": "application/json" }).end(body);
    });
    await new Promise<void>((resolve) => looks.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(looks.address() as AddressInfo).port}`;
    const env = { PATH: process.env["PATH"], WAYBILL_TOKEN: "sk-very-secret-0123456789" };
    const tokens = async (...args: string[]) => {
      seen.length = 0;
      await runCommandLine(["check", ...args], { cwd: folder, env });
      return new Set(seen.filter((one) => one !== undefined));
    };
    expect(await tokens(url)).toEqual(new Set());
    expect(await tokens(url, "--token-env", "WAYBILL_TOKEN")).toEqual(
      new Set([`Bearer ${env.WAYBILL_TOKEN}`]),
    );
    expect(await tokens("--url", url)).toEqual(new Set([`Bearer ${env.WAYBILL_TOKEN}`]));
    looks.closeAllConnections();
    await new Promise((resolve) => looks.close(resolve));
  });
});

describe("check as a command", () => {
  it("writes for people, failures first, with nothing a terminal acts on", async () => {
    const { stdout } = await run(`${base}/openapi.json`);
    expect(stdout.indexOf("FAIL")).toBeLessThan(stdout.indexOf("skip"));
    expect(stdout).toContain("failed: 5 failed");
    expect(stdout).not.toContain("\u001b");
  });

  it("writes JUnit to stdout or a file", async () => {
    const one = await run(`${base}/openapi.json`, "--junit");
    expect(one.stdout).toMatch(/^<\?xml[\s\S]*<testsuites name="waybill check"[\s\S]*<\/testsuites>\n$/);
    const two = await run(`${base}/openapi.json`, "--junit", "report.xml", "--json");
    expect(await readFile(join(folder, "report.xml"), "utf8")).toBe(one.stdout);
    expect(reportsOf(two.stdout)).toHaveLength(1);
  });

  it("fails for warnings when strict", async () => {
    const document = {
      openapi: "3.1.0",
      info: { title: "T", version: "1.0.0" },
      paths: { "/a": { get: { responses: { 200: { description: "x" } } } } },
    };
    await writeFile(join(folder, "d.json"), JSON.stringify(document));
    expect((await run("d.json", "--offline")).code).toBe(0);
    expect((await run("d.json", "--offline", "--strict")).code).toBe(1);
  });

  it.each([
    [[], /check needs a target/],
    [["nothing.json"], /"nothing.json" does not exist/],
    [["x", "--input", "nonsense"], /--input takes a name and an input/],
    [["x", "--input", "a={half"], /The input of a is not JSON/],
    [["x", "--input", "a=@none.json"], /"none.json" does not exist/],
    [["x", "--base-url", "here"], /--base-url takes an address/],
    [["x", "--timeout", "soon"], /--timeout takes a time/],
    [["x", "--json", "--junit"], /both write to stdout/],
    [["--mcp", "a", "--url", "b"], /check takes one target/],
  ])("says in one line what is wrong with %j", async (args, message) => {
    const { code, stderr, stdout } = await run(...args);
    expect([code, stdout, stderr.split("\n").length]).toEqual([2, "", 2]);
    expect(stderr).toMatch(message);
  });
});
