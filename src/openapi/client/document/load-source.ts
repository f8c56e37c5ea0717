import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { dirname, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { CallError } from "../../../core/errors/errors.ts";
import type { FailureCause } from "../../../core/errors/failure.ts";
import { parseUrl } from "../../../core/text/parse-url.ts";
import { shortText } from "../../../core/text/truncate-text.ts";
import { type ParsedDocument, parseDocument } from "./parse-document.ts";

/** Reads the text behind an address, guarded by its owner; one that is larger than `maxBytes` is an error. */
export type FetchText = (url: URL, maxBytes: number) => Promise<string>;

/** What may be read of a document. */
export interface SourceOptions {
  readonly documentBytes: number;
  readonly fetchText: FetchText | undefined;
}

/** Turns what names a document into an absolute address. */
export function toLocation(document: string | URL): URL {
  if (document instanceof URL) return checkScheme(document);
  if (/^[a-z][a-z0-9+.-]+:/i.test(document) && !document.includes("\n")) {
    if (parseUrl(document) === undefined)
      throw new TypeError(`"${shortText(document, 100)}" is not a URL that can be read.`);
    return checkScheme(new URL(document));
  }
  if (/^\s*\{|\n/.test(document)) {
    throw new TypeError(
      "The document is given as text; pass the path or URL of a file, or the parsed object instead.",
    );
  }
  if (document.trim() === "")
    throw new TypeError("The document is a path, a URL or an object, not an empty text.");
  return pathToFileURL(resolve(document));
}

function checkScheme(url: URL): URL {
  if (url.protocol === "file:" || url.protocol === "http:" || url.protocol === "https:") return url;
  throw new TypeError(
    `A document is read from a path, or a file:, http: or https: URL, not from "${url.protocol}".`,
  );
}

/** What errors call a place: the path of a file, the address of anything else without what may be secret. */
export function nameOf(url: URL): string {
  return url.protocol === "file:" ? decodeURIComponent(url.pathname) : `${url.origin}${url.pathname}`;
}

/** Reads the bytes of a document. */
async function loadBytes(url: URL, options: SourceOptions): Promise<Buffer> {
  if (url.protocol === "file:") return readBytes(fileURLToPath(url), options.documentBytes);
  if (options.fetchText === undefined)
    throw new Error(`${nameOf(url)} cannot be read: nothing here fetches URLs.`);
  const text = await options.fetchText(url, options.documentBytes).catch((cause: unknown) => {
    throw unfetched(nameOf(url), cause);
  });
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length > options.documentBytes) throw tooLarge(nameOf(url), options.documentBytes);
  return bytes;
}

/** Says that it was the document which could not be had, and not what it describes. */
function unfetched(name: string, cause: unknown): unknown {
  if (!(cause instanceof CallError)) {
    const isText = (cause as { code?: unknown } | undefined)?.code !== "ERR_ENCODING_INVALID_ENCODED_DATA";
    return new Error(isText ? `${name} cannot be read.` : `${name} is not UTF-8 text.`, { cause });
  }
  if (cause.message.includes(name)) return cause;
  const { code, message, details, failure } = cause;
  return new CallError(code, `The document ${name} cannot be read: ${message}`, { cause, details, failure });
}

/** There is no document that can be read where it should lie. */
class UnreadableDocument extends Error {
  readonly failure: FailureCause = { reason: "document" };
}

async function readBytes(path: string, limit: number): Promise<Buffer> {
  // Without waiting: opening a pipe would, for ever.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((cause: unknown) => {
    const missing = (cause as { code?: unknown }).code === "ENOENT";
    throw new UnreadableDocument(`${path} ${missing ? "does not exist" : "cannot be opened"}.`, { cause });
  });
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new UnreadableDocument(`${path} is not a file.`);
    if (stat.size > limit) throw tooLarge(path, limit);
    const bytes = Buffer.allocUnsafeSlow(stat.size);
    let length = 0;
    while (length < stat.size) {
      const { bytesRead } = await file.read(bytes, length, stat.size - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  } finally {
    await file.close();
  }
}

function tooLarge(name: string, limit: number): CallError {
  return new CallError("TOO_LARGE", `${name} is larger than ${limit} bytes (limits.documentBytes).`);
}

/** Decides whether a document may reach another file, and says why not; nothing is read of what it may not. */
export async function refuseReach(root: URL, target: URL): Promise<string | undefined> {
  if (root.protocol !== "file:") {
    return target.origin === root.origin && target.protocol === root.protocol
      ? undefined
      : "it is at another origin";
  }
  if (target.protocol !== "file:") return "a file only refers to files";
  if (target.host !== "") return "it is on another machine";
  try {
    const tree = dirname(await realpath(fileURLToPath(root)));
    const path = await realpath(fileURLToPath(target));
    return path.startsWith(tree.endsWith(sep) ? tree : tree + sep)
      ? undefined
      : "it is outside the directory of the document";
  } catch {
    return "it does not exist";
  }
}

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
