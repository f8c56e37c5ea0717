import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { HARDENED, runCommand, runNode } from "../run-node.ts";
import { consumerErrors, toJavaScript } from "../type-check.ts";

const CONSUMER = `
import { defineOperation, OperationRegistry, type ResponseEnvelope, Type, unwrap } from "waybill";
import { composeToolPayload, createToolResponseEnvelopeSchema, decodeToolResult, transcode } from "waybill/formats";
import { createMemoryBus, createRemoteRegistry, serveCalls } from "waybill/call";
import { connectNatsBus, type NatsBus } from "waybill/call/nats";
import { plugin } from "waybill/lint";
import { fromMcp, type McpSource, serveMcpHttp, toMcpServer } from "waybill/mcp";
import { createGateway, defineConfig, type Gateway, type GatewayConfig, loadConfigObject } from "waybill/gateway";
import { fromOpenApi, type OpenApiSource, serveHttp, toOpenApi } from "waybill/openapi";

const double = defineOperation({
  namespace: "math", name: "double", version: "1.0.0", type: "query", description: "Doubles.",
  inputSchema: Type.Object({ value: Type.Number() }),
  outputSchema: Type.Object({ value: Type.Number() }),
  handler: ({ value }) => ({ value: value * 2 }),
});
const registry = new OperationRegistry([double]);
const envelope: ResponseEnvelope<{ value: number }> = await registry.execute(double, { value: 21 });
const answer: number = unwrap(envelope).value;
// @ts-expect-error the input is typed by its schema
registry.execute(double, { value: "21" }).catch(() => undefined);
const reply = composeToolPayload({ meta: { status: "ok", summary: "Doubled" }, data: unwrap(envelope) });
const doubled: number = reply.structuredContent.data.value;
const back: ResponseEnvelope = transcode(reply, "response-envelope");
createToolResponseEnvelopeSchema(Type.Object({ value: Type.Number() }))["~standard"].validate(reply);
console.log(answer, doubled, envelope.meta.source, back.meta.source, decodeToolResult(reply).format);
console.log(Object.keys(plugin.rules).join());
const bus = createMemoryBus();
await serveCalls(registry, bus);
const remote = await createRemoteRegistry(bus);
const quadrupled: number = (await remote.execute(double, { value: doubled })).data.value;
const connect: (options: { servers: string }) => Promise<NatsBus> = connectNatsBus;
console.log(quadrupled, typeof connect);
const http = await serveMcpHttp(toMcpServer(registry));
const source: McpSource = await fromMcp({ namespace: "far", url: http.url });
console.log((await source.call("math_double", { value: 3 })).data);
await source.close();
await http.close();
const api = await serveHttp(registry);
const imported: OpenApiSource = await fromOpenApi(\`\${api.url}/openapi.json\`, { namespace: "far", keepIds: true });
const far = new OperationRegistry();
far.registerAll(imported);
console.log(toOpenApi(far).openapi, (await far.execute("math.double", { value: 4 })).data);
await imported.close();
await api.close();
const config: GatewayConfig = defineConfig({ openapi: {}, serve: { port: 0 } });
const gateway: Gateway = await createGateway(await loadConfigObject(config, { baseDir: "." }));
console.log(gateway.executor.list().length);
await gateway.close();
`;

describe("the packed package", () => {
  const folder = inject("installed");
  const programs = ["consumer.ts", "consumer.js"].map((name) => join(folder, name));

  beforeAll(() => {
    writeFileSync(join(folder, "consumer.ts"), CONSUMER);
    writeFileSync(join(folder, "consumer.js"), toJavaScript(CONSUMER));
  });

  afterAll(() => {
    for (const program of programs) rmSync(program);
  });

  it("holds the build and the documents, and nothing else", () => {
    const shipped = readdirSync(join(folder, "node_modules/waybill"));
    const documents = [
      "ARCHITECTURE.md",
      "CHANGELOG.md",
      "CONTRIBUTING.md",
      "LICENSE",
      "README.md",
      "docs",
      "examples",
      "python",
    ];
    expect(shipped.sort()).toEqual([...documents, "dist", "package.json"].sort());
  });

  it("brings the packages of docs/dependencies.md, and what those need", () => {
    const names = readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."));
    const ours = [
      "@bomb.sh",
      "@clack",
      "@nats-io",
      "@scalar",
      "@standard-schema",
      "cli-table3",
      "cockatiel",
      "commander",
      "eventsource-parser",
      "ipaddr.js",
      "jiti",
      "jose",
      "oauth4webapi",
      "picocolors",
      "smol-toml",
      "typebox",
      "undici",
      "yaml",
    ];
    const theirs = ["tweetnacl"];
    const terminal = [
      "@colors",
      "ansi-regex",
      "emoji-regex",
      "is-fullwidth-code-point",
      "string-width",
      "strip-ansi",
    ];
    const prompts = ["fast-string-truncated-width", "fast-string-width", "fast-wrap-ansi", "sisteransi"];
    const all = [...ours, ...theirs, ...terminal, ...prompts, "waybill"];
    expect(names.sort()).toEqual(all.sort());
  });

  it("imports by its name and runs an operation", async () => {
    const ran = await runNode(["consumer.js"], { cwd: folder });
    expect(ran).toEqual({
      code: 0,
      stdout:
        "42 42 local mcp status-envelope\nno-raw-mcp-text\n84 function\n{ value: 6 }\n3.1.1 { value: 8 }\n0\n",
      stderr: "",
    });
  });

  // Types do not depend on the flags of the second run.
  it.runIf(!HARDENED)("types a strict consumer, with declarations that are sound themselves", () => {
    const declarations = join(folder, "node_modules/waybill/");
    expect(consumerErrors(join(folder, "consumer.ts"), declarations)).toEqual([]);
  });

  it("runs its command", async () => {
    const bin = join(folder, "node_modules/.bin/waybill");
    const ran = await runCommand(bin, ["--version"], { cwd: folder });
    expect(ran).toEqual({ code: 0, stdout: "0.1.0\n", stderr: "" });
  });
});
