import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { makeFolder } from "../../../../test/gateway-sources.ts";
import { closeImported, imported, OBJECT, serverOf } from "../../../../test/import-raw-server.ts";
import { as, type InspectedGateway, inspectGateway, TOKENS } from "../../../../test/inspected-gateway.ts";
import { query, rejection } from "../../../../test/make-operation.ts";
import { CallError, toCallError, toProblem } from "../../../core/errors/errors.ts";
import type { CallView } from "../../protocol.ts";
import { KEPT_CHARACTERS_EACH } from "../inspector-limits.ts";
import { rawAnswerOf } from "./call-log.ts";

let open: InspectedGateway | undefined;
let api: Server | undefined;
afterEach(async () => {
  await open?.close();
  open = undefined;
  api?.close();
  api = undefined;
  await closeImported();
});

/** An API with one operation that answers the same to all who ask. */
async function answering(status: number, type: string, body: string): Promise<number> {
  const server = createServer((_, response) =>
    response.writeHead(status, { "content-type": type }).end(body),
  );
  api = server;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const documentAt = (port: number) => ({
  openapi: "3.1.0",
  info: { title: "Shop", version: "1" },
  servers: [{ url: `http://127.0.0.1:${port}` }],
  paths: { "/": { get: { operationId: "look", responses: { 200: { description: "ok" } } } } },
});

async function lookAt(port: number): Promise<InspectedGateway> {
  const document = join(makeFolder({ "shop.json": JSON.stringify(documentAt(port)) }), "shop.json");
  open = await inspectGateway([], {
    openapi: { shop: { document, allowPrivate: true } },
    serve: { auth: { tokens: TOKENS } },
  });
  return open;
}

describe("the raw answer of a call that failed", () => {
  it("is the status and body of an HTTP API, for operators alone", async () => {
    const port = await answering(503, "text/plain", "The stock room is closed; key=operator-token-0001");
    const inspected = await lookAt(port);
    inspected.loaded.secrets.add("operator-token-0001");
    const [operation] = inspected.gateway.executor.list();
    const asked = { operation: operation?.id, input: {} };
    const seen: (CallView["raw"] | undefined)[] = [];
    for (const name of ["olga", "ann"] as const) {
      const events = await inspected.run(asked, { headers: as(name) });
      const started = events.find(({ type }) => type === "started") as { readonly seq: number };
      const view = await inspected.get<CallView>(`call?seq=${started.seq}`, { headers: as(name) });
      expect(view.error?.code).toBe("UNAVAILABLE");
      expect(view.error?.message).not.toContain("stock room");
      expect(view.error?.details).toMatchObject({ said: "The stock room is closed; key=***" });
      expect(JSON.stringify(view.error).split("stock room")).toHaveLength(2);
      seen.push(view.raw);
    }
    expect(seen).toEqual([
      {
        value: expect.objectContaining({
          status: 503,
          contentType: "text/plain",
          body: "The stock room is closed; key=***",
        }),
      },
      undefined,
    ]);
  });

  it("is what an MCP server answered: a JSON-RPC error, or a result that is none", async () => {
    const tools = () => [{ name: "a", inputSchema: OBJECT }];
    const failing = serverOf(tools, () => {
      throw { code: -32_000, message: "The shelf broke.", data: { shelf: 7 } };
    });
    const deep: unknown = JSON.parse("[".repeat(600) + "]".repeat(600));
    const broken = serverOf(tools, () => ({ content: [], deep }));
    const errors: CallError[] = [];
    for (const server of [failing, broken]) {
      const { registry } = await imported(server);
      errors.push(toCallError(await rejection(registry.execute("raw.a", {}))));
      await closeImported();
    }
    expect(errors.map(rawAnswerOf)).toEqual([
      {
        value: { error: expect.objectContaining({ code: expect.any(Number), message: "The shelf broke." }) },
      },
      { value: { result: { content: [], deep } } },
    ]);
  });

  it("is the problem that another Waybill wrote, and the beginning of JSON that is none", () => {
    const problem = { ...toProblem(new CallError("CONFLICT", "Sold.")), waybill: { outcome: "call-error" } };
    const hop = new CallError("CONFLICT", "It failed.", { cause: problem, httpStatus: 409 });
    expect(rawAnswerOf(hop)).toEqual({ value: { status: 409, body: problem } });
    const cut = new CallError("OUTPUT_INVALID", "No JSON.", {
      details: { status: 200 },
      cause: new Error('{"a":'),
    });
    expect(rawAnswerOf(cut)).toEqual({ value: { status: 200, body: '{"a":' } });
  });

  it("is not made of what a handler throws", () => {
    for (const options of [
      {},
      { cause: new Error("mine") },
      { cause: { secret: 1 } },
      { details: { status: 409 }, cause: { secret: 1 } },
      { details: { rpcCode: 1 }, cause: { code: 2, message: "x" } },
      { details: { tool: "a", reason: "b" }, cause: { secret: 1 } },
      { details: ["status"], cause: "text" },
    ])
      expect(rawAnswerOf(new CallError("CONFLICT", "No.", options))).toBeUndefined();
  });

  it("is kept up to the length of any value, and not one character more", async () => {
    const around = JSON.stringify({ result: "" }).length;
    const views: CallView[] = [];
    for (const length of [KEPT_CHARACTERS_EACH - around, KEPT_CHARACTERS_EACH - around + 1]) {
      const details = { tool: "a", reason: "b" };
      const broken = () => {
        throw new CallError("OUTPUT_INVALID", "No.", { details, cause: "x".repeat(length) });
      };
      open = await inspectGateway([query("desk.break", broken)]);
      await open.run({ operation: "desk.break" });
      views.push(await open.get<CallView>("call?seq=1"));
      await open.close();
    }
    expect(views.map(({ raw }) => Object.keys(raw ?? {}))).toEqual([["value"], ["omitted"]]);
    expect(views[1]?.raw).toEqual({ omitted: "too-long" });
  });
});
