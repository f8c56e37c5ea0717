import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { query, until } from "../../../test/make-operation.ts";
import { handGateway, loadedConfig } from "../../../test/served-gateway.ts";
import { type CallRecord, createObserver } from "./observe/observer.ts";
import { serveGatewayStdio } from "./serve-gateway-stdio.ts";

describe("serveGatewayStdio", () => {
  it("RE-30 serves one client over its streams, whatever is served over HTTP, until they end", async () => {
    const records: CallRecord[] = [];
    const observer = createObserver();
    observer.listen({ end: (record) => void records.push(record) });
    const gateway = handGateway([query("desk.ask", () => ({ yes: true }))], [observer]);
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    let text = "";
    stdout.on("data", (chunk) => {
      text += chunk;
    });
    const config = loadedConfig({ serve: { mcp: false, host: "0.0.0.0" } });
    const stdio = serveGatewayStdio(gateway, config, { stdin, stdout, identity: { subject: "me" } });
    const send = (message: object) => stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    const clientInfo = { name: "desk", version: "1" };
    send({
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo },
    });
    send({ method: "notifications/initialized" });
    const call = async (id: number) => {
      send({ id, method: "tools/call", params: { name: "desk_ask", arguments: {} } });
      await until(() => text.includes(`"id":${id}`));
      return text.split("\n").find((line) => line.includes(`"id":${id}`));
    };
    expect(await call(2)).toContain('"structuredContent":{"yes":true}');
    expect(records).toMatchObject([{ operation: "desk.ask", entry: "stdio", subject: "me" }]);
    await stdio.reload(loadedConfig({ serve: { clients: { desk: { format: "tool-envelope" } } } }));
    expect(await call(3)).toContain("__ENVELOPE_V1__");
    stdin.end();
    await stdio.closed;
  });

  it.each(["stdin ends", "it is closed"])(
    "RE-30 answers calls under way when %s, and only then ends",
    async (how) => {
      let finish = (_: string): void => {};
      const slow = new Promise<string>((resolve) => {
        finish = resolve;
      });
      const gateway = handGateway([query("desk.wait", () => slow)]);
      const [stdin, stdout] = [new PassThrough(), new PassThrough()];
      let text = "";
      stdout.on("data", (chunk) => {
        text += chunk;
      });
      const stdio = serveGatewayStdio(gateway, loadedConfig({}), { stdin, stdout });
      const send = (message: object) => stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
      const clientInfo = { name: "desk", version: "1" };
      const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
      send({ id: 1, method: "initialize", params });
      send({ method: "notifications/initialized" });
      send({ id: 2, method: "tools/call", params: { name: "desk_wait", arguments: {} } });
      await until(() => text.includes('"id":1'));
      const ended = how === "stdin ends" ? stdin.end() && stdio.closed : stdio.close({ timeoutMs: 60_000 });
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(text).not.toContain('"id":2');
      finish("late");
      await ended;
      expect(text).toMatch(/"id":2\D.*late|late.*"id":2\D/);
    },
  );

  it("RE-30 ends calls that take longer than they may", async () => {
    const gateway = handGateway([query("desk.wait", () => new Promise(() => {}))]);
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    stdout.resume();
    const stdio = serveGatewayStdio(gateway, loadedConfig({ serve: { drainMs: 50 } }), { stdin, stdout });
    const params = { name: "desk_wait", arguments: {} };
    stdin.end(`${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params })}\n`);
    await stdio.closed;
  });
});
