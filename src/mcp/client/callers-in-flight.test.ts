import { InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import { CallersInFlight, GIVEN_UP_LIMITS } from "./callers-in-flight.ts";
import { openMcpConnection } from "./connect.ts";

const alice: CallerSide = { elicit: async () => ({ action: "decline" }) };
const bob: CallerSide = { elicit: async () => ({ action: "decline" }) };

describe("CallersInFlight", () => {
  it("Mcp: knows whom a question is for only while all calls are of one caller", () => {
    const callers = new CallersInFlight();
    expect(callers.find()).toEqual({ kind: "none" });
    callers.enter("tools/list", bob);
    const leave = callers.enter("tools/call", alice);
    callers.enter("prompts/get", alice)();
    expect(callers.find()).toEqual({ kind: "one", caller: alice });
    const leaveBob = callers.enter("tools/call", bob);
    expect(callers.find()).toEqual({ kind: "several" });
    leaveBob();
    leaveBob();
    expect(callers.find()).toEqual({ kind: "one", caller: alice });
    leave();
    expect(callers.find()).toEqual({ kind: "none" });
  });

  it("Mcp: counts a call that was given up until its answer comes, and asks nobody about it alone", () => {
    const callers = new CallersInFlight();
    callers.enter("tools/call", alice)(1);
    callers.enter("tools/call", alice)(2);
    expect(callers.find()).toEqual({ kind: "none" });
    const leave = callers.enter("tools/call", alice);
    expect(callers.find()).toEqual({ kind: "one", caller: alice });
    leave();
    callers.enter("tools/call", bob);
    expect(callers.find()).toEqual({ kind: "several" });
    callers.answered(1);
    callers.answered(1);
    callers.answered(99);
    expect(callers.find()).toEqual({ kind: "several" });
    callers.answered(2);
    expect(callers.find()).toEqual({ kind: "one", caller: bob });
  });

  it("X-6 forgets a call that was given up after ten minutes, and not before", () => {
    let now = 0;
    const callers = new CallersInFlight(() => now);
    callers.enter("tools/call", alice)(1);
    callers.enter("tools/call", bob);
    now = GIVEN_UP_LIMITS.rememberMs - 1;
    expect(callers.find()).toEqual({ kind: "several" });
    now = GIVEN_UP_LIMITS.rememberMs;
    expect(callers.find()).toEqual({ kind: "one", caller: bob });
  });

  it("X-6 remembers as many calls as allowed, and with one more takes nobody for the only one", () => {
    let now = 0;
    const callers = new CallersInFlight(() => now);
    for (let id = 0; id < GIVEN_UP_LIMITS.calls; id++) callers.enter("tools/call", bob)(id);
    callers.enter("tools/call", bob);
    expect(callers.find()).toEqual({ kind: "one", caller: bob });
    callers.enter("tools/call", alice)("one more");
    for (let id = 0; id < GIVEN_UP_LIMITS.calls; id++) callers.answered(id);
    expect(callers.find()).toEqual({ kind: "several" });
    now = GIVEN_UP_LIMITS.rememberMs;
    expect(callers.find()).toEqual({ kind: "one", caller: bob });
  });
});

/** A 2025 server that never answers "slow" of its own accord, and asks something in the middle of "fast". */
function createAskingServer() {
  const [here, there] = InMemoryTransport.createLinkedPair();
  const send = (message: object) => void there.send({ jsonrpc: "2.0", ...message } as JSONRPCMessage);
  const slow: (string | number)[] = [];
  let asking: string | number | undefined;
  there.onmessage = (message) => {
    const { id, method, params, error } = message as unknown as Record<string, never>;
    const { name, protocolVersion } = (params ?? {}) as { name?: string; protocolVersion?: string };
    if (method === undefined) {
      send({ id: asking, result: { refused: error !== undefined } });
    } else if (method === "initialize") {
      send({ id, result: { protocolVersion, capabilities: {}, serverInfo: { name: "s", version: "1" } } });
    } else if (name === "slow") slow.push(id as unknown as number);
    else if (name === "fast") {
      asking = id;
      const requestedSchema = { type: "object", properties: {} };
      send({ id: "q", method: "elicitation/create", params: { message: "Pay?", requestedSchema } });
    }
  };
  void there.start();
  return {
    transport: () => here,
    answerSlow: (toId = (id: unknown) => id) => send({ id: toId(slow.shift()), result: {} }),
  };
}

describe("a question after a call was given up", () => {
  it.each(["a timeout", "an abort"])(
    "RE-31 is not shown to another caller after %s, until the late answer",
    async (how) => {
      const server = createAskingServer();
      const connection = await openMcpConnection({ transport: server.transport, protocol: "2025" });
      const shown: string[] = [];
      const side = (who: string): CallerSide => ({
        elicit: async () => {
          shown.push(who);
          return { action: "decline" };
        },
      });
      const [one, other] = [side("alice"), side("bob")];
      const stop = new AbortController();
      const limit = how === "a timeout" ? { timeoutMs: 30 } : { signal: stop.signal };
      const slow = connection.request("tools/call", { name: "slow" }, { caller: one, ...limit });
      setTimeout(() => stop.abort(), 30);
      await expect(slow).rejects.toMatchObject({ code: how === "a timeout" ? "TIMEOUT" : "ABORTED" });
      const fast = () => connection.request("tools/call", { name: "fast" }, { caller: other });
      expect(await fast()).toEqual({ refused: true });
      expect(shown).toEqual([]);
      server.answerSlow(how === "a timeout" ? String : undefined);
      expect(await fast()).toEqual({ refused: false });
      expect(shown).toEqual(["bob"]);
      await connection.close();
    },
  );

  it("RE-31 is not refused for the sake of a call that never went out", async () => {
    const server = createAskingServer();
    const connection = await openMcpConnection({ transport: server.transport, protocol: "2025" });
    const unsent = connection.request("tools/call", { name: "slow" }, { caller: alice, timeoutMs: 0 });
    await expect(unsent).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(await connection.request("tools/call", { name: "fast" }, { caller: bob })).toEqual({
      refused: false,
    });
    await connection.close();
  });
});
