import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { useDoctorFolder } from "../../../test/doctor-folder.ts";
import { type Diagnosis, examineSource } from "./examine-sources.ts";
import { examineBus, examineNode, examinePackages, examinePort } from "./run-doctor.ts";

const { run, setConfig, write } = useDoctorFolder();

describe("doctor", () => {
  it("tells each problem once, with what to do", async () => {
    await setConfig({ mcpServers: { gone: { command: "/no/such/program" } }, serve: { port: 0 } });
    const { stdout } = await run();
    expect(stdout.match(/source gone/g)).toHaveLength(1);
    expect(stdout.match(/down:/g)).toHaveLength(1);
    expect(stdout.trimEnd().split("\n").at(-1)).toBe("1 problem");
  });

  it("looks at the APIs behind documents: away, at a private address, or there", async () => {
    const server = createServer((_, response) => response.writeHead(404).end());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const here = `http://127.0.0.1:${port}`;
    const document = {
      openapi: "3.1.0",
      info: { title: "T", version: "1.0.0" },
      servers: [{ url: here }],
      paths: { "/a": { get: { operationId: "a", responses: { 200: { description: "x" } } } } },
    };
    await write("api.json", document);
    const openapi = {
      shut: { document: "api.json" },
      open: { document: "api.json", allowPrivate: [`127.0.0.1:${port}`] },
      away: { document: "api.json", baseUrl: "http://127.0.0.1:9" },
    };
    await setConfig({ openapi, serve: { port: 0 } });
    const { code, stdout } = await run("--json");
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const { diagnoses } = JSON.parse(stdout) as { diagnoses: Diagnosis[] };
    const found = Object.fromEntries(
      diagnoses.filter(({ area }) => area === "api").map((one) => [one.subject, one]),
    );
    expect(code).toBe(1);
    expect(found["open"]).toMatchObject({ status: "ok", message: `${here} answers` });
    expect(found["shut"]).toMatchObject({
      status: "problem",
      fix: `If you mean it, set openapi.shut.allowPrivate to ["127.0.0.1:${port}"].`,
    });
    expect(found["away"]).toMatchObject({
      status: "problem",
      message: "http://127.0.0.1:9: 127.0.0.1:9 cannot be reached.",
      fix: "Start the API, or correct openapi.away.baseUrl.",
    });
  });

  it("tells which document asks for credentials that the config does not give", async () => {
    const server = createServer((_, response) => response.writeHead(403).end());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await write("keyed.json", {
      openapi: "3.0.3",
      info: { title: "T", version: "1.0.0" },
      servers: [{ url: `http://127.0.0.1:${port}` }],
      components: { securitySchemes: { key: { type: "apiKey", in: "header", name: "X-Key" } } },
      security: [{ key: [] }],
      paths: { "/a": { get: { operationId: "a", responses: { 200: { description: "x" } } } } },
    });
    const api = { document: "keyed.json", allowPrivate: [`127.0.0.1:${port}`] };
    await setConfig({ openapi: { bare: api, keyed: { ...api, auth: { apiKey: "k" } } }, serve: { port: 0 } });
    const { stdout } = await run("--json");
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const { diagnoses } = JSON.parse(stdout) as { diagnoses: Diagnosis[] };
    const notes = diagnoses.filter(({ area, status }) => area === "api" && status === "note");
    expect(notes).toEqual([
      {
        area: "api",
        subject: "bare",
        status: "note",
        message: "its document asks for credentials, and none are given",
        fix: `Set openapi.bare.auth, such as { "apiKey": "\${API_KEY}" }.`,
      },
    ]);
  });

  it("tells what is worst first, and how many notes there are besides", async () => {
    await setConfig({
      mcpServers: { off: { command: "x", disabled: true }, gone: { command: "/no/such/program" } },
      policies: { "goone.*": { cacheMs: 1 } },
      serve: { port: 0 },
    });
    const { stdout } = await run("--json");
    const { diagnoses } = JSON.parse(stdout) as { diagnoses: Diagnosis[] };
    const weights = diagnoses.map(({ status, fix }) => `${status}${fix === undefined ? "" : " with a fix"}`);
    expect([...new Set(weights)]).toEqual(["problem with a fix", "note with a fix", "note", "ok"]);
    const text = await run();
    expect(text.stdout.startsWith("problem  source gone: ")).toBe(true);
    expect(text.stdout.trimEnd().split("\n").at(-1)).toBe("1 problem, 2 notes");
  });

  it("tells what a heavy tool list takes, of which source, and the ways out", async () => {
    const document = {
      openapi: "3.1.0",
      info: { title: "T", version: "1.0.0" },
      paths: Object.fromEntries(
        Array.from({ length: 200 }, (_, i) => [
          `/p${i}`,
          {
            get: {
              operationId: `op${i}`,
              description: "It does something with parcels. ".repeat(20),
              responses: { 200: { description: "x" } },
            },
          },
        ]),
      ),
    };
    await write("big.json", document);
    const openapi = { big: { document: "big.json", baseUrl: "https://example.invalid" } };
    const toolsOf = async (serve: object) => {
      await setConfig({ openapi, serve: { port: 0, ...serve } });
      const { stdout } = await run("--json");
      return (JSON.parse(stdout) as { diagnoses: Diagnosis[] }).diagnoses.find(
        ({ area }) => area === "tools",
      );
    };
    const heavy = await toolsOf({});
    expect(heavy?.status).toBe("note");
    expect(heavy?.message).toMatch(/^200 tools, about \d\d,000 tokens of a model's context/);
    expect(heavy?.fix).toMatch(/"catalogue": true.*"allow"/);
    const light = await toolsOf({ mcp: { catalogue: true } });
    expect([light?.status, light?.message]).toEqual([
      "ok",
      expect.stringMatching(/^4 tools of the catalogue, about \d{3} tokens/),
    ]);
    expect(await toolsOf({ mcp: false })).toBeUndefined();
  });

  it("says of a server that wants a person to log in which command does it", async () => {
    const server = createServer((_, response) => {
      const where = "https://auth.example/.well-known/oauth-protected-resource";
      response.writeHead(401, { "www-authenticate": `Bearer resource_metadata="${where}"` }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await setConfig({ mcpServers: { far: { url: `http://127.0.0.1:${port}/mcp` } }, serve: { port: 0 } });
    const { stdout } = await run("--json");
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const { diagnoses } = JSON.parse(stdout) as { diagnoses: Diagnosis[] };
    expect(diagnoses.find(({ subject }) => subject === "far")).toMatchObject({
      status: "problem",
      area: "login",
      message: "It waits for a login.",
      fix: 'Run "waybill login far".',
    });
  });

  it("lists the mistakes of a config, with 2", async () => {
    await setConfig({ mcpServer: {}, serve: { port: "x" } });
    const { code, stdout } = await run("--json");
    const { diagnoses } = JSON.parse(stdout) as { diagnoses: Diagnosis[] };
    expect(code).toBe(2);
    expect(diagnoses.filter(({ area, status }) => area === "config" && status === "problem")).toHaveLength(2);
  });
});

describe("what a doctor looks at", () => {
  it("knows which Node is new enough", () => {
    const versions = ["20.18.3", "20.19.0", "21.0.0", "18.20.0"];
    expect(versions.map((version) => examineNode(version).status)).toEqual([
      "problem",
      "ok",
      "ok",
      "problem",
    ]);
  });

  it("tells a free port from a gateway and from something else", async () => {
    let body = '{"status":"ok"}';
    const server = createServer((_, response) => response.end(body));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    expect((await examinePort({ port })).status).toBe("note");
    body = "hello";
    expect((await examinePort({ port })).status).toBe("problem");
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    expect((await examinePort({ port })).status).toBe("ok");
  });

  it("tells a broker that is away, without the password in its address", async () => {
    const [found] = await examineBus({ nats: "nats://me:hunter22@127.0.0.1:9" });
    expect([found?.status, found?.subject]).toEqual(["problem", "127.0.0.1:9"]);
    expect(JSON.stringify(found)).not.toContain("hunter22");
  });

  it("asks for packages only where something wants them", () => {
    const missing = () => false;
    expect(examinePackages({ docs: false, telemetry: false }, missing)).toEqual([]);
    const found = examinePackages({ docs: true, telemetry: true }, missing);
    expect(found.map(({ status }) => status)).toEqual(["note", "problem", "problem"]);
  });

  const report = {
    name: "s",
    kind: "mcp" as const,
    target: "npx -y some-server",
    state: { status: "up" as const, since: 1 },
    operations: 1,
    offered: 1,
    unusable: [],
    notes: [],
  };

  it("notices at 3 s what is slow because a program fetches it first, and names that program", () => {
    const slow = (target: string, kind: "mcp" | "openapi" = "mcp") =>
      examineSource({ ...report, kind, target, startMs: 3_001 }).map(({ fix }) => fix?.split(":")[1]);
    expect(examineSource({ ...report, startMs: 3_000 }).map(({ status }) => status)).toEqual(["ok"]);
    expect(slow("npx -y some-server")).toEqual([undefined, " npx looks for it at each start."]);
    expect(slow("/usr/bin/uvx mcp-server-time")).toEqual([undefined, " uvx looks for it at each start."]);
    for (const other of ["node npx-server.js", "npxish server", "https://mcp.example/npx"])
      expect(slow(other)).toEqual([undefined]);
    expect(slow("npx openapi.json", "openapi")).toEqual([undefined]);
  });

  it("tells how many operations there are before and after policies", () => {
    const [found] = examineSource({ ...report, operations: 6, offered: 13 });
    expect(found?.message).toBe("6 operations, 13 before policies");
    expect(examineSource(report)[0]?.message).toBe("1 operation");
  });

  it("notices tools that are not approved", () => {
    const changed = examineSource({ ...report, changed: [{ tool: "a", kind: "changed", diff: [] }] });
    expect(changed.at(-1)).toMatchObject({
      status: "problem",
      fix: expect.stringContaining("waybill lock s"),
    });
  });
});
