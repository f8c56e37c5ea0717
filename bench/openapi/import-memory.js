// @ts-check
import { readFileSync } from "node:fs";

/** Tells how much heap a parsed document, or an imported one, keeps alive. */
const [, , what, path = ""] = process.argv;

function alive() {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

const { fromOpenApi } = await import("../waybill.js");
const before = alive();
const kept =
  what === "parsed" ? JSON.parse(readFileSync(path, "utf8")) : await fromOpenApi(path, { namespace: "x" });
await new Promise((resolve) => setTimeout(resolve, 100));
process.send?.({ heap: alive() - before, kept: typeof kept });
process.disconnect?.();
