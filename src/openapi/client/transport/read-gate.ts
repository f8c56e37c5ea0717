import type { Socket } from "node:net";

let current: ReadGate | undefined;

/**
 * Stops the reading of a socket while nobody wants its bytes, so that the other side has to wait.
 *
 * undici's own way, to pause its parser, cannot be used: when the other side ends the connection while the parser is paused,
 * an assertion fails in an event handler, and the process with it.
 */
export class ReadGate {
  readonly #socket: Socket;
  #isShut = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    const read = socket.read;
    socket.read = (size?: number): Buffer | null => {
      // With a size, it is the socket itself that fills its buffer.
      if (size !== undefined) return read.call(socket, size);
      if (this.#isShut) return null;
      current = this;
      return read.call(socket);
    };
  }

  /** The gate of the socket whose bytes are being parsed; undici parses them in the call in which it reads them. */
  static get current(): ReadGate | undefined {
    return current;
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
