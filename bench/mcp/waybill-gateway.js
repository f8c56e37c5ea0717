// @ts-check
import { fromMcp, OperationRegistry, serveStdio, toMcpServer } from "../waybill.js";
import { answerCpu } from "./cpu.js";

const source = await fromMcp({
  namespace: "up",
  command: process.execPath,
  args: [new URL("./sdk-server.js", import.meta.url).pathname, "stdio"],
});
const registry = new OperationRegistry();
registry.registerAll(source);
serveStdio(toMcpServer(registry, { names: { prefix: false } }));
answerCpu();
