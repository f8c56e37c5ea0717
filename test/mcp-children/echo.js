// Answers each request with its own params, in the order in which they come; ends with its input.
import { createInterface } from "node:readline";

for await (const line of createInterface({ input: process.stdin })) {
  const { id, params } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result: params })}\n`);
}
