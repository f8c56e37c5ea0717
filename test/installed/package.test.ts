import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { HARDENED, ROOT, runCommand, runNode } from "../run-node.ts";
import { checkWithLibraries, consumerErrors, toJavaScript } from "../type-check.ts";

const CONSUMER = `
import { defineOperation, OperationRegistry, type ResponseEnvelope, Type, unwrap } from "waybill";
import { composeToolPayload, createToolResponseEnvelopeSchema, decodeToolResult, transcode } from "waybill/formats";
import { createMemoryBus, createRemoteRegistry, serveCalls } from "waybill/call";
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
console.log(quadrupled);
const http = await serveMcpHttp(toMcpServer(registry));
const source: McpSource = await fromMcp({ url: http.url }, { namespace: "far" });
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

/** Forty lines with two operations, a client, and sources and servers of every kind. */
const SMALL = `
import { createClient, defineOperation, OperationRegistry, Type } from "waybill";
import { createGateway, loadConfigObject } from "waybill/gateway";
import { fromMcp, serveMcpHttp, serveStdio } from "waybill/mcp";
import { fromOpenApi, serveHttp } from "waybill/openapi";

const add = defineOperation({
  namespace: "math",
  name: "add",
  inputSchema: Type.Object({ a: Type.Number(), b: Type.Number() }),
  outputSchema: Type.Object({ sum: Type.Number() }),
  handler: ({ a, b }) => ({ sum: a + b }),
});
const book = defineOperation({
  namespace: "parcel",
  name: "book",
  inputSchema: Type.Object({
    to: Type.String({ maxLength: 100 }),
    kg: Type.Optional(Type.Number()),
    kind: Type.Union([Type.Literal("letter"), Type.Literal("box")]),
  }),
  outputSchema: {
    type: "object",
    properties: { id: { type: "string" }, at: { type: "array", items: { type: "integer" } } },
    required: ["id"],
  },
  handler: ({ to, kg = 1, kind }) => ({ id: \`\${to}-\${kind}\`, at: [kg] }),
});
const registry = new OperationRegistry([add, book]);
const client = createClient(registry);
const sum: number = (await client.call("math.add", { a: 1, b: 2 })).sum;
const id: string = (await client.parcel.book({ to: "Oslo", kind: "box" })).id;
console.log(sum, id);
const mcp = await fromMcp("https://example.com/mcp", { namespace: "far" });
const api = await fromOpenApi("https://example.com/openapi.json", { namespace: "api" });
registry.registerAll(mcp);
registry.registerAll(api);
const http = await serveMcpHttp(registry, { port: 0 });
const rest = await serveHttp(registry, { port: 0 });
const gateway = await createGateway(await loadConfigObject({ serve: { port: 0 } }, { baseDir: "." }));
await serveStdio(registry);
for (const part of [http, rest, gateway, mcp, api]) await part.close();
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

  it("holds every picture that its pages show", () => {
    const root = join(folder, "node_modules/waybill");
    const pages = ["README.md", ...readdirSync(join(root, "docs")).map((name) => join("docs", name))].filter(
      (name) => name.endsWith(".md"),
    );
    const shown = pages.flatMap((page) => {
      const text = readFileSync(join(root, page), "utf8");
      return [...text.matchAll(/!\[[^\]]*\]\(([^)\s]+)\)/g)].map(([, path = ""]) =>
        join(dirname(page), path),
      );
    });
    expect(shown).toContain("docs/images/inspector-operations-light.png");
    expect(shown.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it("holds the build and the documents, and nothing else", () => {
    const shipped = readdirSync(join(folder, "node_modules/waybill"));
    const documents = [
      "ARCHITECTURE.md",
      "CHANGELOG.md",
      "CONTRIBUTING.md",
      "LICENSE",
      "README.md",
      "SECURITY.md",
      "THIRD-PARTY-NOTICES",
      "docs",
      "examples",
      "python",
    ];
    expect(shipped.sort()).toEqual([...documents, "dist", "package.json"].sort());
  });

  it("brings the packages of docs/dependencies.md, which are few and small", () => {
    const root = join(folder, "node_modules");
    const named = readdirSync(root).filter((name) => !name.startsWith("."));
    const packages = named.flatMap((name) =>
      name.startsWith("@") ? readdirSync(join(root, name)).map((part) => `${name}/${part}`) : [name],
    );
    expect(packages.sort()).toEqual([
      "@bomb.sh/tab",
      "@standard-schema/spec",
      "eventsource-parser",
      "ipaddr.js",
      "jiti",
      "jose",
      "oauth4webapi",
      "typebox",
      "undici",
      "waybill",
      "yaml",
    ]);
    const sizes = readdirSync(root, { recursive: true, withFileTypes: true }).map((entry) =>
      entry.isFile() ? statSync(join(entry.parentPath, entry.name)).size : 0,
    );
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(20_000_000);
  });

  it("says what to install where NATS is used without its client", async () => {
    const install = "npm install @nats-io/transport-node @nats-io/jetstream";
    const program = 'import("waybill/call/nats").catch(({ code, message }) => console.log(code, message))';
    const { stdout } = await runNode(["--input-type=module", "-e", program], { cwd: folder });
    expect(stdout).toMatch(/^NATS_NOT_INSTALLED NATS needs the package @nats-io\/transport-node, /);
    expect(stdout).toContain(install);
    const config = join(folder, "nats.config.json");
    writeFileSync(config, JSON.stringify({ bus: { nats: "nats://127.0.0.1:1", mount: ["far"] } }));
    const bin = join(folder, "node_modules/.bin/waybill");
    const { stderr } = await runCommand(bin, ["list", "-c", config], { cwd: folder });
    rmSync(config);
    expect(stderr).toContain(install);
  });

  it("is installed without a warning about the version of Node", () => {
    expect(inject("installLog")).not.toContain("EBADENGINE");
    expect(inject("installLog")).toContain("added ");
  });

  it("imports by its name and runs an operation", async () => {
    const ran = await runNode(["consumer.js"], { cwd: folder });
    expect(ran).toEqual({
      code: 0,
      stdout: "42 42 local mcp status-envelope\nno-raw-mcp-text\n84\n{ value: 6 }\n3.1.1 { value: 8 }\n0\n",
      stderr: "",
    });
  });

  // Types do not depend on the flags of the second run.
  it.runIf(!HARDENED)("types a strict consumer, with declarations that are sound themselves", () => {
    const declarations = join(folder, "node_modules/waybill/");
    expect(consumerErrors(join(folder, "consumer.ts"), declarations)).toEqual([]);
  });

  it.runIf(!HARDENED)(
    "takes a compiler at most 300,000 instantiations, its declarations and those below checked",
    () => {
      const file = join(folder, "small.ts");
      writeFileSync(file, SMALL);
      const { errors, instantiations } = checkWithLibraries(file);
      rmSync(file);
      expect(errors).toEqual([]);
      expect(instantiations).toBeGreaterThan(10_000);
      expect(instantiations).toBeLessThanOrEqual(300_000);
    },
  );

  it("runs its command", async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const bin = join(folder, "node_modules/.bin/waybill");
    const ran = await runCommand(bin, ["--version"], { cwd: folder });
    expect(ran).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });
});
