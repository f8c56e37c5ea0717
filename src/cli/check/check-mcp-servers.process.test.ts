import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { checkMcpServer as check } from "../../../test/check-mcp-server.ts";
import { ROOT } from "../../../test/run-node.ts";
import { childScript } from "../../../test/stdio-child.ts";
import { defineOperation, OperationRegistry, Type } from "../../index.ts";
import { serveMcpHttp } from "../../mcp/server/http/serve-mcp-http.ts";
import { toMcpServer } from "../../mcp/server/to-mcp-server.ts";
import { type CheckId, type CheckReport, REPORT_LIMITS } from "./check-report.ts";
import { toReportText } from "./run-check.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const child = (...args: string[]) => ({ command: process.execPath, args });
const packaged = (path: string, ...args: string[]) => child(join(ROOT, "node_modules", path), ...args);

const found = ({ checks }: CheckReport, id: CheckId) => checks.find((one) => one.id === id);
const statusOf = (report: CheckReport, id: CheckId) => found(report, id)?.status;
const failing = ({ checks }: CheckReport) =>
  checks.filter(({ status }) => status === "fail").map(({ id, subject }) => `${id} ${subject}`.trim());

describe("servers of npm", () => {
  it.each([
    ["filesystem", packaged("@modelcontextprotocol/server-filesystem/dist/index.js", ROOT)],
    ["memory", packaged("@modelcontextprotocol/server-memory/dist/index.js")],
    ["time", packaged("time-mcp/dist/index.js")],
    ["everything", packaged("@modelcontextprotocol/server-everything/dist/index.js")],
  ])("finds nothing wrong with %s", async (name, connection) => {
    const quick = new Map([["trigger-long-running-operation", { duration: 0.1, steps: 1 }]]);
    const report = await check(connection, name === "everything" ? { inputs: quick } : {});
    expect(failing(report)).toEqual([]);
    expect([report.reachable, report.counts.pass > 20]).toEqual([true, true]);
  });

  it("finds that the calculator takes arguments that miss its schemas", async () => {
    const report = await check(packaged("@wrtnlabs/calculator-mcp/bin/index.js"), { all: true });
    expect(new Set(failing(report).map((one) => one.split(" ")[0]))).toEqual(
      new Set(["mcp.manners.invalid-arguments"]),
    );
    expect(statusOf(report, "mcp.call")).toBe("pass");
  });
});

describe("a server of our own", () => {
  it("keeps its word in both revisions", async () => {
    const track = defineOperation({
      namespace: "parcel",
      name: "track",
      version: "1.0.0",
      type: "query",
      description: "Says where a parcel is.",
      inputSchema: Type.Object({ code: Type.String({ minLength: 4 }) }),
      outputSchema: Type.Object({ place: Type.String() }),
      handler: () => ({ place: "Basel" }),
    });
    const server = toMcpServer(new OperationRegistry([track]), {
      resources: [{ uri: "guide://rates", name: "rates", mimeType: "text/plain", read: () => "2 kg" }],
      prompts: [{ name: "complain", arguments: [{ name: "code", required: true }], get: () => "Late." }],
    });
    const http = await serveMcpHttp(server);
    closing.push(
      () => http.close(),
      () => server.close(),
    );
    const report = await check({ url: http.url });
    expect(report.checks.filter(({ status }) => status === "fail")).toEqual([]);
    expect(report.protocol).toBe("2026-07-28");
    for (const id of [
      "mcp.revision",
      "mcp.result.structured",
      "mcp.resource.read",
      "mcp.prompt.get",
    ] as const) {
      expect([id, statusOf(report, id)]).toEqual([id, "pass"]);
    }
    expect(report.counts.warn).toBe(0);
  });
});

describe("hostile servers", () => {
  it("are checked to the end, with nothing of theirs unescaped or unbounded", async () => {
    const report = await check(child(childScript("hostile-server.js")), { all: true }, 1_000);
    const text = toReportText(report, { stream: {}, env: {}, verbose: true, strict: false });
    expect(text).not.toMatch(/(?!\n)[\p{Cc}\u202a-\u202e\u2066-\u2069\u{E0000}-\u{E007F}]/u);
    expect(Math.max(...report.checks.map(({ message }) => message.length))).toBeLessThanOrEqual(
      REPORT_LIMITS.message,
    );
    expect(report.counts.fail).toBeGreaterThan(20);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it("that never end a list are left alone after a bounded time", async () => {
    const report = await check(child(childScript("hostile-server.js"), "endless-pages"), {}, 1_000);
    expect(report.checks.length).toBeLessThanOrEqual(REPORT_LIMITS.checks);
    expect(failing(report)).toContain("mcp.list");
  });

  it("that cannot be reached are told apart", async () => {
    const report = await check({ command: "/no/such/program" });
    expect([report.reachable, failing(report)]).toEqual([false, ["mcp.connect"]]);
    const refused = await check({ url: "http://127.0.0.1:9/mcp" });
    expect(refused.reachable).toBe(false);
  });
});
