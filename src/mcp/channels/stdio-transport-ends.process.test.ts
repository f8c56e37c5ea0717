import { describe, expect, it } from "vitest";
import { until } from "../../../test/make-operation.ts";
import { createStdioChild, isRunning } from "../../../test/stdio-child.ts";

const SHORT = { limits: { closeMs: 150, killMs: 150 } };
/** For those that end at SIGTERM, however late. */
const PATIENT = { limits: { closeMs: 150, killMs: 20_000 } };

const request = { jsonrpc: "2.0", id: 1, method: "echo" } as const;

async function startFamily(...args: string[]) {
  // One that ends with its input does so before it is signalled, however late.
  const closeMs = args[0] === "leave" ? 20_000 : 150;
  const child = createStdioChild("family.js", args, { limits: { ...SHORT.limits, closeMs } });
  const ready = child.next();
  await child.transport.start();
  const { params } = (await ready) as unknown as { params: { pid: number } };
  return { ...child, pids: [child.transport.pid as number, params.pid] };
}

describe("createStdioTransport: ends", () => {
  it.each([
    ["leave", "loud"],
    ["stay", "loud"],
    ["stay", "quiet"],
    ["leave", "quiet"],
  ])("Mcp: closing leaves nothing of a family that ignores SIGTERM (%s, %s)", async (...args) => {
    const { transport, pids, order } = await startFamily(...args);
    expect(pids.every(isRunning)).toBe(true);
    await Promise.all([transport.close(), transport.close()]);
    expect(pids.filter(isRunning)).toEqual([]);
    expect(order).toEqual(["message", args[0] === "leave" ? "close with 0" : "close with SIGKILL"]);
  });

  it.each(["loud", "quiet"])("Mcp: a leader that crashes takes its family along (%s)", async (how) => {
    const { transport, pids, order, closed } = await startFamily("crash", how);
    await transport.send(request);
    await closed;
    await transport.close();
    expect(pids.filter(isRunning)).toEqual([]);
    expect(order).toEqual(["message", "close with 3"]);
    await expect(transport.send(request)).rejects.toThrow("the process has ended");
  });

  it.each(["crash", "leave"])(
    "Mcp: whoever left the group and holds its pipes keeps nobody waiting (%s)",
    async (how) => {
      const { transport, pids, closed } = await startFamily(how, "outside");
      if (how === "crash") {
        await transport.send(request);
        await closed;
      }
      await transport.close();
      expect(pids.map(isRunning)).toEqual([false, true]);
      process.kill(pids[1] as number, "SIGKILL");
    },
  );

  it("Mcp: a process that ends with its input is not signalled", async () => {
    const { transport, order } = createStdioChild("echo.js", [], { limits: { closeMs: 20_000 } });
    await transport.start();
    await transport.close();
    expect(transport.exit).toEqual({ code: 0, signal: null });
    expect(order).toEqual(["close with 0"]);
  });

  it("Mcp: closing while it starts ends the process and says so", async () => {
    const { transport, order } = createStdioChild("deaf.js", [], PATIENT);
    const started = transport.start();
    const pid = transport.pid as number;
    const closed = transport.close();
    await expect(started).rejects.toThrow("closed before the process had started");
    await closed;
    expect(isRunning(pid)).toBe(false);
    expect(order).toEqual(["close with SIGTERM"]);
  });

  it("Mcp: closing before the start calls onclose once", async () => {
    const { transport, order } = createStdioChild("echo.js");
    await transport.close();
    await transport.close();
    expect(order).toEqual(["close with undefined"]);
  });

  it("Mcp: a process that closed its input makes sends fail, not this process", async () => {
    const { transport, next, errors } = createStdioChild("deaf.js", ["close"], SHORT);
    const ready = next();
    await transport.start();
    await ready;
    await transport.send(request).catch(() => {});
    await expect.poll(() => errors.length, { timeout: 20_000 }).toBeGreaterThan(0);
    await expect(transport.send(request)).rejects.toThrow("does not read");
    await transport.close();
  });

  it("Mcp: a process that is killed is told of before the messages it did not read", async () => {
    const { transport, next, order } = createStdioChild("deaf.js", [], {
      limits: { ...SHORT.limits, unsentChars: 2_000_000 },
    });
    const ready = next();
    await transport.start();
    await ready;
    const text = "x".repeat(1_000_000);
    const unread = transport
      .send({ ...request, params: { text } })
      .catch(({ message }: Error) => order.push(message));
    process.kill(transport.pid as number, "SIGKILL");
    await unread;
    expect(order).toEqual([
      "message",
      "close with SIGKILL",
      "The message was not sent: the process has ended.",
    ]);
  });

  it("Mcp: a process that never reads holds back senders, until it is closed", async () => {
    const { transport, next } = createStdioChild("deaf.js", [], {
      limits: { ...SHORT.limits, unsentChars: 2_000_000 },
    });
    const ready = next();
    await transport.start();
    await ready;
    const blocked = transport.send({ ...request, params: { text: "x".repeat(1_000_000) } });
    const outcome = blocked.then(
      () => "sent",
      (error: Error) => error.message,
    );
    expect(await Promise.race([outcome, new Promise((resolve) => setTimeout(resolve, 100, "waits"))])).toBe(
      "waits",
    );
    await transport.close();
    expect(await outcome).toContain("was closed before");
  });

  it("Mcp: a process that closes its output and runs on is ended", async () => {
    const { transport, closed, oddities } = createStdioChild("deaf.js", ["mute"], PATIENT);
    await transport.start();
    await closed;
    expect(transport.exit?.signal).toBe("SIGTERM");
    expect(oddities).toEqual(["The process closed its standard output and runs on; it is ended."]);
  });

  it("Mcp: 1,000 transports leave no listener behind", { timeout: 180_000 }, async () => {
    const listeners = process.listeners("exit");
    const resources = process.getActiveResourcesInfo().length;
    for (let round = 0; round < 20; round++) {
      const children = Array.from({ length: 50 }, () =>
        createStdioChild("", [], { command: "true", args: [] }),
      );
      await Promise.all(children.map(({ transport }) => transport.start()));
      await Promise.all(children.map(({ closed }) => closed));
      await Promise.all(children.map(({ transport }) => transport.close()));
    }
    expect(process.listeners("exit").filter((listener) => !listeners.includes(listener))).toEqual([]);
    await until(() => process.getActiveResourcesInfo().length < resources + 20);
  });
});
