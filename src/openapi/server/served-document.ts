import { createHash } from "node:crypto";
import type { Identity } from "../../core/access/identity.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { HttpAnswer } from "../../http/exchange.ts";
import type { OpenApiDocument } from "./document/openapi-document.ts";
import { writeJson } from "./document/write-json.ts";
import type { HttpHandlerOptions } from "./http-handler-options.ts";
import { type Steps, takeStepsInSlices } from "./take-steps.ts";
import { BESIDE, type DescribeApiOptions, describeApi } from "./to-openapi.ts";
import { toEntityTag } from "./write-answer.ts";

/** Views that are kept written: most callers see the same. */
const VIEWS = 16;

interface WrittenDocument {
  /** JSON text. */
  readonly bytes: Buffer;
  /** A digest of it. */
  readonly digest: Buffer;
  /** The last answer that was made of it, and for which origin. */
  answered?: { readonly origin: string; readonly bytes: Buffer; readonly etag: string };
}

/** Where the address of the API goes; what comes before it, a title and a description, cannot hold these quotation marks. */
const SERVERS = Buffer.from(`"servers":[{"url":${JSON.stringify(BESIDE)}}]`);

/** The document of an API, as each caller may see it. */
export class ServedDocument {
  readonly #executor: Executor;
  readonly #options: HttpHandlerOptions;
  /** By view; those still being written are among them, so that nothing is written twice at a time. */
  readonly #written = new Map<string, Promise<WrittenDocument>>();
  readonly #warned = new Set<string>();

  constructor(executor: Executor, options: HttpHandlerOptions) {
    this.#executor = executor;
    this.#options = options;
  }

  /** Forgets what is written: operations have changed. */
  clear(): void {
    this.#written.clear();
    this.#warned.clear();
  }

  /** The answer to whoever asks for it, its entity tag included; where nothing else was said, the API is where they ask. */
  async answer(identity: Identity | undefined, origin: string): Promise<HttpAnswer> {
    const written = await this.#read(identity);
    const { bytes, etag } = this.#located(written, this.#options.servers === undefined ? origin : "");
    const headers = { "content-type": "application/json", "cache-control": "private, no-cache", etag };
    return { status: 200, headers, body: bytes };
  }

  /** Copies what is written rather than writing it anew: anybody may name a host where all are served. */
  #located(written: WrittenDocument, origin: string): { readonly bytes: Buffer; readonly etag: string } {
    if (written.answered?.origin === origin) return written.answered;
    const { bytes, digest } = written;
    const at = origin === "" ? -1 : bytes.indexOf(SERVERS);
    const servers = Buffer.from(`"servers":[{"url":${JSON.stringify(origin)}}]`);
    const located =
      at === -1
        ? bytes
        : Buffer.concat([bytes.subarray(0, at), servers, bytes.subarray(at + SERVERS.length)]);
    const etag = toEntityTag(createHash("sha256").update(digest).update(origin));
    written.answered = { origin, bytes: located, etag };
    return written.answered;
  }

  /** The document as a value. */
  async value(identity: Identity | undefined): Promise<OpenApiDocument> {
    const { bytes } = await this.#read(identity);
    return JSON.parse(bytes.toString());
  }

  /** One of many operations is written bit by bit, as they were when it was asked for. */
  #read(identity: Identity | undefined): Promise<WrittenDocument> {
    const view = this.#viewOf(identity);
    const known = this.#written.get(view);
    if (known !== undefined) return known;
    const writing = takeStepsInSlices(this.#write(identity));
    const [oldest] = this.#written.keys();
    if (this.#written.size >= VIEWS && oldest !== undefined) this.#written.delete(oldest);
    this.#written.set(view, writing);
    writing.catch(() => this.#written.get(view) === writing && this.#written.delete(view));
    return writing;
  }

  *#write(identity: Identity | undefined): Steps<WrittenDocument> {
    const document = yield* describeApi(this.#executor, this.#documentOptions(identity));
    const blocks: Uint8Array[] = [];
    const hash = createHash("sha256");
    yield* writeJson(document, (block) => {
      blocks.push(block);
      hash.update(block);
    });
    return { bytes: Buffer.concat(blocks), digest: hash.digest() };
  }

  #viewOf(identity: Identity | undefined): string {
    const ids = this.#executor.list({ identity }).map(({ id }) => `${id}\n`);
    return createHash("sha256").update(ids.join("")).digest("base64");
  }

  #documentOptions(identity: Identity | undefined): DescribeApiOptions {
    const { info, servers, basePath, formats, examples, auth, authenticate, describedAuth } = this.#options;
    const ways =
      (authenticate && describedAuth) ??
      (auth && {
        ...(auth.bearer !== undefined && { bearer: true }),
        ...(auth.apiKeys !== undefined && { apiKeyHeader: auth.apiKeys.header ?? "x-api-key" }),
      });
    const asksCallers = auth !== undefined || authenticate !== undefined;
    const onWarning = this.#warn;
    return { info, servers, basePath, formats, examples, identity, auth: ways, asksCallers, onWarning };
  }

  /** Every view would tell the same again. */
  readonly #warn = (message: string, cause: unknown): void => {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    const { onWarning = (...told) => console.warn(...told) } = this.#options;
    onWarning(message, cause);
  };
}
