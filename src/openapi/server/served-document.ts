import { createHash } from "node:crypto";
import type { Identity } from "../../core/access/identity.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { HttpAnswer } from "./http-exchange.ts";
import type { HttpHandlerOptions } from "./http-handler-options.ts";
import { describeApi } from "./to-openapi.ts";

/** Views that are kept written: most callers see the same. */
const VIEWS = 16;

/** The document of an API, as each caller may see it. */
export class ServedDocument {
  readonly #executor: Executor;
  readonly #options: HttpHandlerOptions;
  readonly #written = new Map<string, string>();
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

  answer(identity: Identity | undefined): HttpAnswer {
    const headers = { "content-type": "application/json", "cache-control": "private, no-cache" };
    return { status: 200, headers, body: this.text(identity) };
  }

  /** The document as JSON text. */
  text(identity: Identity | undefined): string {
    const view = this.#viewOf(identity);
    const known = this.#written.get(view);
    if (known !== undefined) return known;
    const text = JSON.stringify(describeApi(this.#executor, this.#documentOptions(identity)));
    const [oldest] = this.#written.keys();
    if (this.#written.size >= VIEWS && oldest !== undefined) this.#written.delete(oldest);
    this.#written.set(view, text);
    return text;
  }

  #viewOf(identity: Identity | undefined): string {
    const hash = createHash("sha256");
    for (const { id } of this.#executor.list({ identity })) hash.update(`${id}\n`);
    return hash.digest("base64");
  }

  #documentOptions(identity: Identity | undefined): Parameters<typeof describeApi>[1] {
    const { info, servers, basePath, formats, examples, auth, authenticate } = this.#options;
    const ways = auth && {
      ...(auth.bearer !== undefined && { bearer: true }),
      ...(auth.apiKeys !== undefined && { apiKeyHeader: auth.apiKeys.header ?? "x-api-key" }),
    };
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
