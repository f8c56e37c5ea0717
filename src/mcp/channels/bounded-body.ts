import { createParser, type EventSourceMessage } from "eventsource-parser";
import { CallError } from "../../core/errors/errors.ts";

const LF = 10;
const CR = 13;
const BYTE_ORDER_MARK = 0xfeff;

/** Told once when a body is larger than allowed; the body then ends with an error. */
export type OnTooLarge = () => void;

/** What a body that is too large ends with. */
class BodyTooLarge extends Error {
  override readonly name = "BodyTooLarge";
}

/** Hears the events of a stream; neither may throw. */
export interface EventListeners {
  onEvent(event: EventSourceMessage): void;
  /** The server says how many milliseconds to wait before the stream is opened again. */
  onRetry?(ms: number): void;
}

/** Reads a body as text; rejects with `TOO_LARGE` where it holds more bytes than that. */
export async function readText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of bytesOf(response)) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text;
}

/** Reads an event stream to its end; rejects with `TOO_LARGE` where one event holds more bytes than that. */
export async function readEvents(
  response: Response,
  maxBytes: number,
  listeners: EventListeners,
): Promise<void> {
  const parser = createParser({
    onEvent: (event) => listeners.onEvent(event),
    onRetry: (ms) => listeners.onRetry?.(ms),
  });
  const decoder = new TextDecoder();
  const counter = countEvent();
  for await (const chunk of bytesOf(response)) {
    if (counter(chunk, maxBytes) > maxBytes) throw tooLarge(maxBytes);
    parser.feed(decoder.decode(chunk, { stream: true }));
  }
}

function bytesOf({ body }: Response): AsyncIterable<Uint8Array> | readonly Uint8Array[] {
  return (body as AsyncIterable<Uint8Array> | null) ?? [];
}

function tooLarge(maxBytes: number): CallError {
  return new CallError("TOO_LARGE", `The answer of the MCP server is larger than ${maxBytes} bytes.`);
}

/**
 * Copies a response whose body may hold so many bytes, or, for an event stream, so many in each event. `onEnd` is told once nothing more is
 * read of it, for whatever reason.
 */
export function boundBody(
  response: Response,
  maxBytes: number,
  onTooLarge: OnTooLarge,
  onEnd?: () => void,
): Response {
  if (response.body === null) {
    onEnd?.();
    return response;
  }
  const isEvents = /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
  const counter = isEvents ? countEvent() : countAll();
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  const bounded = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.close();
        } else if (counter(value, maxBytes) <= maxBytes) {
          return controller.enqueue(value);
        } else {
          onTooLarge();
          const failure = new BodyTooLarge(`The answer is larger than ${maxBytes} bytes.`);
          controller.error(failure);
          reader.cancel(failure).catch(() => {});
        }
      } catch (failure) {
        controller.error(failure);
      }
      onEnd?.();
    },
    cancel(reason) {
      onEnd?.();
      return reader.cancel(reason);
    },
  });
  const { status, statusText, headers, url } = response;
  const copy = new Response(bounded, { status, statusText, headers });
  // A copy has no address of its own, and redirects are told by it.
  Object.defineProperty(copy, "url", { value: url });
  return copy;
}

/** Gives the largest number of bytes that belong together so far. */
type Counter = (chunk: Uint8Array, maxBytes: number) => number;

function countAll(): Counter {
  let bytes = 0;
  return (chunk) => {
    bytes += chunk.length;
    return bytes;
  };
}

/** An empty line ends an event: two line ends with nothing between, a CR and LF counting as one. */
function countEvent(): Counter {
  let bytes = 0;
  let isLineEmpty = true;
  let wasCr = false;
  return (chunk, maxBytes) => {
    let largest = 0;
    let from = 0;
    while (from < chunk.length) {
      const end = nextLineEnd(chunk, from);
      if (end > from) isLineEmpty = false;
      bytes += end - from;
      largest = Math.max(largest, bytes);
      if (end === chunk.length || largest > maxBytes) {
        if (end > from) wasCr = false;
        break;
      }
      const isSecondHalf = chunk[end] === LF && wasCr && end === from;
      wasCr = chunk[end] === CR;
      if (!isSecondHalf) {
        bytes = isLineEmpty ? 0 : bytes + 1;
        isLineEmpty = true;
      }
      from = end + 1;
    }
    return Math.max(largest, bytes);
  };
}

function nextLineEnd(chunk: Uint8Array, from: number): number {
  const lf = chunk.indexOf(LF, from);
  const end = lf < 0 ? chunk.length : lf;
  const cr = chunk.subarray(from, end).indexOf(CR);
  return cr < 0 ? end : from + cr;
}
