import { OperationRegistry } from "../src/index.ts";
import { serveHttp } from "../src/openapi/index.ts";
import { query, sleep } from "./make-operation.ts";

/** A server in a process of its own, which tests send signals to; it says its address and each call it starts. */
const slow = query("wait.some", async () => {
  console.log("started");
  await sleep(300);
  return "done";
});

const idle = await serveHttp(new OperationRegistry(), { drainOnSignal: true });
const server = await serveHttp(new OperationRegistry([slow]), { drainOnSignal: true });
console.log(server.url);
// Closing one of them by hand changes nothing for the other.
if (process.argv.includes("close-idle")) await idle.close();
