// @ts-check
import { startMeasured } from "./measured-process.js";

const NEWLINE = 10;
/** So many requests with ids of their own are made in advance: an id comes again long after it was answered. */
const PREPARED = 4_096;

/**
 * Starts an MCP server that speaks over stdio and keeps so many calls of one tool in flight. The lines are made in advance, and of the
 * answers only the ends of lines are counted, so that what is measured is the server. All sides of a comparison are loaded by this code.
 * @param {string | URL} file @param {readonly string[]} args @param {number} inFlight
 */
export async function openLineLoad(file, args, inFlight) {
  const { child, cpu, close } = startMeasured(file, args, { stdio: ["pipe", "pipe", "inherit", "ipc"] });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("There are no pipes.");
  const ask = await introduce(stdin, stdout);
  const { tools } = await ask("tools/list", {});
  const { name } = tools.find((/** @type {{ name: string }} */ tool) => tool.name.endsWith("add"));
  const params = { name, arguments: { a: 1, b: 2 } };
  const first = await ask("tools/call", params);
  const lines = Array.from({ length: PREPARED }, (_, i) => writeLine("tools/call", params, i + 10));
  let at = 0;
  let left = 0;
  let unsent = 0;
  /** @type {() => void} */
  let done = () => {};
  /** @param {number} count */
  const send = (count) => {
    const next = lines.slice(at, at + count);
    at = (at + count) % PREPARED;
    if (next.length < count) next.push(...lines.slice(0, at));
    stdin.write(next.join(""));
    unsent -= count;
  };
  stdout.removeAllListeners("data");
  stdout.on("data", (/** @type {Buffer} */ chunk) => {
    let answers = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, end + 1)) answers += 1;
    left -= answers;
    if (unsent > 0 && answers > 0) send(Math.min(answers, unsent));
    if (left === 0) done();
  });
  return {
    /** The result of the first call. */
    first,
    /** Makes so many times as many calls as are in flight. */
    run: (/** @type {number} */ times) =>
      new Promise((/** @type {(value: void) => void} */ resolve) => {
        left = inFlight * times;
        unsent = left;
        done = resolve;
        send(inFlight);
      }),
    cpu,
    close,
  };
}

/** @param {string} method @param {object} params @param {number} [id] */
const writeLine = (method, params, id) => `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;

/**
 * Opens a session of 2025 and returns how to ask something in it.
 * @param {import("node:stream").Writable} stdin @param {import("node:stream").Readable} stdout
 */
async function introduce(stdin, stdout) {
  let id = 0;
  let rest = "";
  /** @type {(result: any) => void} */
  let resolve = () => {};
  stdout.on("data", (chunk) => {
    rest += chunk;
    const end = rest.indexOf("\n");
    if (end < 0) return;
    const message = JSON.parse(rest.slice(0, end));
    rest = rest.slice(end + 1);
    if (message.id === id) resolve(message.result);
  });
  /** @param {string} method @param {object} params @returns {Promise<any>} */
  const ask = (method, params) =>
    new Promise((settle) => {
      id += 1;
      resolve = settle;
      stdin.write(writeLine(method, params, id));
    });
  await ask("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "bench", version: "1.0.0" },
  });
  stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  return ask;
}
