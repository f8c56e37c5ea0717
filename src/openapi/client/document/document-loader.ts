import { CallError } from "../../../core/errors/errors.ts";
import { loadBytes, nameOf, type SourceOptions } from "./load-source.ts";
import { type ParsedDocument, parseDocument } from "./parse-document.ts";

/** What one import may read. */
export interface LoaderOptions extends SourceOptions {
  /** Milliseconds for all files together. */
  readonly timeoutMs: number;
}

/** All files together may be this many times as large as one. */
const TOTAL = 4;

/** Reads the files of one document, bounded in bytes and time over all of them. */
export class DocumentLoader {
  readonly #options: LoaderOptions;
  readonly #late: Promise<never>;
  /** What errors call the document: its first file. */
  #name: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #bytes = 0;
  #files = 0;
  #ended: CallError | undefined;

  constructor(options: LoaderOptions) {
    this.#options = options;
    this.#late = new Promise((_, reject) => {
      this.#timer = setTimeout(() => reject(this.#end(this.#timeout())), options.timeoutMs);
    });
    this.#late.catch(() => {});
  }

  /** Why nothing more is read; what else goes wrong is a matter of one file. */
  get ended(): CallError | undefined {
    return this.#ended;
  }

  async load(url: URL): Promise<ParsedDocument> {
    this.#name ??= nameOf(url);
    const bytes = await Promise.race([loadBytes(url, this.#options), this.#late]);
    this.#bytes += bytes.length;
    this.#files += 1;
    const limit = this.#options.documentBytes * TOTAL;
    if (this.#bytes > limit) {
      const message = `${nameOf(url)} and the files before it are larger than ${limit} bytes together (${TOTAL} × limits.documentBytes).`;
      throw this.#end(new CallError("TOO_LARGE", message));
    }
    return Promise.race([parseDocument(bytes, nameOf(url)), this.#late]);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #timeout(): CallError {
    const seconds = this.#options.timeoutMs / 1_000;
    return new CallError(
      "TIMEOUT",
      `${this.#name} was not read within ${seconds} seconds; ${this.#files} of its files were.`,
    );
  }

  #end(error: CallError): CallError {
    this.#ended ??= error;
    return error;
  }
}
