import { OperationRegistry } from "../../index.ts";
import { serveStdio, toMcpServer } from "../../mcp/index.ts";
import { DEPOT_PROMPTS, DEPOT_RESOURCES, depotOperations } from "./depot-operations.ts";

/** The process behind the namespace `depot`: a small MCP server that lives as long as whoever started it listens. */
const server = toMcpServer(new OperationRegistry(depotOperations()), {
  name: "depot",
  title: "The depot",
  instructions: "What stands on the shelves of the depot, and what it takes to get some of it.",
  names: { prefix: false },
  resources: DEPOT_RESOURCES,
  prompts: DEPOT_PROMPTS,
});

await serveStdio(server).closed;
