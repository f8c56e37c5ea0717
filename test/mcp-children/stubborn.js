// Ignores SIGTERM and lives for a minute; "quiet" does not hold the streams it was given.
import { closeSync } from "node:fs";

process.on("SIGTERM", () => {});
const ready = { jsonrpc: "2.0", method: "ready", params: { pid: process.pid } };
process.stdout.write(`${JSON.stringify(ready)}\n`, () => {
  if (process.argv.includes("quiet")) for (const fd of [1, 2]) closeSync(fd);
});
setTimeout(() => {}, 60_000);
