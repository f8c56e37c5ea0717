import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from "vitest";
import { useBench } from "../../../../test/durable-bench.ts";
import { endsInTime } from "../../../../test/lateness.ts";
import { query, rejection, sleep, until } from "../../../../test/make-operation.ts";
import { natsSuite } from "../../../../test/nats-server.ts";
import { unwrap } from "../../../core/envelope/envelope.ts";
import { monotonicNow } from "../../../core/execution/cancellation.ts";
import { DurableStore, readDurableOptions } from "./durable-store.ts";
import { StartMarks } from "./durable-worker.ts";

const ACK_WAIT_MS = 500;
const durable = { durable: true } as const;

natsSuite("durable calls when things break", () => {
  const bench = useBench();
  let folder = "";
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "waybill-durable-"));
    const input = fileURLToPath(new URL("../../../../test/durable-worker-process.ts", import.meta.url));
    const bundle = await rolldown({ input, platform: "node", logLevel: "silent" });
    await bundle.write({ file: join(folder, "worker.mjs"), format: "esm", codeSplitting: false });
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Starts a worker of its own process and waits until it takes requests. */
  async function startChild(): Promise<{
    child: ChildProcess;
    says(text: string): Promise<void>;
    log(): string;
  }> {
    const args = [join(folder, "worker.mjs"), bench.server.url, bench.prefix, String(ACK_WAIT_MS)];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    const says = async (text: string): Promise<void> => {
      while (!output.includes(text)) await sleep(10);
    };
    await says("ready");
    return { child, says, log: () => output };
  }

  it("Durable: a worker killed while running an idempotent call loses nothing: another runs it again", async () => {
    const calls = await bench.calls();
    const first = await startChild();
    const { requestId } = await calls.submit("child.again", { hangsIn: first.child.pid });
    await first.says("again");
    first.child.kill("SIGKILL");
    const second = await startChild();
    expect(unwrap(await calls.result(requestId))).toBe(`by ${second.child.pid}`);
    expect(second.log()).toContain("again");
  });

  it("Durable: a worker killed while running any other call: it is not run again and ends as lost", async () => {
    const calls = await bench.calls();
    const first = await startChild();
    const { requestId } = await calls.submit("child.once", { hangsIn: first.child.pid });
    await first.says("once");
    first.child.kill("SIGKILL");
    const second = await startChild();
    expect(await rejection(calls.result(requestId))).toMatchObject({
      code: "UNAVAILABLE",
      retryable: false,
      message: "The worker was lost while running the call; whether it took effect is unknown.",
    });
    expect(second.log()).not.toContain("once");
  });

  it("Durable: a worker stopped for longer than ackWaitMs comes back too late: the first result stays", async () => {
    const calls = await bench.calls();
    const first = await startChild();
    const { requestId } = await calls.submit("child.again", { stopsIn: first.child.pid });
    await first.says("again");
    const second = await startChild();
    const envelope = await calls.result(requestId);
    expect(unwrap(envelope)).toBe(`by ${second.child.pid}`);
    expect(first.log()).not.toContain("has run");
    first.child.kill("SIGCONT");
    await first.says("has run");
    await sleep(500);
    expect(await calls.result(requestId)).toEqual(envelope);
  });

  it("Durable: a request that comes again while it still runs here does not end as lost", async () => {
    let runs = 0;
    const block = query(
      "x.block",
      async () => {
        runs += 1;
        // Nothing of this process can say that it still works.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 900);
        await sleep(300);
        return "late but done";
      },
      durable,
    );
    const worker = await bench.serve([block], { ackWaitMs: 300 });
    const calls = await bench.calls();
    const { requestId } = await calls.submit("x.block");
    expect(unwrap(await calls.result(requestId))).toBe("late but done");
    await sleep(500);
    expect(runs).toBe(1);
    expect(worker.counters.late).toBe(0);
  });

  it("Durable: while the broker is away submit is UNAVAILABLE within its timeout; afterwards all goes on", async () => {
    const gate = { open: false };
    let begun = 0;
    const hold = query(
      "x.hold",
      async (input) => {
        begun += 1;
        while (!gate.open) await sleep(20);
        return input;
      },
      durable,
    );
    await bench.serve([hold], { ackWaitMs: 5_000 });
    const calls = await bench.calls();
    const running = await calls.submit("x.hold", "running");
    await until(() => begun === 1);
    await bench.server.kill();
    const refused = rejection(calls.submit("x.hold", "lost", { timeoutMs: 500 }));
    expect(await endsInTime(500, () => refused)).toBe(true);
    expect(await refused).toMatchObject({ code: "UNAVAILABLE" });
    const waiting = calls.result(running.requestId);
    gate.open = true;
    await sleep(300);
    await bench.server.restart();
    expect(unwrap(await waiting)).toBe("running");
    expect(unwrap(await calls.execute("x.hold", "after"))).toBe("after");
  });

  it("Durable: what was acknowledged survives a restart of the broker, its key too", async () => {
    const calls = await bench.calls();
    const key = { idempotencyKey: "k", timeoutMs: 60_000 };
    const submitted = await calls.submit("x.late", 1, key);
    await bench.server.kill();
    await bench.server.restart();
    expect(await calls.submit("x.late", 1, key)).toEqual({ requestId: submitted.requestId, duplicate: true });
    await bench.serve([query("x.late", (input) => input, durable)]);
    expect(unwrap(await calls.result(submitted.requestId))).toBe(1);
    await bench.server.restart();
    expect(unwrap(await calls.result(submitted.requestId))).toBe(1);
  });

  it("Durable: a submit that was stored without its acknowledgement is found again by its key", async () => {
    const calls = await bench.calls();
    const key = { idempotencyKey: "k" };
    onTestFinished(() => bench.server.resume());
    await bench.server.pause();
    const error = await rejection(calls.submit("x.late", 1, { ...key, timeoutMs: 300 }));
    bench.server.resume();
    expect(error).toMatchObject({ code: "UNAVAILABLE" });
    await sleep(300);
    const again = await calls.submit("x.late", 1, { ...key, timeoutMs: 60_000 });
    expect(again).toMatchObject({ duplicate: true });
  });

  it("Durable: a start mark stored without its acknowledgement still lets its own worker start, and no other", async () => {
    const store = await DurableStore.open(
      await bench.connect(),
      readDurableOptions({ prefix: bench.prefix }),
    );
    const address = { user: "_", operationId: "x.a", token: "t" };
    const marks = new StartMarks(store);
    onTestFinished(() => bench.server.resume());
    await bench.server.pause();
    const error = await rejection(marks.start(address, 1, monotonicNow() + 300));
    bench.server.resume();
    expect(error).toMatchObject({ code: "UNAVAILABLE" });
    await sleep(300);
    const later = monotonicNow() + 60_000;
    expect(await new StartMarks(store).start(address, 1, later)).toBe("lost");
    expect(await marks.start(address, 1, later)).toBe("started");
    expect(await marks.start(address, 1, later)).toBe("lost");
    expect(await marks.start(address, 2, later)).toBe("foreign");
  });
});
