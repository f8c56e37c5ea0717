// Never reads its input; "close" closes it, "mute" closes its output.
import { closeSync } from "node:fs";

if (process.argv[2] === "close") closeSync(0);
process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", method: "ready" })}\n`, () => {
  if (process.argv[2] === "mute") closeSync(1);
});
setTimeout(() => {}, 60_000);
