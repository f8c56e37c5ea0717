import type { Socket } from "node:net";

let current: ReadGate | undefined;

/** A head that only says to go on, or the beginning of one; to switch protocols is something else. */
const INTERIM = /^HTTP\/1\.[01] 1(?!01)[0-9]{0,2}$/;
const STATUS_AT = 9;
const STATUS_END = 12;
const ONE = 0x31;
const EXAMPLE = "HTTP/1.1 100";
const HEAD_END = "\r\n\r\n";
/** Bytes of such a head; what is longer is none. */
const LONGEST_INTERIM = 16_384;
const NOT_INTERIM = -2;

/**
 * Stops the reading of a socket while nobody wants its bytes, so that the other side has to wait.
 *
 * undici's own way, to pause its parser, cannot be used: when the other side ends the connection while the parser is paused,
 * an assertion fails in an event handler, and the process with it. Nor does undici take a `100 Continue` that nobody asked for,
 * which servers may send (RFC 9110, section 15.2): it is taken out here, and its like with it.
 */
export class ReadGate {
  readonly #socket: Socket;
  #isShut = false;
  /** A request was written, and nothing of its response has come: what comes without one is not for us to judge. */
  #expectsHead = false;
  /** The beginning of a head that may turn out to be one that says to go on. */
  #held: Buffer | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    const { read, write } = socket;
    socket.write = ((...args: Parameters<typeof write>) => {
      this.#expectsHead = true;
      return write.apply(socket, args);
    }) as typeof write;
    socket.read = (size?: number): Buffer | null => {
      // With a size, it is the socket itself that fills its buffer.
      if (size !== undefined) return read.call(socket, size);
      if (this.#isShut) return null;
      current = this;
      const chunk: Buffer | null = read.call(socket);
      return this.#expectsHead && chunk !== null ? this.#pastInterim(chunk) : chunk;
    };
  }

  /** The gate of the socket whose bytes are being parsed; undici parses them in the call in which it reads them. */
  static get current(): ReadGate | undefined {
    return current;
  }

  /** Gives what comes after heads that say to go on; nothing where that has not arrived. */
  #pastInterim(chunk: Buffer): Buffer | null {
    let bytes = this.#held === undefined ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = undefined;
    while (bytes.length > 0) {
      const end = isInterim(bytes) ? bytes.indexOf(HEAD_END) : NOT_INTERIM;
      if (end === NOT_INTERIM || (end === -1 && bytes.length > LONGEST_INTERIM)) {
        this.#expectsHead = false;
        return bytes;
      }
      if (end === -1) {
        this.#held = bytes;
        return null;
      }
      bytes = bytes.subarray(end + HEAD_END.length);
    }
    return null;
  }

  shut(): void {
    this.#isShut = true;
  }

  /** Must not be called while bytes are parsed. */
  open(): void {
    if (!this.#isShut) return;
    this.#isShut = false;
    if (!this.#socket.destroyed) this.#socket.emit("readable");
  }

  /** Opens it once what is being parsed has been. */
  openSoon(): void {
    if (this.#isShut) setImmediate(open, this);
  }
}

function open(gate: ReadGate): void {
  gate.open();
}

/** Too few bytes to tell count as one where they could become one. */
function isInterim(bytes: Buffer): boolean {
  if (bytes.length > STATUS_AT && bytes[STATUS_AT] !== ONE) return false;
  const start = bytes.toString("latin1", 0, STATUS_END);
  return start.length < STATUS_AT
    ? EXAMPLE.startsWith(start.slice(0, 7))
    : INTERIM.test(start.padEnd(10, "1"));
}
