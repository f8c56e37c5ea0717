// Answers from a recording of a real server (see test/data/recorded-servers): `node replay-server.js <recording.json>`.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";

const recording = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
const { modern } = recording;
let isModern = false;
let listed = 0;

const send = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const answer = (id, { result, error }) => send({ jsonrpc: "2.0", id, ...(error ? { error } : { result }) });
const unknown = (id) => answer(id, { error: { code: -32601, message: "Method not found" } });

/** Equal calls were answered in this order; the last answer is given again and again. */
function replay(id, params) {
  const calls = isModern ? modern.calls : recording.calls;
  const { name, arguments: args = {} } = params;
  const isSame = ({ request }) =>
    request.params.name === name && isDeepStrictEqual(request.params.arguments ?? {}, args);
  const matching = calls.filter(isSame);
  const next = matching.find((call) => call.isDone !== true) ?? matching.at(-1);
  if (next === undefined) return answer(id, { error: { code: -32000, message: `No recording of ${name}` } });
  next.isDone = true;
  for (const { message, ...told } of next.notificationsDuring ?? []) {
    const notification = message ?? told;
    if (notification.method !== "notifications/progress") send(notification);
  }
  return answer(id, next.response);
}

function handle({ id, method, params = {} }) {
  if (id === undefined) return undefined;
  switch (method) {
    case "server/discover":
      isModern = modern !== undefined;
      return answer(id, recording.discoverProbe.response);
    case "initialize":
      isModern = false;
      return answer(id, recording.initialize.response);
    case "tools/list": {
      if (isModern) return answer(id, modern.toolsList.response);
      const page = recording.toolsList[params.cursor === undefined ? 0 : ++listed];
      return answer(id, page.response);
    }
    case "tools/call":
      return replay(id, params);
    case "resources/list":
      return recording.resourcesList ? answer(id, recording.resourcesList.response) : unknown(id);
    case "resources/templates/list":
      return recording.resourceTemplatesList
        ? answer(id, recording.resourceTemplatesList.response)
        : unknown(id);
    case "prompts/list":
      return recording.promptsList ? answer(id, recording.promptsList.response) : unknown(id);
    case "ping":
      return answer(id, { result: {} });
    default:
      return unknown(id);
  }
}

for (const line of recording.nonJsonStdoutLines) process.stdout.write(`${line.text ?? line}\n`);
process.stderr.write(recording.stderr);
createInterface({ input: process.stdin }).on("line", (line) => handle(JSON.parse(line)));
