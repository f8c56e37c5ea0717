// A server on standard input and output whose tool "wait" never answers: it leaves its process id in the file that the first
// argument names. "stubborn" goes on whatever it is told, for a minute; "late" says nothing until that file is there.
import { existsSync, renameSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [file = "", manner = ""] = process.argv.slice(2);
const inputSchema = { type: "object" };
const tools = [
  { name: "wait", description: "Waits for ever.", inputSchema },
  { name: "ask", description: "Asks when the file is there.", inputSchema },
];
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const untilThere = async () => {
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 10));
};
const ANSWERS = {
  initialize: () => ({
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "waits", version: "1.0.0" },
  }),
  "tools/list": () => ({ tools }),
  ping: () => ({}),
};

if (manner === "stubborn") {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
}
// Whoever started it may be gone.
const end = setTimeout(() => process.exit(9), 60_000);
if (manner !== "stubborn") end.unref();

if (manner === "late") await untilThere();

/** The call that waits for an answer of the person. */
let asking;

function ask(id) {
  asking = id;
  const requestedSchema = { type: "object", properties: { sure: { type: "boolean" } }, required: ["sure"] };
  send({
    id: "question",
    method: "elicitation/create",
    params: { message: "Are you sure?", requestedSchema },
  });
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (id === "question") {
    send({ id: asking, result: { content: [{ type: "text", text: JSON.stringify(result) }] } });
  } else if (method === "tools/call" && params.name === "ask") {
    untilThere().then(() => ask(id));
  } else if (method === "tools/call") {
    // Whoever sees the file finds it whole.
    writeFileSync(`${file}.part`, String(process.pid));
    renameSync(`${file}.part`, file);
  } else if (id !== undefined) {
    const answer = ANSWERS[method];
    const error = { code: -32601, message: "no such method" };
    const body = answer === undefined ? { error } : { result: answer() };
    send({ id, ...body });
  }
});
