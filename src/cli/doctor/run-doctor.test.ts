import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { useDoctorFolder } from "../../../test/doctor-folder.ts";
import type { Diagnosis } from "./diagnosis.ts";
import { examineBus, examinePort } from "./examine-network.ts";
import { examineSource } from "./examine-sources.ts";
import { examineNode, examinePackages } from "./examine-surroundings.ts";

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
      fix: "Start the API, or correct openapi.away.baseUrl.",
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

  it("notices slow sources at 3 s, and tools that are not approved", () => {
    const report = {
      name: "s",
      kind: "mcp" as const,
      target: "t",
      state: { status: "up" as const, since: 1 },
      operations: 1,
      unusable: [],
      notes: [],
    };
    expect(examineSource({ ...report, startMs: 3_000 }).map(({ status }) => status)).toEqual(["ok"]);
    expect(examineSource({ ...report, startMs: 3_001 }).map(({ status }) => status)).toEqual(["ok", "note"]);
    const changed = examineSource({ ...report, changed: [{ tool: "a", kind: "changed", diff: [] }] });
    expect(changed.at(-1)).toMatchObject({
      status: "problem",
      fix: expect.stringContaining("waybill lock s"),
    });
  });
});
