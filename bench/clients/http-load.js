// @ts-check
import { connect } from "node:net";

const HEAD_END = Buffer.from("\r\n\r\n");
const LAST_CHUNK = Buffer.from("0\r\n\r\n");

/**
 * Opens one connection for each of the requests to a server on this machine. A connection sends its request, waits for the whole
 * answer and sends it again. The bytes are made in advance and of an answer only its status and its end are looked at, so that what is
 * measured is the server. All sides of a comparison are loaded by this code.
 * @param {number} port @param {readonly string[]} requests
 */
export async function openHttpLoad(port, requests) {
  const lanes = await Promise.all(requests.map((request) => new Lane(port, Buffer.from(request)).open()));
  // On each: servers close a connection on which nothing was asked for sooner than one that waits for another request, perhaps just when it is used.
  const [first] = await Promise.all(lanes.map((lane) => lane.run(1)));
  if (first === undefined) throw new Error("There are no requests.");
  return {
    /** The first answer, head and body. */
    first: first.toString(),
    /** Sends every request so many times, each connection at its own pace. */
    run: (/** @type {number} */ times) => Promise.all(lanes.map((lane) => lane.run(times))),
    close: () => {
      for (const lane of lanes) lane.close();
    },
  };
}

/** One connection with one request in flight; servers close those that have been idle for a while, and then it is opened again. */
class Lane {
  #port;
  #request;
  /** @type {import("node:net").Socket | undefined} */
  #socket;
  #left = 0;
  #arrived = Buffer.alloc(0);
  /** @type {((answer: Buffer) => void) | undefined} */
  #resolve;
  /** @type {((error: Error) => void) | undefined} */
  #reject;

  /** @param {number} port @param {Buffer} request */
  constructor(port, request) {
    this.#port = port;
    this.#request = request;
  }

  /** @returns {Promise<this>} */
  open() {
    return new Promise((resolve, reject) => {
      const socket = connect({ port: this.#port, host: "127.0.0.1", noDelay: true }, () => resolve(this));
      socket.once("error", reject);
      socket.on("data", (chunk) => this.#take(chunk));
      socket.on("close", () => {
        this.#socket = undefined;
        this.#reject?.(new Error("The server closed the connection."));
      });
      this.#socket = socket;
    });
  }

  /** @param {number} times @returns {Promise<Buffer>} the last answer */
  async run(times) {
    if (this.#socket === undefined) await this.open();
    return await new Promise((resolve, reject) => {
      this.#left = times;
      this.#resolve = resolve;
      this.#reject = reject;
      this.#socket?.write(this.#request);
    });
  }

  close() {
    this.#reject = undefined;
    this.#socket?.destroy();
  }

  /** @param {Buffer} chunk */
  #take(chunk) {
    const answer = this.#arrived.length === 0 ? chunk : Buffer.concat([this.#arrived, chunk]);
    if (!isWhole(answer)) {
      this.#arrived = answer;
      return;
    }
    if (this.#arrived.length > 0) this.#arrived = Buffer.alloc(0);
    if (answer[9] !== 0x32) this.#reject?.(new Error(`The server answers ${answer.toString()}`));
    this.#left -= 1;
    if (this.#left > 0) this.#socket?.write(this.#request);
    else {
      this.#reject = undefined;
      this.#resolve?.(answer);
    }
  }
}

/** Says whether an answer has arrived to its end. @param {Buffer} answer */
function isWhole(answer) {
  const head = answer.indexOf(HEAD_END);
  if (head < 0) return false;
  const text = answer.latin1Slice(0, head);
  const length = /content-length: *(\d+)/i.exec(text)?.[1];
  if (length !== undefined) return answer.length >= head + 4 + Number(length);
  return answer.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
}

/**
 * Writes a request as bytes on the wire.
 * @param {string} line such as `POST /mcp` @param {Readonly<Record<string, string>>} headers @param {string} [body]
 */
export function writeRequest(line, headers, body) {
  const all = body === undefined ? headers : { ...headers, "content-length": Buffer.byteLength(body) };
  const fields = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return [`${line} HTTP/1.1`, "host: 127.0.0.1", ...fields, "", body ?? ""].join("\r\n");
}
