// @ts-check
import { connect } from "node:net";

/**
 * @typedef {object} LoopOptions
 * @property {number} perSecond requests that are due in a second, whatever became of those before
 * @property {number} seconds
 * @property {number} connections
 */

/**
 * @typedef {object} LoopResult
 * @property {number} done answers that came
 * @property {number} perSecond answers in a second, until the last one came
 * @property {number} p50 milliseconds from when a request was due to when its answer came
 * @property {number} p95
 * @property {number} p99
 */

/**
 * Sends one fixed request at a steady pace over several connections, and waits for all answers. Waiting for a connection counts:
 * a server that cannot keep up is seen in the times.
 * @param {number} port @param {string} request @param {LoopOptions} options
 * @returns {Promise<LoopResult>}
 */
export async function runOpenLoop(port, request, { perSecond, seconds, connections }) {
  const bytes = Buffer.from(request);
  const idle = await Promise.all(Array.from({ length: connections }, () => open(port)));
  const all = [...idle];
  const total = Math.round(perSecond * seconds);
  /** @type {number[]} */
  const times = [];
  const started = performance.now();
  let sent = 0;
  await new Promise((resolve, reject) => {
    const dueAt = (/** @type {number} */ index) => started + (index * 1_000) / perSecond;
    const send = () => {
      while (sent < total && idle.length > 0 && dueAt(sent) <= performance.now()) {
        const socket = /** @type {import("node:net").Socket} */ (idle.pop());
        const due = dueAt(sent);
        sent += 1;
        exchange(socket, bytes).then(() => {
          times.push(performance.now() - due);
          idle.push(socket);
          if (times.length === total) end();
          else send();
        }, fail);
      }
    };
    const timer = setInterval(send, 1);
    const end = () => {
      clearInterval(timer);
      resolve(undefined);
    };
    const fail = (/** @type {unknown} */ error) => {
      clearInterval(timer);
      reject(error);
    };
  });
  const took = performance.now() - started;
  for (const socket of all) socket.destroy();
  times.sort((a, b) => a - b);
  const at = (/** @type {number} */ share) =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  return {
    done: times.length,
    perSecond: (times.length * 1_000) / took,
    p50: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
  };
}

/** @param {number} port @returns {Promise<import("node:net").Socket>} */
function open(port) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.setNoDelay(true);
    socket.once("error", reject);
  });
}

/** @param {import("node:net").Socket} socket @param {Buffer} bytes @returns {Promise<void>} */
function exchange(socket, bytes) {
  return new Promise((resolve, reject) => {
    let text = "";
    const take = (/** @type {Buffer} */ chunk) => {
      text += chunk.toString("latin1");
      if (!isWhole(text)) return;
      socket.off("data", take);
      socket.off("close", fail);
      if (text.startsWith("HTTP/1.1 200 ")) resolve();
      else reject(new Error(`The server answered: ${text.slice(0, 200)}`));
    };
    const fail = () => reject(new Error("The server closed the connection."));
    socket.on("data", take);
    socket.once("close", fail);
    socket.write(bytes);
  });
}

/** @param {string} text an answer, as far as it has come */
function isWhole(text) {
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return false;
  const length = /^content-length: *(\d+)/im.exec(text.slice(0, head))?.[1];
  return length === undefined ? text.endsWith("0\r\n\r\n") : text.length >= head + 4 + Number(length);
}
