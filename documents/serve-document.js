import { createResultFormat } from "../dist/formats.js";
import { OperationRegistry } from "../dist/index.js";
import { createHttpHandler, fromOpenApi } from "../dist/openapi.js";
import { readDocument } from "./find-documents.js";

/** Serves a document onward, once in a process of its own, and tells what that takes and makes of it. */
const [, , path = ""] = process.argv;
const FORMATS = ["tool-envelope", "tiered-envelope", "status-envelope", "mcp"];

const before = processorSeconds();
const source = await fromOpenApi(path, { namespace: "x", limits: { operations: 50_000 }, onWarning() {} });
const registry = new OperationRegistry([], { onWarning() {} });
registry.registerAll(source);
const bytes = await serve(registry);
const seconds = processorSeconds() - before;
const result = {
  seconds,
  incoming: Buffer.byteLength(JSON.stringify(readDocument(path))),
  served: bytes.length,
  always: (await serve(new OperationRegistry())).length,
  operations: [...source].length,
};
if (process.send === undefined) console.log(result);
else process.send(result);
await source.close();
process.disconnect?.();

function processorSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** The document of what is registered, as the first caller gets it. */
async function serve(registry) {
  const formats = FORMATS.map((name) => createResultFormat(name));
  const handler = createHttpHandler(registry, { formats, onWarning() {} });
  const response = await handler.fetch(new Request("http://localhost/openapi.json"));
  const bytes = Buffer.from(await response.arrayBuffer());
  await handler.close();
  return bytes;
}
