// @ts-check
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

/** @returns {Promise<number>} */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  server.close();
  await once(server, "close");
  return port;
}

/** Starts a broker on loopback; ends it with this process at the latest. */
export async function startNats() {
  const port = await freePort();
  const child = spawn("nats-server", ["-a", "127.0.0.1", "-p", String(port)], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  process.once("exit", () => child.kill());
  await new Promise((resolve, reject) => {
    child.once("error", () =>
      reject(new Error("There is no nats-server on the PATH; install the Debian package.")),
    );
    child.stderr.on("data", (text) => String(text).includes("Server is ready") && resolve(undefined));
  });
  return { port, stop: () => child.kill() };
}
