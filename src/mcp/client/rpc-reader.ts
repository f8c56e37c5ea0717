import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { MAX_JSON_DEPTH } from "../../core/json/json-depth.ts";
import { createLineReader, type LineReader } from "./line-reader.ts";
import { type RpcLine, readAnswerId, readRpcLine, toLostAnswer } from "./rpc-line.ts";
import { toVisibleText } from "./visible-text.ts";

/** How much of an odd line is shown, in characters. */
const SHOWN_CHARS = 200;

/** How much of either end of a line is searched for an id, in bytes. */
const END_BYTES = 200;

/** Settings of `createRpcReader`; neither listener may throw. */
export interface RpcReaderOptions {
  /** The longest line, in bytes and without its newline. */
  readonly lineBytes: number;
  /** Hears each message as it came, and an error in place of an answer that could not be read. */
  readonly onMessage: (message: JSONRPCMessage) => void;
  /** Hears what was dropped, and why. */
  readonly onOddity: (message: string) => void;
}

/** Makes a reader of the messages that a process writes, a line each, among whatever else it writes. */
export function createRpcReader({ lineBytes, onMessage, onOddity }: RpcReaderOptions): LineReader {
  /** That of a dropped line whose id may yet come at its end. */
  let longFront: Buffer | undefined;
  const failAsLarge = (id: string | number): void =>
    onMessage(toLostAnswer(id, `The answer is larger than ${lineBytes} bytes.`, "TOO_LARGE"));

  return createLineReader({
    lineBytes,
    onLine(line) {
      const { messages, odd } = readRpcLine(line);
      if (odd) {
        onOddity(`A line on standard output ${odd}: ${show(line)}`);
        const lost = toLost(line, odd);
        if (lost) onMessage(lost);
      }
      for (const message of messages) onMessage(message);
    },
    onLong(front) {
      onOddity(`A line on standard output is longer than ${lineBytes} bytes and was dropped: ${show(front)}`);
      const id = readAnswerId(front, undefined);
      if (id === undefined) longFront = front;
      else failAsLarge(id);
    },
    onLongEnd(tail) {
      const id = longFront && readAnswerId(longFront, tail);
      longFront = undefined;
      if (id !== undefined) failAsLarge(id);
    },
  });
}

/** The error that stands for a line which evidently was an answer. */
function toLost(line: Buffer, odd: NonNullable<RpcLine["odd"]>): JSONRPCMessage | undefined {
  const id = readAnswerId(line.subarray(0, END_BYTES), line.subarray(-END_BYTES));
  if (id === undefined) return undefined;
  return odd === "is nested too deeply"
    ? toLostAnswer(id, `The answer is nested more than ${MAX_JSON_DEPTH} levels deep.`, "TOO_LARGE")
    : toLostAnswer(id, `The answer ${odd}.`, "OUTPUT_INVALID");
}

function show(line: Buffer): string {
  // A character takes four bytes at most.
  const text = toVisibleText(line.toString("utf8", 0, SHOWN_CHARS * 4).trim());
  return JSON.stringify([...text].slice(0, SHOWN_CHARS).join(""));
}
