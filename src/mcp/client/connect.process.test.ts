import { describe, expect, it } from "vitest";
import {
  callScripted,
  isAlive,
  textOf,
  until,
  withScripted,
} from "../../../test/mcp-servers/scripted-connection.ts";

const ERAS = ["legacy", "modern"] as const;

describe.each(ERAS)("a connection to a %s server on standard input and output", (era) => {
  it("RE-23 gives results exactly as the server sent them, unknown blocks and fields included", async () => {
    await withScripted(era, {}, async ({ connection }) => {
      const args = JSON.parse('{"__proto__":{"polluted":1},"deep":[{"x":null}]}') as Record<string, unknown>;
      const result = await callScripted(connection, "echo", args);
      expect(result).toMatchObject({ content: [{ type: "alien", x: 1 }], odd: [null] });
      expect(JSON.stringify(result["structuredContent"])).toBe(
        '{"__proto__":{"polluted":1},"deep":[{"x":null}]}',
      );
      expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    });
  });

  it("Mcp: tells what the server said of itself, as it said it, though it breaks the SDK's schema", async () => {
    await withScripted(era, {}, async ({ connection }) => {
      const { protocolVersion, capabilities, instructions } = connection.server;
      expect(protocolVersion).toBe(era === "modern" ? "2026-07-28" : "2025-06-18");
      expect(instructions).toBe("Be kind.");
      expect(JSON.stringify(capabilities)).toContain("odd");
    });
  });

  it("Mcp: starts one process, probing it in place", async () => {
    await withScripted(era, {}, async ({ connection, pids }) => {
      await callScripted(connection, "echo");
      expect(pids()).toHaveLength(1);
    });
  });

  it("Mcp: passes progress without the token, of this request only", async () => {
    await withScripted(era, {}, async ({ connection }) => {
      const seen: unknown[] = [];
      await callScripted(connection, "progresses", {}, { onProgress: (progress) => seen.push(progress) });
      expect(seen).toEqual([1, 2, 3].map((progress) => ({ progress, extra: "e" })));
    });
  });

  it("RE-23 tells a timeout, an abort and their order apart, and the server hears of both", async () => {
    await withScripted(era, {}, async ({ connection }) => {
      await expect(callScripted(connection, "sleeps", {}, { timeoutMs: 30 })).rejects.toMatchObject({
        code: "TIMEOUT",
        message: expect.stringContaining("tools/call"),
      });
      const stop = new AbortController();
      const call = callScripted(connection, "sleeps", {}, { signal: stop.signal });
      setTimeout(() => stop.abort(new Error("enough")), 20);
      await expect(call).rejects.toMatchObject({ code: "ABORTED" });
      expect(textOf(await callScripted(connection, "cancelled"))).toHaveLength(2);
    });
  });

  it("Mcp: does not time out at once when the limit is longer than a timer takes", async () => {
    await withScripted(era, {}, async ({ connection }) => {
      const options = { timeoutMs: 2 ** 31 };
      expect(textOf(await callScripted(connection, "progresses", {}, options))).toBe("done");
      const forever = { timeoutMs: Number.POSITIVE_INFINITY };
      expect(textOf(await callScripted(connection, "progresses", {}, forever))).toBe("done");
    });
  });

  it("RE-23 maps JSON-RPC errors by table, and cleans the server's words", async () => {
    await withScripted(era, {}, async ({ connection }) => {
      const fail = (error: unknown) => callScripted(connection, "fails", error as Record<string, unknown>);
      const said = { message: "\u001b[31mred\u001b[0m", data: { at: "\u202eevil" } };
      await expect(fail({ code: -32603, ...said })).rejects.toMatchObject({
        code: "EXECUTION_ERROR",
        details: { rpcCode: -32603, said: "red" },
      });
      await expect(fail({ code: -32602, ...said })).rejects.toMatchObject({
        code: "VALIDATION_ERROR",
        details: { rpcCode: -32602, said: "red" },
      });
      await expect(fail({ code: -32601, message: "m" })).rejects.toMatchObject({
        code: "OPERATION_NOT_FOUND",
      });
      await expect(fail({ code: -32602, message: "m" })).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
      await expect(fail({ code: -32602, message: "Unknown tool: fails" })).rejects.toMatchObject({
        code: "OPERATION_NOT_FOUND",
      });
    });
  });

  it("Mcp: takes an id that comes back as text, and refuses a result that is no object", async () => {
    await withScripted(era, {}, async ({ connection }) => {
      expect(await callScripted(connection, "echo", { idAsText: true })).toMatchObject({ odd: [null] });
      await expect(callScripted(connection, "is-no-object")).rejects.toMatchObject({
        code: "EXECUTION_ERROR",
      });
    });
  });

  it("Mcp: tells of notifications as they came, and of noise as an oddity", async () => {
    await withScripted(era, {}, async ({ connection, events }) => {
      await callScripted(connection, "notifies");
      const methods = events.flatMap((event) => (event.type === "notification" ? [event.method] : []));
      expect(methods).toEqual(
        expect.arrayContaining(["notifications/message", "notifications/tools/list_changed"]),
      );
      await until(() => events.filter((event) => event.type === "oddity").length >= 2);
    });
  });

  it("Mcp: leaves out of _meta what speaks for another connection", async () => {
    await withScripted(era, {}, async ({ connection }) => {
      const _meta = { progressToken: 5, "io.modelcontextprotocol/protocolVersion": "1999", mine: 1 };
      const meta = textOf(
        await connection.request("tools/call", { name: "meta", arguments: {}, _meta }),
      ) as object;
      expect(meta).toMatchObject({ mine: 1 });
      expect(meta).not.toHaveProperty("progressToken");
      expect(JSON.stringify(meta)).not.toContain("1999");
    });
  });

  it("Mcp: sends the _meta of a call with its progress token and what the revision wants in it", async () => {
    await withScripted(era, {}, async ({ connection }) => {
      for (const _meta of [undefined, {}, { absent: undefined }, { mine: 1, nested: { "a}": ["}"] } }]) {
        const params = { name: "meta", _meta, arguments: {} };
        const called = await connection.request("tools/call", params, { onProgress: () => {} });
        const meta = textOf(called) as Record<string, unknown>;
        const { progressToken, ...others } = meta;
        expect(progressToken).toEqual(expect.any(Number));
        const own = Object.entries(others).filter(([name]) => !name.startsWith("io.modelcontextprotocol/"));
        expect(Object.fromEntries(own)).toEqual(JSON.parse(JSON.stringify(_meta ?? {})));
        expect(Object.keys(others).length - own.length).toBe(era === "modern" ? 3 : 0);
      }
    });
  });

  it("Mcp: rejects what is pending at once when the process crashes, and starts it again", async () => {
    await withScripted(era, { reconnect: { delayMs: 20 } }, async ({ connection, events, pids }) => {
      const pending = callScripted(connection, "sleeps");
      const crash = callScripted(connection, "crashes");
      const error = await pending.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "UNAVAILABLE", message: expect.stringContaining("code 3") });
      expect(String((error as Error).cause)).toContain("the disk is full");
      expect(JSON.stringify(error)).not.toContain("disk");
      await expect(crash).rejects.toMatchObject({ code: "UNAVAILABLE" });
      await until(() => connection.state.status === "ready");
      expect(await callScripted(connection, "echo")).toMatchObject({ odd: [null] });
      expect(pids()).toHaveLength(2);
      const states = events.flatMap((event) => (event.type === "state" ? [event.state.status] : []));
      expect(states).toEqual(["down", "connecting", "ready"]);
    });
  });

  it("Mcp: leaves no process behind when it is closed", async () => {
    let started: number[] = [];
    await withScripted(era, {}, async ({ connection, pids }) => {
      const pending = callScripted(connection, "sleeps");
      pending.catch(() => {});
      started = pids();
      await connection.close();
      await expect(pending).rejects.toMatchObject({ code: "UNAVAILABLE" });
      await expect(callScripted(connection, "echo")).rejects.toMatchObject({ code: "UNAVAILABLE" });
      expect(connection.state).toEqual({ status: "closed" });
    });
    expect(started).toHaveLength(1);
    expect(started.map(isAlive)).toEqual([false]);
  });
});
