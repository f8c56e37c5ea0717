// @ts-check
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The server that everything here talks to. */
export const EXAMPLE = fileURLToPath(new URL("../examples/mcp-conformance-server.js", import.meta.url));

/** Starts the example over HTTP, on a port that is free; `stop` ends the process. @param {readonly string[]} [flags] */
export async function startExampleServer(flags = []) {
  const child = spawn(process.execPath, [EXAMPLE, "--port", String(await findFreePort()), ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  const [url] = await Promise.race([
    once(lines, "line"),
    ended.then(([code]) => Promise.reject(new Error(`The example server ended with ${code}.`))),
    once(child, "error").then(([error]) => Promise.reject(error)),
  ]);
  const stop = async () => {
    child.kill("SIGTERM");
    const slow = setTimeout(() => child.kill("SIGKILL"), 3_000);
    await ended;
    clearTimeout(slow);
  };
  return { url: String(url), stop };
}

/** A port of this machine that was free a moment ago. */
export async function findFreePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("No port is free.");
  return address.port;
}
