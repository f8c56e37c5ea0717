// @ts-check
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findProgram } from "../test/fleet/nginx.js";
import { findFreePort, startExampleServer } from "./example-server.js";

const BALANCER = fileURLToPath(new URL("../test/fleet/balancer.js", import.meta.url));
const REPLICAS = 3;

/**
 * Starts the example three times with one key of sessions, and a balancer in front that sends each request to any of them. What one of them alone can take,
 * the answer to a question that it asked, the others refuse with 503, and the balancer tries the next. Tasks are shared at a broker, where there is a
 * nats-server.
 */
export async function startExampleFleet() {
  const broker = await startBroker();
  const flags = ["--session-key", "the-key-of-all-replicas-00000000", ...(broker?.flags ?? [])];
  const replicas = await Promise.all(Array.from({ length: REPLICAS }, () => startExampleServer(flags)));
  const ports = replicas.map(({ url }) => new URL(url).port);
  const port = await findFreePort();
  const balancer = spawn(process.execPath, [BALANCER, String(port), ...ports], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: { ...process.env, BALANCER: "retry" },
  });
  await Promise.race([
    once(balancer, "message"),
    once(balancer, "exit").then(([code]) => Promise.reject(new Error(`The balancer ended with ${code}.`))),
  ]);
  /** How many requests each server answered, and how many went on to another one. @returns {Promise<{ answered: number[], retried: number }>} */
  const counts = async () => {
    balancer.send("counts");
    const [told] = await once(balancer, "message");
    return told;
  };
  const stop = async () => {
    const ended = once(balancer, "exit");
    balancer.kill();
    await ended;
    await Promise.all(replicas.map((replica) => replica.stop()));
    await broker?.stop();
  };
  return { url: `http://127.0.0.1:${port}/mcp`, sharesTasks: broker !== undefined, counts, stop };
}

/** A broker on a port that is free; nothing where no nats-server is installed, which fails with `CI=true`. */
async function startBroker() {
  const program = findProgram("nats-server");
  if (program === undefined && process.env["CI"] === "true") throw new Error("nats-server is not installed.");
  if (program === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "waybill-conformance-"));
  const port = String(await findFreePort());
  const child = spawn(program, ["-js", "-a", "127.0.0.1", "-p", port, "-sd", folder], { stdio: "ignore" });
  const ended = once(child, "exit");
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return { flags: ["--nats", `nats://127.0.0.1:${port}`], stop };
}
