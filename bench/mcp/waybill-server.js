// @ts-check
import { serveMcpHttp, serveStdio, toMcpServer } from "../waybill.js";
import { createBenchRegistry } from "./operations.js";

const server = toMcpServer(createBenchRegistry(Number(process.argv[3] ?? 1)));
if (process.argv[2] === "stdio") serveStdio(server);
else process.send?.({ port: (await serveMcpHttp(server)).port });
