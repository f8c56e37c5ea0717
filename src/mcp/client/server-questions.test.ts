import { InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/client";
import { afterEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../test/make-operation.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import { openMcpConnection } from "./mcp-connection.ts";
import { CallersInFlight, GIVEN_UP_LIMITS } from "./server-questions.ts";

const alice: CallerSide = { elicit: async () => ({ action: "decline" }) };
const bob: CallerSide = { elicit: async () => ({ action: "decline" }) };

function callerOf(callers: CallersInFlight): CallerSide | undefined {
  const found = callers.find();
  if (found.kind !== "one") throw new Error(`The caller is ${found.kind}.`);
  return found.caller;
}

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
    expect(callers.find()).toMatchObject({ kind: "several" });
    callers.answered(1);
    callers.answered(1);
    callers.answered(99);
    expect(callers.find()).toMatchObject({ kind: "several" });
    callers.answered(2);
    expect(callers.find()).toEqual({ kind: "one", caller: bob });
  });

  it("Mcp: takes sides of one party for one caller, and asks where the latest call was made", () => {
    const callers = new CallersInFlight();
    const party = {};
    const [first, second, third] = [{ party }, { party }, { party }];
    callers.enter("tools/call", first)(1);
    const leaveSecond = callers.enter("tools/call", second);
    expect(callerOf(callers)).toBe(second);
    callers.enter("tools/call", third);
    expect(callerOf(callers)).toBe(third);
    const leaveAgain = callers.enter("tools/call", second);
    expect(callerOf(callers)).toBe(second);
    leaveAgain();
    leaveSecond();
    expect(callerOf(callers)).toBe(third);
    expect(callers.isRunning(second)).toBe(false);
  });

  it("Mcp: takes nobody for another because their parties look alike, or because they have none", () => {
    for (const [one, other] of [
      [{ party: {} }, { party: {} }],
      [{ party: "a" }, { party: "b" }],
      [{ party: "a" }, {}],
      [{ party: undefined }, { party: undefined }],
      [{ party: {} }, undefined],
    ] as const) {
      const callers = new CallersInFlight();
      const leave = callers.enter("tools/call", one);
      callers.enter("tools/call", other);
      expect(callers.find()).toEqual({ kind: "several" });
      leave(1);
      expect(callers.find()).toMatchObject({ kind: "several", waitMs: expect.any(Number) });
      callers.answered(1);
      expect(callers.find()).toEqual({ kind: "one", caller: other });
    }
  });

  it.each([
    ["a minute", 0, GIVEN_UP_LIMITS.rememberMs],
    ["a minute", GIVEN_UP_LIMITS.rememberMs, GIVEN_UP_LIMITS.rememberMs],
    ["as long as it had run", GIVEN_UP_LIMITS.rememberMs + 1, GIVEN_UP_LIMITS.rememberMs + 1],
    ["ten minutes at most", GIVEN_UP_LIMITS.longestMs + 1, GIVEN_UP_LIMITS.longestMs],
  ])(
    "X-6 forgets a call that was given up after %s of silence, and not before (%i ms)",
    (_, ranMs, silenceMs) => {
      let now = 0;
      const callers = new CallersInFlight({ now: () => now });
      const leave = callers.enter("tools/call", alice);
      now = ranMs;
      leave(1);
      callers.enter("tools/call", bob);
      expect(callers.find()).toEqual({ kind: "several", waitMs: silenceMs });
      now += silenceMs - 1;
      expect(callers.find()).toEqual({ kind: "several", waitMs: 1 });
      callers.progressed(1);
      callers.progressed(99);
      now += silenceMs - 1;
      expect(callers.find()).toEqual({ kind: "several", waitMs: 1 });
      now += 1;
      expect(callers.find()).toEqual({ kind: "one", caller: bob });
      callers.progressed(1);
      expect(callers.find()).toEqual({ kind: "one", caller: bob });
    },
  );

  it("Mcp: says how long until the last of the others is forgotten, whatever the caller itself gave up", () => {
    let now = 0;
    const callers = new CallersInFlight({ now: () => now });
    callers.enter("tools/call", alice)(1);
    now = 10_000;
    callers.enter("tools/call", undefined)(2);
    now = 20_000;
    callers.enter("tools/call", bob)(3);
    callers.enter("tools/call", bob);
    expect(callers.find()).toEqual({ kind: "several", waitMs: GIVEN_UP_LIMITS.rememberMs - 10_000 });
    callers.answered(2);
    expect(callers.find()).toEqual({ kind: "several", waitMs: GIVEN_UP_LIMITS.rememberMs - 20_000 });
  });

  it("X-6 remembers as many calls as allowed, and with one more takes nobody for the only one", () => {
    let now = 0;
    const callers = new CallersInFlight({ now: () => now });
    for (let id = 0; id < GIVEN_UP_LIMITS.calls; id++) callers.enter("tools/call", bob)(id);
    callers.enter("tools/call", bob);
    expect(callers.find()).toEqual({ kind: "one", caller: bob });
    callers.enter("tools/call", alice)("one more");
    for (let id = 0; id < GIVEN_UP_LIMITS.calls; id++) callers.answered(id);
    expect(callers.find()).toEqual({ kind: "several", waitMs: GIVEN_UP_LIMITS.rememberMs });
    now = GIVEN_UP_LIMITS.rememberMs;
    expect(callers.find()).toEqual({ kind: "one", caller: bob });
  });
});

/** Somebody who notes that they were asked. */
function showing(who: string, shown: string[]): CallerSide {
  return {
    elicit: async () => {
      shown.push(who);
      return { action: "decline" };
    },
  };
}

/** A 2025 server that never answers "slow" of its own accord, and asks something in the middle of "fast". */
function createAskingServer() {
  const [here, there] = InMemoryTransport.createLinkedPair();
  const send = (message: object) => void there.send({ jsonrpc: "2.0", ...message } as JSONRPCMessage);
  const slow: (string | number)[] = [];
  const refusals: string[] = [];
  let asking: string | number | undefined;
  there.onmessage = (message) => {
    const { id, method, params, error } = message as unknown as Record<string, never>;
    const { name, protocolVersion } = (params ?? {}) as { name?: string; protocolVersion?: string };
    if (method === undefined) {
      if (error !== undefined) refusals.push((error as { message: string }).message);
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
    slow,
    refusals,
    end: () => there.close(),
    answerSlow: (toId = (id: unknown) => id) => send({ id: toId(slow.shift()), result: {} }),
  };
}

/** Milliseconds after which a call is given up, by a clock that stands still until then. */
const TIMEOUT_MS = 50;

describe("a question after a call was given up", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  /** No time passes until the server has the call. */
  const stopClock = () => vi.useFakeTimers({ toFake: ["performance"] });

  async function timeOut(server: ReturnType<typeof createAskingServer>): Promise<void> {
    await until(() => server.slow.length === 1);
    vi.advanceTimersByTime(TIMEOUT_MS);
  }

  it.each(["a timeout", "an abort"])(
    "RE-31 is not shown to another caller after %s, until the late answer",
    async (how) => {
      stopClock();
      const server = createAskingServer();
      const connection = await openMcpConnection({ transport: server.transport, protocol: "2025" });
      const shown: string[] = [];
      const [one, other] = [showing("alice", shown), showing("bob", shown)];
      const stop = new AbortController();
      const limit = how === "a timeout" ? { timeoutMs: TIMEOUT_MS } : { signal: stop.signal };
      const slow = connection.request("tools/call", { name: "slow" }, { caller: one, ...limit });
      await timeOut(server);
      stop.abort();
      await expect(slow).rejects.toMatchObject({ code: how === "a timeout" ? "TIMEOUT" : "ABORTED" });
      const fast = () => connection.request("tools/call", { name: "fast" }, { caller: other });
      expect(await fast()).toEqual({ refused: true });
      expect(server.refusals).toEqual([
        "A call of another caller was given up unanswered and may still run: it cannot be told whose question this is. Wait 60 s, or reconnect the source.",
      ]);
      expect(shown).toEqual([]);
      server.answerSlow(how === "a timeout" ? String : undefined);
      expect(await fast()).toEqual({ refused: false });
      expect(shown).toEqual(["bob"]);
      await connection.close();
    },
  );

  it("RE-31 is shown to the same caller, in the call that runs now", async () => {
    stopClock();
    const server = createAskingServer();
    const connection = await openMcpConnection({ transport: server.transport, protocol: "2025" });
    const shown: string[] = [];
    const [before, now] = ["before", "now"].map((when) => ({ ...showing(when, shown), party: "alice" }));
    const limit = { timeoutMs: TIMEOUT_MS };
    const slow = connection.request("tools/call", { name: "slow" }, { caller: before, ...limit });
    await timeOut(server);
    await expect(slow).rejects.toMatchObject({ code: "TIMEOUT" });
    const fast = connection.request("tools/call", { name: "fast" }, { caller: now });
    expect(await fast).toEqual({ refused: false });
    expect(shown).toEqual(["now"]);
    await connection.close();
  });

  it("RE-31 is anybody's again over a new session, which knows nothing of the call", async () => {
    stopClock();
    const servers = [createAskingServer(), createAskingServer()] as const;
    let made = 0;
    const connection = await openMcpConnection({
      transport: () => (servers[made++] ?? servers[1]).transport(),
      protocol: "2025",
      reconnect: { delayMs: 1 },
    });
    const limit = { timeoutMs: TIMEOUT_MS };
    const slow = connection.request("tools/call", { name: "slow" }, { caller: alice, ...limit });
    await timeOut(servers[0]);
    await expect(slow).rejects.toMatchObject({ code: "TIMEOUT" });
    const fast = () => connection.request("tools/call", { name: "fast" }, { caller: bob });
    expect(await fast()).toEqual({ refused: true });
    await servers[0].end();
    await expect.poll(() => connection.state.status, { timeout: 20_000 }).toBe("ready");
    expect(await fast()).toEqual({ refused: false });
    expect(made).toBe(2);
    await connection.close();
  });

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
