import { describe, expect, it } from "vitest";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import { CONFIG_SCHEMA } from "./config-schema.ts";
import type { ConfigSchema } from "./config-schema-parts.ts";
import type { GatewayConfig } from "./gateway-config.ts";
import { loadConfigObject } from "./read-config.ts";

const policy = {
  enabled: true,
  scopes: ["a"],
  timeoutMs: 1,
  retry: { attempts: 1, delayMs: 0, maxDelayMs: 0 },
  rate: { calls: 1, perMs: 1 },
  concurrency: 1,
  cacheMs: 0,
  singleFlight: true,
  resultBudget: 1,
};
const sourcePolicy = { ...policy, allow: ["*"], deny: ["x*"] };

/** Every field there is; the type checker sees that there are no others. */
const FULL = {
  $schema: "x",
  name: "a",
  envFile: [],
  mcpServers: {
    a: {
      type: "stdio",
      command: "x",
      args: [""],
      env: { A: "" },
      cwd: ".",
      inheritEnv: "all",
      disabled: false,
      protocol: "auto",
      connectTimeoutMs: 1,
      recoverJson: true,
      keepIds: true,
      lock: true,
      policy: sourcePolicy,
    },
    b: {
      type: "http",
      url: "https://a",
      headers: { A: "" },
      bearer: "x",
      oauth: { clientId: "a", clientSecret: "b", scope: "c" },
      allowHttp: true,
      inheritEnv: ["A"],
    },
  },
  openapi: {
    p: {
      document: "x",
      baseUrl: "https://a",
      server: 0,
      serverVariables: { a: "" },
      auth: {
        a: "x",
        b: { username: "a", password: "" },
        c: { clientId: "a", clientSecret: "b", refreshToken: "c", tokenUrl: "d", scopes: ["e"] },
      },
      authOrigins: ["https://b"],
      headers: { A: "" },
      allowPrivate: ["h"],
      overlay: [{ document: { a: 1 }, operations: { "GET /": {} } }],
      trace: true,
      keepIds: true,
      disabled: true,
      policy: sourcePolicy,
    },
  },
  operations: "a/*.ts",
  serve: {
    host: "127.0.0.1",
    port: 0,
    mcp: { dots: true, catalogue: true, instructions: "" },
    http: { docs: true, title: "a", version: "1" },
    metrics: true,
    auth: {
      tokens: { a: { token: "0123456789abcdef", scopes: ["a"], tier: "pro", format: "mcp" } },
      jwt: { audience: ["a"], jwksUrl: "https://a", issuer: "b", algorithms: ["c"], requiredScopes: ["d"] },
    },
    sessions: { key: ["0123456789abcdef0123456789abcdef"] },
    hosts: ["a"],
    publicUrl: "https://a",
    origins: ["https://a"],
    format: "mcp",
    formats: ["mcp"],
    clients: { "a*": { format: "mcp" } },
    drainMs: 0,
  },
  bus: {
    nats: "nats://a",
    user: "a",
    password: "b",
    token: "c",
    serveAs: "d",
    mount: true,
    said: false,
    policy: sourcePolicy,
  },
  policies: { "a.*": policy },
  limits: {
    calls: 1,
    bodyBytes: 1,
    timeoutMs: 1,
    cacheEntries: 0,
    cacheCharacters: 0,
    idempotencyKeys: 0,
    queue: 0,
  },
  log: { level: "info", format: "json" },
  lock: "a.json",
} as const satisfies GatewayConfig;

function everySchema(schema: ConfigSchema): ConfigSchema[] {
  const { properties = {}, $defs = {}, anyOf = [], items, additionalProperties } = schema;
  const below = [...Object.values(properties), ...Object.values($defs), ...anyOf];
  if (items !== undefined) below.push(items);
  if (typeof additionalProperties === "object") below.push(additionalProperties);
  return [schema, ...below.flatMap(everySchema)];
}

describe("CONFIG_SCHEMA", () => {
  const compiled = compileSchema(CONFIG_SCHEMA);

  it("is plain JSON that describes every field", () => {
    expect(JSON.parse(JSON.stringify(CONFIG_SCHEMA))).toEqual(CONFIG_SCHEMA);
    for (const { properties = {} } of everySchema(CONFIG_SCHEMA)) {
      for (const [name, field] of Object.entries(properties))
        expect([name, field.description]).toEqual([name, expect.stringMatching(/\.$/)]);
    }
  });

  it("knows no other members, except of an MCP server", () => {
    const open = everySchema(CONFIG_SCHEMA).filter(
      ({ properties, additionalProperties }) => properties && additionalProperties !== false,
    );
    expect(open).toEqual([CONFIG_SCHEMA.$defs?.["mcpServer"]]);
  });

  it("accepts a config with every field, as loading does", async () => {
    expect(compiled.errors(FULL)).toEqual([]);
    const loaded = await loadConfigObject(FULL, { baseDir: ".", env: {} });
    expect(loaded.config).toEqual(FULL);
    expect(loaded.warnings).toEqual([]);
  });

  it("accepts references in place of numbers and flags", () => {
    expect(compiled.check({ serve: { port: "${PORT}", metrics: "${METRICS:-true}" } })).toBe(true);
    expect(compiled.check({ serve: { port: "4100" } })).toBe(false);
  });

  it.each([
    { nothing: 1 },
    { serve: { port: 65_536 } },
    { serve: { port: -1 } },
    { serve: { prot: 1 } },
    { serve: { format: "xml" } },
    { mcpServers: [] },
    { mcpServers: { a: { command: "" } } },
    { openapi: { p: {} } },
    { openapi: { p: { document: "x", auth: { a: { username: "a" } } } } },
    { bus: {} },
    { policies: { a: { rate: { calls: 1 } } } },
    { limits: { calls: 0.5 } },
    { log: { level: 1 } },
    { name: null },
    // No timer waits for so long: it would be over at once.
    { tasks: { afterMs: 2 ** 31 } },
    { tasks: { pollMs: 2 ** 31 } },
    { serve: { drainMs: 2 ** 31 } },
    { serve: { lameDuckMs: 2 ** 31 } },
    { policies: { a: { guard: { judge: { url: "https://a.example", timeoutMs: 2 ** 31 } } } } },
  ])("refuses %j, as loading does", async (config) => {
    expect(compiled.check(config)).toBe(false);
    await expect(
      loadConfigObject(config as unknown as GatewayConfig, { baseDir: ".", env: {} }),
    ).rejects.toThrow();
  });
});
