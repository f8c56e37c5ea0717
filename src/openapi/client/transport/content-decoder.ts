import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";

/** What responses may be encoded with. */
export const ACCEPTED_ENCODINGS = "gzip, deflate, br";

/** How many encodings one on top of the other are undone. */
const MOST_LAYERS = 2;

/** What decodes gets out of here, and back. */
export interface DecoderSink {
  /** Returns false to be given no more before `flow`. */
  onDecoded(chunk: Buffer): boolean;
  /** A layer made this much more out of what arrived; throws where that is too much. */
  onGrowth(decodedBytes: number): void;
  onDecodedEnd(): void;
  onDecodeError(error: unknown): void;
  /** More can be written. */
  onDecoderDrain(): void;
}

/** Reads `content-encoding`: the encodings to undo, the last one first, or nothing where they cannot be undone. */
export function toEncodings(header: string | readonly string[]): readonly string[] | undefined {
  const names = (typeof header === "string" ? header : header.join(",")).toLowerCase().split(",", 16);
  const encodings = names.map((name) => name.trim()).filter((name) => name !== "" && name !== "identity");
  const isKnown = encodings.every((name) => /^(?:x-)?gzip$|^deflate$|^br$/.test(name));
  return isKnown && encodings.length <= MOST_LAYERS ? encodings.reverse() : undefined;
}

/** Undoes the encodings of one body as it arrives, with no more in memory than is being worked on. */
export class ContentDecoder {
  readonly #sink: DecoderSink;
  readonly #layers: Layer[];

  constructor(encodings: readonly string[], sink: DecoderSink) {
    this.#sink = sink;
    this.#layers = encodings.map((encoding) => new Layer(encoding));
    for (const [index, layer] of this.#layers.entries()) this.#connect(layer, this.#layers[index + 1]);
  }

  /** Returns false where the next should wait for `onDecoderDrain`. */
  write(chunk: Buffer): boolean {
    return (this.#layers[0] as Layer).write(chunk);
  }

  end(): void {
    (this.#layers[0] as Layer).end();
  }

  /** Takes up again after the sink said stop. */
  flow(): void {
    this.#layers.at(-1)?.stream?.resume();
  }

  destroy(): void {
    for (const layer of this.#layers) layer.destroy();
  }

  #connect(layer: Layer, next: Layer | undefined): void {
    const sink = this.#sink;
    let grown = 0;
    layer.onDrain = layer === this.#layers[0] ? () => sink.onDecoderDrain() : undefined;
    layer.onError = (error) => sink.onDecodeError(error);
    layer.onEnd = () => (next === undefined ? sink.onDecodedEnd() : next.end());
    layer.onData = (chunk) => {
      grown += chunk.byteLength;
      try {
        sink.onGrowth(grown);
      } catch (error) {
        sink.onDecodeError(error);
        return false;
      }
      return next === undefined ? sink.onDecoded(chunk) : next.write(chunk);
    };
    if (next !== undefined) next.onDrain = () => layer.stream?.resume();
  }
}

/** One encoding, begun with the first byte: no bytes at all decode to none. */
class Layer {
  readonly #encoding: string;
  stream: Transform | undefined;
  onData: (chunk: Buffer) => boolean = () => true;
  onEnd: () => void = () => {};
  onError: (error: unknown) => void = () => {};
  onDrain: (() => void) | undefined;
  #isOver = false;

  constructor(encoding: string) {
    this.#encoding = encoding;
  }

  write(chunk: Buffer): boolean {
    if (this.#isOver || chunk.byteLength === 0) return true;
    this.stream ??= this.#start(chunk);
    return this.stream.write(chunk);
  }

  end(): void {
    if (this.stream === undefined) this.onEnd();
    else this.stream.end();
  }

  destroy(): void {
    this.#isOver = true;
    this.stream?.destroy();
  }

  #start(first: Buffer): Transform {
    const stream = createDecompressor(this.#encoding, first);
    stream.on("data", (chunk: Buffer) => {
      if (!this.#isOver && !this.onData(chunk)) stream.pause();
    });
    stream.on("drain", () => this.onDrain?.());
    stream.on("end", () => {
      if (!this.#isOver) this.onEnd();
    });
    stream.on("error", (error) => {
      if (!this.#isOver) this.onError(error);
    });
    return stream;
  }
}

/** What calls itself deflate is with a zlib header by the rule, and without one by habit of some. */
function createDecompressor(encoding: string, first: Buffer): Transform {
  switch (encoding) {
    case "br":
      return createBrotliDecompress();
    case "deflate":
      return ((first[0] as number) & 0x0f) === 8 ? createInflate() : createInflateRaw();
    default:
      return createGunzip();
  }
}
