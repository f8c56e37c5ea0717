// Writes so many megabytes on one stream ("stderr", or "stdout" as one line), then says that it is done.
import { once } from "node:events";

const [name, megabytes] = process.argv.slice(2);
const stream = name === "stderr" ? process.stderr : process.stdout;
const text = (name === "stderr" ? `${"e".repeat(63)}\n` : "o".repeat(64)).repeat(16_384);
for (let i = 0; i < Number(megabytes); i++) if (!stream.write(text)) await once(stream, "drain");
process.stderr.write("the last words\n");
process.stdout.write(`\n${JSON.stringify({ jsonrpc: "2.0", method: "done" })}\n`);
process.stdin.resume();
