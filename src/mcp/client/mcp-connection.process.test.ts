import { afterEach, describe, expect, it, vi } from "vitest";
import {
  callScripted,
  isAlive,
  scriptedOptions,
  textOf,
  until,
  withScripted,
} from "../../../test/mcp-servers/scripted-connection.ts";
import { openMcpConnection } from "./mcp-connection.ts";

afterEach(() => void vi.restoreAllMocks());

describe("making a connection", () => {
  it.each(["exits-on-probe", "silent-on-probe"] as const)(
    "Mcp: takes one process and no wait where an older server %s, and no more when it is started again",
    async (mode) => {
      await withScripted(mode, { reconnect: { delayMs: 10 } }, async ({ connection, pids }) => {
        expect(connection.server.protocolVersion).toBe("2025-06-18");
        expect(pids()).toHaveLength(1);
        await callScripted(connection, "crashes").catch(() => {});
        await until(() => connection.state.status === "ready");
        expect(pids()).toHaveLength(2);
      });
    },
  );

  it("Mcp: asks a server that refuses what it claims again without, and remembers it", async () => {
    await withScripted("strict", { reconnect: { delayMs: 10 } }, async ({ connection, pids }) => {
      expect(connection.server.protocolVersion).toBe("2025-06-18");
      expect(textOf(await callScripted(connection, "initialized"))).toBe(2);
      await callScripted(connection, "crashes").catch(() => {});
      await until(() => connection.state.status === "ready");
      expect(textOf(await callScripted(connection, "initialized"))).toBe(1);
      expect(pids()).toHaveLength(2);
    });
  });

  it("Mcp: starts a server again that was of 2026-07-28 and ends when it is asked what it offers", async () => {
    await withScripted("downgrades", { reconnect: { delayMs: 10 } }, async ({ connection, pids }) => {
      expect(connection.server.protocolVersion).toBe("2026-07-28");
      await callScripted(connection, "crashes").catch(() => {});
      await until(() => connection.state.status === "ready");
      expect(connection.server.protocolVersion).toBe("2025-06-18");
      expect(pids()).toHaveLength(3);
    });
  });

  it("Mcp: speaks 2026-07-28 from the second connection on with a server that passed over the claim of it", async () => {
    await withScripted("both", { reconnect: { delayMs: 10 } }, async ({ connection, pids }) => {
      expect(connection.server.protocolVersion).toBe("2025-11-25");
      for (const starts of [2, 3]) {
        await callScripted(connection, "crashes").catch(() => {});
        await until(() => connection.state.status === "ready");
        expect(connection.server.protocolVersion).toBe("2026-07-28");
        expect(pids()).toHaveLength(starts);
      }
    });
  });

  it("Mcp: waits a second at most for a server of 2025-11-25 that does not say what it offers", async () => {
    await withScripted("silent-2025-11-25", { reconnect: { delayMs: 10 } }, async ({ connection, pids }) => {
      await callScripted(connection, "crashes").catch(() => {});
      await until(() => connection.state.status === "ready");
      expect(connection.server.protocolVersion).toBe("2025-11-25");
      expect(pids()).toHaveLength(2);
    });
  });

  it("Mcp: names the command and the reason when it fails, and leaves no process behind", async () => {
    const missing = openMcpConnection({ command: "waybill-no-such-command" });
    await expect(missing).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("waybill-no-such-command"),
    });
    const { options, pids } = scriptedOptions("exits-on-initialize");
    await expect(openMcpConnection(options)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("code 9"),
    });
    const deaf = scriptedOptions("deaf");
    const late = openMcpConnection({ ...deaf.options, connectTimeoutMs: 400 });
    await expect(late).rejects.toMatchObject({ code: "TIMEOUT" });
    expect([...pids(), ...deaf.pids()].filter(isAlive)).toEqual([]);
  });

  it("Mcp: refuses options that cannot work with a TypeError", async () => {
    await expect(openMcpConnection({} as never)).rejects.toThrow(TypeError);
    await expect(openMcpConnection({ command: "x", url: "https://x" } as never)).rejects.toThrow(TypeError);
    await expect(openMcpConnection({ command: "x", timeoutMs: -1 })).rejects.toThrow(TypeError);
    await expect(openMcpConnection({ command: "x", limits: { rounds: 0 } })).rejects.toThrow(TypeError);
  });

  it("Mcp: backs off from a server that crashes again and again, and says so to whoever asks", async () => {
    // The fourth wait is long enough for all that is looked at while it lasts.
    const reconnect = { delayMs: 400, maxDelayMs: 60_000 };
    await withScripted("crashes-later", { reconnect, protocol: "2025" }, async ({ connection, pids }) => {
      const timers = vi.spyOn(globalThis, "setTimeout");
      const waits: number[] = [];
      connection.onEvent((event) => {
        // The last timer that was set is the one for the next attempt.
        const isDown = event.type === "state" && event.state.status === "down";
        if (isDown) waits.push(timers.mock.lastCall?.[1] ?? 0);
      });
      await until(() => waits.length === 4);
      // Each is shortened by up to a half.
      for (const [attempt, full] of [400, 800, 1_600, 3_200].entries()) {
        expect(waits[attempt]).toBeGreaterThanOrEqual(0.5 * full);
        expect(waits[attempt]).toBeLessThanOrEqual(full);
      }
      expect(pids()).toHaveLength(4);
      for (let i = 0; i < 5; i++) {
        const refused = callScripted(connection, "echo");
        await expect(refused).rejects.toMatchObject({
          code: "UNAVAILABLE",
          message: expect.stringContaining("code 5"),
        });
      }
      expect(pids()).toHaveLength(4);
    });
  });

  it("Mcp: stays down for good when it is told not to reconnect", async () => {
    await withScripted("legacy", { reconnect: false }, async ({ connection, pids }) => {
      await callScripted(connection, "crashes").catch(() => {});
      await until(() => connection.state.status === "down");
      await expect(callScripted(connection, "echo")).rejects.toMatchObject({ code: "UNAVAILABLE" });
      expect(pids()).toHaveLength(1);
    });
  });

  it("Mcp: opens subscriptions/listen where the server offers list changes", async () => {
    await withScripted("modern", {}, async ({ connection, events }) => {
      expect(textOf(await callScripted(connection, "changes"))).toBe(1);
      await until(() =>
        events.some((event) => event.type === "notification" && event.method.endsWith("tools/list_changed")),
      );
    });
  });

  it("Mcp: listens again when the server ends the subscription, and tells that lists may have changed", async () => {
    await withScripted("modern", {}, async ({ connection, events }) => {
      const changes = () => events.filter((event) => event.type === "notification").length;
      await callScripted(connection, "changes");
      await until(() => changes() > 0);
      const before = changes();
      expect(textOf(await callScripted(connection, "ends-listening"))).toBe(1);
      await until(() => changes() > before);
      await callScripted(connection, "changes");
      await until(() => changes() > before + 1);
      expect(textOf(await callScripted(connection, "ends-listening"))).toBe(2);
    });
  });

  it("Mcp: answers as many rounds and questions as allowed, and not one more", async () => {
    await withScripted("modern", { limits: { rounds: 3, questions: 4 } }, async ({ connection }) => {
      expect(textOf(await callScripted(connection, "asks-rounds", { count: 3 }))).toBe(3);
      await expect(callScripted(connection, "asks-rounds", { count: 4 })).rejects.toMatchObject({
        code: "EXECUTION_ERROR",
      });
      expect(textOf(await callScripted(connection, "asks-much", { count: 4 }))).toBe(4);
      await expect(callScripted(connection, "asks-much", { count: 5 })).rejects.toMatchObject({
        code: "EXECUTION_ERROR",
        message: expect.stringContaining("4 questions"),
      });
    });
  });

  it("Mcp: makes one attempt at once for a request after the first loss, instead of waiting for its turn", async () => {
    await withScripted(
      "legacy",
      { reconnect: { delayMs: 60_000, maxDelayMs: 60_000 } },
      async ({ connection, pids }) => {
        await callScripted(connection, "crashes").catch(() => {});
        await until(() => connection.state.status === "down");
        await expect(callScripted(connection, "echo")).rejects.toMatchObject({ code: "UNAVAILABLE" });
        expect(await callScripted(connection, "echo")).toMatchObject({ odd: [null] });
        await callScripted(connection, "crashes").catch(() => {});
        await until(() => connection.state.status === "down");
        await expect(callScripted(connection, "echo")).rejects.toMatchObject({ code: "UNAVAILABLE" });
        await expect(callScripted(connection, "echo")).rejects.toMatchObject({ code: "UNAVAILABLE" });
        expect(pids()).toHaveLength(2);
      },
    );
  });

  it("Mcp: does not hold a request longer than its own limit while a connection is being made", async () => {
    await withScripted(
      "legacy",
      { reconnect: { delayMs: 60_000, maxDelayMs: 60_000 } },
      async ({ connection }) => {
        await callScripted(connection, "crashes").catch(() => {});
        await until(() => connection.state.status === "down");
        await callScripted(connection, "echo").catch(() => {});
        expect(connection.state.status).toBe("connecting");
        await expect(callScripted(connection, "echo", {}, { timeoutMs: 0 })).rejects.toMatchObject({
          code: "TIMEOUT",
        });
        const signal = AbortSignal.abort();
        await expect(callScripted(connection, "echo", {}, { signal })).rejects.toMatchObject({
          code: "ABORTED",
        });
      },
    );
  });

  it("Mcp: refuses an answer that is longer than a message may be, and goes on", async () => {
    await withScripted("legacy", { limits: { messageBytes: 5_000 } }, async ({ connection }) => {
      const long = callScripted(connection, "echo", { text: "x".repeat(5_000) });
      await expect(long).rejects.toMatchObject({ code: "TOO_LARGE" });
      expect(await callScripted(connection, "echo")).toMatchObject({ odd: [null] });
    });
  });
});
