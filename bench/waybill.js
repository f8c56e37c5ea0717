// @ts-check
import { existsSync } from "node:fs";

const entry = new URL("../dist/index.js", import.meta.url);
if (!existsSync(entry)) {
  console.error("There is no dist/index.js yet: run `npm run build` in the root of the repository first.");
  process.exit(2);
}

/** The built package, exactly as a user gets it. */
export const { CallError, compileSchema, defineOperation, OperationRegistry, Type } = await import(
  entry.href
);

/** What `waybill/formats` offers, likewise. */
export const { createResultFormat, decodeToolResult, parseEnvelopeBlock, toToolResult } = await import(
  new URL("../dist/formats.js", import.meta.url).href
);

/** What `waybill/call` and `waybill/call/nats` offer, likewise. */
export const { createMemoryBus, PendingRequestMap, serveCalls } = await import(
  new URL("../dist/call.js", import.meta.url).href
);
export const { connectNatsBus } = await import(new URL("../dist/call/nats.js", import.meta.url).href);

/** What `waybill/mcp` offers, likewise. */
export const { createMcpHandler, fromMcp, serveMcpHttp, serveStdio, toMcpServer } = await import(
  new URL("../dist/mcp.js", import.meta.url).href
);

/** What `waybill/openapi` offers, likewise. */
export const { createHttpHandler, fromOpenApi, serveHttp } = await import(
  new URL("../dist/openapi.js", import.meta.url).href
);

/** What `waybill/gateway` offers, likewise. */
export const { createGateway, loadConfigObject, serveGateway } = await import(
  new URL("../dist/gateway.js", import.meta.url).href
);
