// @ts-check
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { serveMcpHttp, toMcpServer } from "../waybill.js";
import { createBenchRegistry } from "./operations.js";

/** A server with room for so many sessions that tells, when it is asked, what it holds in memory once garbage is gone. */
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
const sessions = Number(process.argv[2]);
const { port } = await serveMcpHttp(toMcpServer(createBenchRegistry(1)), {
  // Those who open sessions need connections besides the one that a session may hold open.
  limits: { sessions, connections: 2 * sessions },
});
process.on("message", (message) => {
  if (message !== "memory") return;
  for (let i = 0; i < 3; i++) collect();
  process.send?.({ memory: process.memoryUsage() });
});
process.send?.({ port });
