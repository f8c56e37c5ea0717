// @ts-check
import { connect } from "node:net";

/**
 * Opens so many connections to a server on this machine, each of which can send one fixed request at a time. Almost nothing is
 * parsed, so that what is measured is the server: answers to the same request are taken to be equally long, unless they are said not to be.
 * @param {number} port @param {string} request @param {number} connections @param {{ varies?: boolean }} [answers]
 */
export async function openLoad(port, request, connections, { varies = false } = {}) {
  const bytes = Buffer.from(request);
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)));
  const first = await exchange(/** @type {import("node:net").Socket} */ (sockets[0]), bytes, undefined);
  const length = varies ? undefined : first.length;
  return {
    first: first.toString(),
    /** Sends one request on each connection and waits for all answers. */
    round: () => Promise.all(sockets.map((socket) => exchange(socket, bytes, length))),
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
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

/**
 * @param {import("node:net").Socket} socket @param {Buffer} bytes
 * @param {number | undefined} length of the answer; found out from its head where it is not known
 * @returns {Promise<Buffer>}
 */
function exchange(socket, bytes, length) {
  return new Promise((resolve, reject) => {
    /** @type {Buffer[]} */
    const chunks = [];
    let arrived = 0;
    const take = (/** @type {Buffer} */ chunk) => {
      chunks.push(chunk);
      arrived += chunk.length;
      const wanted = length ?? lengthOf(Buffer.concat(chunks));
      if (wanted === undefined || arrived < wanted) return;
      socket.off("data", take);
      socket.off("close", fail);
      resolve(chunks.length === 1 ? chunk : Buffer.concat(chunks));
    };
    const fail = () => reject(new Error("The server closed the connection."));
    socket.on("data", take);
    socket.once("close", fail);
    socket.write(bytes);
  });
}

/** @param {Buffer} answer */
function lengthOf(answer) {
  const head = answer.indexOf("\r\n\r\n");
  if (head < 0) return undefined;
  const text = answer.subarray(0, head).toString();
  if (/^transfer-encoding: *chunked/im.test(text)) {
    const end = answer.indexOf("0\r\n\r\n", head);
    return end < 0 ? undefined : end + 5;
  }
  const length = /^content-length: *(\d+)/im.exec(text)?.[1];
  if (length === undefined) throw new Error(`The answer does not say how long it is:\n${text}`);
  return head + 4 + Number(length);
}
