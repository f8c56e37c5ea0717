// @ts-check
import { fromMcp, OperationRegistry, serveMcpHttp, serveStdio, toMcpServer } from "../waybill.js";

const source = await fromMcp(
  { command: process.execPath, args: [new URL("./sdk-server.js", import.meta.url).pathname, "stdio"] },
  { namespace: "up" },
);
const registry = new OperationRegistry();
registry.registerAll(source);
const server = toMcpServer(registry, { names: { prefix: false } });
if (process.argv[2] === "stdio") serveStdio(server);
else process.send?.({ port: (await serveMcpHttp(server)).port });
