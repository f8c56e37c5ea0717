// @ts-check
import { readFileSync } from "node:fs";
import { createHttpHandler, createResultFormat, fromOpenApi, OperationRegistry } from "../waybill.js";

/** Serves a document onward, once in a process of its own, and tells what the first request for the document takes. */
const [, , path = ""] = process.argv;

const FORMATS = ["tool-envelope", "tiered-envelope", "status-envelope", "mcp"];

function processorSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

const text = JSON.stringify(JSON.parse(readFileSync(path, "utf8")));
const registry = new OperationRegistry();
registry.registerAll(await fromOpenApi(path, { namespace: "x", onWarning: () => {} }));
const formats = FORMATS.map((name) => createResultFormat(name));
const handler = createHttpHandler(registry, { formats, onWarning: () => {} });

const before = processorSeconds();
// In processor time, which other work on the machine does not change.
let longest = 0;
let last = before;
const timer = setInterval(() => {
  const now = processorSeconds();
  longest = Math.max(longest, now - last);
  last = now;
}, 1);
const response = await handler.fetch(new Request("http://localhost/openapi.json"));
const bytes = Buffer.from(await response.arrayBuffer());
const seconds = processorSeconds() - before;
clearInterval(timer);

const { components } = JSON.parse(bytes.toString());
process.send?.({
  seconds,
  longest: longest * 1e3,
  size: bytes.length,
  ratio: bytes.length / Buffer.byteLength(text),
  schemas: Object.keys(components.schemas).length,
  peak: process.resourceUsage().maxRSS * 1024,
});
await handler.close();
process.disconnect?.();
