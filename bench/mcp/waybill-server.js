// @ts-check
import { serveMcpHttp, serveStdio, toMcpServer } from "../waybill.js";
import { createBenchRegistry } from "./operations.js";

const server = toMcpServer(createBenchRegistry(Number(process.argv[3] ?? 1)));
if (process.argv[2] === "stdio") serveStdio(server);
else {
  const { port } = await serveMcpHttp(server);
  process.send?.({ port });
  process.once("disconnect", () => process.exit());
}
