import { afterEach, describe, expect, it } from "vitest";
import { as, type InspectedGateway, inspectGateway, TOKENS } from "../../../test/inspected-gateway.ts";
import { query, rejection, stream } from "../../../test/make-operation.ts";
import { createMemoryBus } from "../../call/memory-bus.ts";
import { PendingRequestMap } from "../../call/pending-request-map.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import type { GatewayConfig } from "../../gateway/config/gateway-config.ts";
import type {
  CallView,
  DecodeAnswer,
  Failure,
  FormatsAnswer,
  Hello,
  OperationsAnswer,
  OperationView,
  SearchAnswer,
  SourcesAnswer,
  ValidateAnswer,
} from "../protocol.ts";

const NUMBERS = {
  type: "object",
  properties: { a: { type: "number" }, b: { type: "number", default: 1 } },
  required: ["a"],
  additionalProperties: false,
} as const;

function operations() {
  return [
    query("desk.add", (input) => ({ sum: (input as { a: number }).a + 1 }), {
      inputSchema: NUMBERS,
      description: `Adds one.\n\n${"More words. ".repeat(100)}`,
      annotations: { readOnly: true },
    }),
    query("desk.private", () => "for readers", { access: { scopes: { allOf: ["read"] } } }),
    query("desk.hidden", () => 1, { visibility: "internal" }),
    query("desk.outer", (_, context) => context.execute("desk.add", { a: 1 })),
    query("desk.say", (input) => input),
    stream("desk.watch", async function* () {
      yield 1;
    }),
  ];
}

let open: InspectedGateway | undefined;
afterEach(async () => {
  await open?.close();
  open = undefined;
});

async function start(config: GatewayConfig = {}): Promise<InspectedGateway> {
  open = await inspectGateway(operations(), config);
  return open;
}

const AUTH = { serve: { auth: { tokens: TOKENS } } } satisfies GatewayConfig;

async function failureOf(response: Response): Promise<[number, string]> {
  const { error } = (await response.json()) as Failure;
  return [response.status, error.code];
}

describe("the inspector's API", () => {
  it("introduces the gateway, and says what the viewer may see", async () => {
    const plain = await start({ name: "depot" });
    expect(await plain.get<Hello>("hello")).toMatchObject({
      name: "depot",
      isAuthOn: false,
      isOperator: true,
      places: { mcp: "/mcp", api: "/api", document: "/openapi.json", docs: "/docs", metrics: "/metrics" },
      kept: { calls: 5_000, characters: 33_554_432, charactersEach: 262_144 },
      command: { words: "npx --no waybill", flags: "--config /srv/depot.json" },
    });
    await plain.close();
    const guarded = await start({ serve: { ...AUTH.serve, mcp: false, http: false, metrics: false } });
    expect(await guarded.get<Hello>("hello", { headers: as("olga") })).toMatchObject({
      isAuthOn: true,
      subject: "olga",
      isOperator: true,
      places: {},
      command: { flags: "--config /srv/depot.json" },
    });
    expect(await guarded.get<Hello>("hello", { headers: as("bob") })).toMatchObject({
      isOperator: false,
      command: { words: "npx --no waybill", flags: "" },
    });
    expect((await guarded.ask("hello")).status).toBe(401);
  });

  it("lists the operations a caller may call, in one line each", async () => {
    const inspected = await start(AUTH);
    const list = async (name: keyof typeof TOKENS) =>
      (await inspected.get<OperationsAnswer>("operations", { headers: as(name) })).operations;
    expect((await list("bob")).map(({ id }) => id)).toEqual([
      "desk.add",
      "desk.outer",
      "desk.say",
      "desk.watch",
    ]);
    const [add] = await list("ann");
    expect(await list("ann")).toHaveLength(5);
    expect(add).toMatchObject({ id: "desk.add", type: "query" });
    expect(add?.summary).toMatch(/^Adds one\. More words\./);
    expect(add?.summary.length).toBeLessThanOrEqual(160);
  });

  it("finds operations by a question, those alone that a caller may call", async () => {
    const inspected = await start(AUTH);
    const find = async (query: string, name: keyof typeof TOKENS) =>
      inspected.get<SearchAnswer>(`search?query=${encodeURIComponent(query)}`, { headers: as(name) });
    expect(await find("adding", "bob")).toEqual({ operations: ["desk.add"] });
    expect(await find("private", "bob")).toEqual({ operations: [] });
    expect((await find("", "bob")).operations).toHaveLength(4);
    expect((await find("private", "ann")).operations).toEqual(["desk.private"]);
    expect((await inspected.ask("search?query=add")).status).toBe(401);
  });

  it("counts changes of the operations, and lists anew after one", async () => {
    const inspected = await start();
    const before = await inspected.get<OperationsAnswer>("operations");
    expect((await inspected.get<OperationsAnswer>("operations")).revision).toBe(before.revision);
    const registry = inspected.gateway.executor as unknown as { remove(id: string): boolean };
    registry.remove("desk.outer");
    const after = await inspected.get<OperationsAnswer>("operations");
    expect(after.revision).toBeGreaterThan(before.revision);
    expect(after.operations).toHaveLength(before.operations.length - 1);
  });

  it("describes an operation, and how it is called from elsewhere", async () => {
    const inspected = await start(AUTH);
    const view = await inspected.get<OperationView>("operation?id=desk.add", { headers: as("bob") });
    expect(view).toMatchObject({
      id: "desk.add",
      inputSchema: NUMBERS,
      annotations: { readOnly: true },
      sample: { a: expect.any(Number) },
      http: { method: "GET", path: "/api/desk/add" },
      tool: "desk_add",
    });
    const nobody = { headers: as("bob") };
    for (const id of ["desk.private", "desk.hidden", "desk.nothing", "__proto__", ""]) {
      const asked = await inspected.ask(`operation?id=${encodeURIComponent(id)}`, nobody);
      expect(await failureOf(asked)).toEqual([404, "OPERATION_NOT_FOUND"]);
    }
  });

  it("leaves out how an operation is called where it is not served", async () => {
    const inspected = await start({ serve: { http: false, mcp: { catalogue: true } } });
    const view = await inspected.get<OperationView>("operation?id=desk.add");
    expect(view).not.toHaveProperty("http");
    expect(view).not.toHaveProperty("tool");
  });

  it("says where an input misses the schema, to those who may call the operation", async () => {
    const inspected = await start(AUTH);
    const headers = as("bob");
    const validate = (body: object) => inspected.ask("validate", { body, headers });
    const wrong = await validate({ operation: "desk.add", input: { a: "1", c: 2 } });
    const { issues } = (await wrong.json()) as ValidateAnswer;
    expect(issues.map(({ pointer }) => pointer)).toContain("/a");
    const right = await validate({ operation: "desk.add", input: { a: 1 } });
    expect(await right.json()).toEqual({ issues: [] });
    const denied = await validate({ operation: "desk.private", input: {} });
    expect(await failureOf(denied)).toEqual([404, "OPERATION_NOT_FOUND"]);
  });

  it("RE-17 shows what crossed the bus to operators alone, once something did", async () => {
    const inspected = await start(AUTH);
    const bus = async (name: keyof typeof TOKENS) =>
      (await inspected.get<SourcesAnswer>("sources", { headers: as(name) })).bus;
    expect(await bus("olga")).toBeUndefined();
    const memory = createMemoryBus();
    memory.onCall(inspected.observer.busCall);
    await rejection(new PendingRequestMap(memory).call("desk.nobody"));
    expect(await bus("olga")).toEqual([
      { end: "caller", calls: 1, errors: 1, values: 0, sentBytes: 0, receivedBytes: 0 },
    ]);
    expect(await bus("bob")).toBeUndefined();
  });

  it("shows sources whole to operators alone, and keeps retries to them", async () => {
    const inspected = await start(AUTH);
    const sources = async (name: keyof typeof TOKENS) =>
      (await inspected.get<SourcesAnswer>("sources", { headers: as(name) })).sources;
    await inspected.run({ operation: "desk.add", input: { a: 1 } }, { headers: as("ann") });
    const [whole] = await sources("olga");
    expect(whole).toMatchObject({ kind: "local", operations: 6, calls: { count: 1, errors: 0 } });
    expect(whole).toHaveProperty("target");
    expect(whole?.calls.p50).toBeGreaterThanOrEqual(0);
    const [part] = await sources("bob");
    expect(part).toMatchObject({ name: whole?.name, operations: 4, calls: { count: 0 } });
    expect(part).not.toHaveProperty("target");
    const retry = (name: keyof typeof TOKENS, source = whole?.name) =>
      inspected.ask("sources/retry", { body: { source }, headers: as(name) });
    expect(await failureOf(await retry("ann"))).toEqual([403, "ACCESS_DENIED"]);
    expect(await failureOf(await retry("olga", "nowhere"))).toEqual([404, "NOT_FOUND"]);
    expect(await (await retry("olga")).json()).toMatchObject({ source: { name: whole?.name } });
  });

  it("shows a call and its family to whoever made it and to operators, and to nobody else", async () => {
    const inspected = await start(AUTH);
    const [started] = await inspected.run({ operation: "desk.outer" }, { headers: as("ann") });
    const seq = started?.type === "started" ? started.seq : 0;
    for (const name of ["ann", "olga"] as const) {
      const view = await inspected.get<CallView>(`call?seq=${seq}`, { headers: as(name) });
      expect(view.row).toMatchObject({ operation: "desk.outer", entry: "inspect", subject: "ann" });
      expect(view.results).toMatchObject([{ envelope: { data: { sum: 2 } } }]);
      expect(view.family.map(({ operation, parent }) => [operation, parent])).toEqual([
        ["desk.outer", undefined],
        ["desk.add", seq],
      ]);
    }
    for (const wanted of [String(seq), "0", "99", "x", "-1", ""]) {
      const asked = await inspected.ask(`call?seq=${wanted}`, { headers: as("bob") });
      expect(await failureOf(asked)).toEqual([404, "NOT_FOUND"]);
    }
  });

  it("masks what was a secret when a call ran, whoever looked meanwhile", async () => {
    const inspected = await start();
    const withSecret = (value: string) => {
      const secrets = new SecretMask();
      secrets.add(value);
      return { ...inspected.loaded, secrets };
    };
    inspected.loaded = withSecret("first-secret-0001");
    await inspected.gateway.executor.execute("desk.say", "first-secret-0001, second-secret-0002");
    inspected.loaded = withSecret("second-secret-0002");
    await inspected.gateway.executor.execute("desk.say", "nothing");
    inspected.loaded = withSecret("third-secret-00003");
    const view = await inspected.get<CallView>("call?seq=1");
    expect(view.input).toEqual({ value: "***, ***" });
    expect(JSON.stringify(view)).not.toContain("secret-000");
  });

  it("says how an envelope reads in each format, and refuses what is none", async () => {
    const inspected = await start();
    const envelope = { data: { a: 1 }, meta: { source: "local", operationId: "desk.add", timestamp: 1 } };
    const body = { envelope, operation: "desk.add" };
    const { formats } = await inspected.get<FormatsAnswer>("formats", { body });
    expect(formats.map(({ format }) => format)).toHaveLength(5);
    for (const { encoded, bytes } of formats) {
      expect(bytes).toBe(Buffer.byteLength(JSON.stringify(encoded)));
    }
    expect(formats.find(({ format }) => format === "mcp")?.encoded).toMatchObject({
      structuredContent: { a: 1 },
    });
    for (const wrong of [{}, { data: 1 }, { data: 1, meta: { source: "local" } }, null, []]) {
      const asked = await inspected.ask("formats", { body: { envelope: wrong } });
      expect(await failureOf(asked)).toEqual([400, "VALIDATION_ERROR"]);
    }
  });

  it("decodes what somebody pasted, and says what is wrong with what is no result", async () => {
    const inspected = await start();
    const text = JSON.stringify({
      content: [{ type: "text", text: "hi" }],
      structuredContent: { a: 1, ["__proto__"]: 2 },
    });
    const { results } = await inspected.get<DecodeAnswer>("decode", { body: { text } });
    expect(results).toMatchObject([
      {
        format: "mcp",
        isError: false,
        data: { a: 1 },
        envelope: { data: { a: 1 }, meta: { source: "mcp" } },
      },
    ]);
    const recovered = JSON.stringify({ content: [{ type: "text", text: '[{"b":2}]' }] });
    expect(
      (await inspected.get<DecodeAnswer>("decode", { body: { text: recovered } })).results,
    ).toMatchObject([
      { format: "mcp", obtained: "text-json", data: [{ b: 2 }], envelope: { data: [{ b: 2 }] } },
    ]);
    const lines = '{"content":[]}\n'.repeat(200);
    expect((await inspected.get<DecodeAnswer>("decode", { body: { text: lines } })).results).toHaveLength(
      200,
    );
    const more = await inspected.ask("decode", { body: { text: `${lines}{"content":[]}` } });
    expect(await failureOf(more)).toEqual([413, "VALIDATION_ERROR"]);
    for (const wrong of ["", "<html>", "{", "[1]"]) {
      const asked = await inspected.ask("decode", { body: { text: wrong } });
      expect(await failureOf(asked)).toEqual([400, "VALIDATION_ERROR"]);
    }
  });
});
