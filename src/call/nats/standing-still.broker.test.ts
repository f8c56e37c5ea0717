import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { query, stream, until } from "../../../test/make-operation.ts";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveCalls } from "../call-handler.ts";
import { PendingRequestMap } from "../pending-request-map.ts";
import { connectNatsBus, type NatsBus } from "./nats-bus.ts";

/** Often enough for a short test; a process that merely does not get to run for three and a half of them fails none of it. */
const BEAT_MS = 500;

natsSuite("a process on NATS that stands still", () => {
  let folder = "";
  let server: NatsServer;
  const children: ChildProcess[] = [];
  const buses: NatsBus[] = [];

  beforeAll(async () => {
    server = await startNats();
    folder = mkdtempSync(join(tmpdir(), "waybill-bus-"));
    const input = fileURLToPath(new URL("../../../test/bus-process.ts", import.meta.url));
    const bundle = await rolldown({ input, platform: "node", logLevel: "silent" });
    await bundle.write({ file: join(folder, "end.mjs"), format: "esm", codeSplitting: false });
    await bundle.close();
  });
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
    for (const bus of buses.splice(0)) await bus.close();
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function startChild(role: "caller" | "worker") {
    const args = [join(folder, "end.mjs"), server.url, role, String(BEAT_MS)];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    const says = (text: string) => until(() => output.includes(text));
    await says("ready");
    return { child, says };
  }

  async function connect(beatMs = BEAT_MS): Promise<NatsBus> {
    const bus = await connectNatsBus({ servers: server.url }, { beatMs });
    buses.push(bus);
    return bus;
  }

  it("Call: a stopped caller that goes on hears that its call and its stream were given up", async () => {
    const hang = query("a.hang", () => new Promise(() => {}));
    const count = stream("a.count", async function* () {
      for (let n = 0; ; n++) yield n;
    });
    const handler = await serveCalls(new OperationRegistry([hang, count]), await connect());
    const { child, says } = await startChild("caller");
    await until(() => handler.running === 2);
    child.kill("SIGSTOP");
    await until(() => handler.running === 0);
    child.kill("SIGCONT");
    await says("call UNAVAILABLE");
    child.kill("SIGUSR2");
    await says("stream UNAVAILABLE");
  });

  it("Call: every call succeeds while one worker of three is stopped, for retries go to another", async () => {
    const workers = [await startChild("worker"), await startChild("worker"), await startChild("worker")];
    const map = new PendingRequestMap(await connect());
    const retry = { attempts: 3, attemptTimeoutMs: 2_000 };
    const call = async () => (await map.call("a.work", 1, { retry })).data;
    workers[1]?.child.kill("SIGSTOP");
    const answers = await Promise.all(Array.from({ length: 60 }, call));
    expect(answers).not.toContain(workers[1]?.child.pid);
    expect(new Set(answers).size).toBe(2);
    await map.close();
  });
});
