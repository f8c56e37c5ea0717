import { createHash } from "node:crypto";
import type { Identity } from "../../core/access/identity.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { HttpAnswer } from "../../http/exchange.ts";
import type { OpenApiDocument } from "./document/openapi-document.ts";
import { writeJson } from "./document/write-json.ts";
import type { HttpHandlerOptions } from "./http-handler-options.ts";
import { type Steps, takeStepsInSlices } from "./take-steps.ts";
import { type DescribeApiOptions, describeApi } from "./to-openapi.ts";
import { toEntityTag } from "./write-answer.ts";

/** Views that are kept written: most callers see the same. */
const VIEWS = 16;

interface WrittenDocument {
  /** JSON text. */
  readonly bytes: Buffer;
  readonly etag: string;
}

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

  /** The answer to whoever asks for it, its entity tag included. */
  async answer(identity: Identity | undefined): Promise<HttpAnswer> {
    const { bytes, etag } = await this.#read(identity);
    const headers = { "content-type": "application/json", "cache-control": "private, no-cache", etag };
    return { status: 200, headers, body: bytes };
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
    return { bytes: Buffer.concat(blocks), etag: toEntityTag(hash) };
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
