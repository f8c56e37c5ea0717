import { lookup } from "node:dns";
import type { Socket } from "node:net";
import { Pool } from "undici";
import { CallError } from "../../../core/errors/errors.ts";
import { parseUrl } from "../../../core/text/parse-url.ts";
import { type AddressGuard, bareHost, type ResolveHost } from "./address-guard.ts";
import { createConnector } from "./guarded-connector.ts";
import type { TransportSettings } from "./transport-settings.ts";

/** What tests put in the place of the platform's own; nothing else does. */
export interface TransportSeams {
  /** Resolves host names. @default dns.lookup */
  readonly lookup?: ResolveHost | undefined;
  /** Certificates that are trusted, in PEM. @default those of the platform */
  readonly ca?: string | undefined;
}

/** One place that is called, and the connections to it. */
export interface Origin {
  readonly host: string;
  readonly port: string;
  readonly pool: Pool;
}

/** The pools of so many origins are kept: redirects could name any number. */
const MOST_POOLS = 64;

/** The connections of one source, kept alive by origin; each is made past the guard. */
export class OriginPools {
  readonly #settings: TransportSettings;
  readonly #guard: AddressGuard;
  readonly #seams: TransportSeams;
  readonly #origins = new Map<string, Origin>();
  readonly #sockets = new Set<Socket>();
  #last: { readonly name: string; readonly origin: Origin } | undefined;

  constructor(settings: TransportSettings, guard: AddressGuard, seams: TransportSeams) {
    this.#settings = settings;
    this.#guard = guard;
    this.#seams = seams;
  }

  get(name: string): Origin {
    if (this.#last?.name === name) return this.#last.origin;
    const origin = this.#origins.get(name) ?? this.#open(name);
    this.#last = { name, origin };
    // Moved to the end, so that the first is always the one not used for longest.
    this.#origins.delete(name);
    this.#origins.set(name, origin);
    this.#closeOldest();
    return origin;
  }

  /** Ends every connection, those that are being made included. */
  async close(): Promise<void> {
    const pools = [...this.#origins.values()].map(({ pool }) => pool.destroy());
    this.#origins.clear();
    this.#last = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(pools);
  }

  #open(name: string): Origin {
    const url = parseUrl(name);
    const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
    if (url === undefined || !isHttp || url.origin !== name) {
      throw new CallError("VALIDATION_ERROR", "A request needs an origin such as https://api.example.", {
        stack: false,
      });
    }
    const port = url.port || (url.protocol === "https:" ? "443" : "80");
    const connect = createConnector({
      port,
      mayBePrivate: this.#guard.mayBePrivate(url.hostname, port),
      connectTimeoutMs: this.#settings.connectTimeoutMs,
      resolve: this.#seams.lookup ?? (lookup as ResolveHost),
      ca: this.#seams.ca,
      sockets: this.#sockets,
    });
    const pool = new Pool(name, {
      connect,
      connections: this.#settings.concurrency,
      pipelining: 1,
      // One timer for each exchange is enough.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: this.#settings.headerBytes,
    });
    return { host: bareHost(url.hostname), port, pool };
  }

  /** What is under way there is finished first. */
  #closeOldest(): void {
    if (this.#origins.size <= MOST_POOLS) return;
    const [name, origin] = this.#origins.entries().next().value as [string, Origin];
    this.#origins.delete(name);
    void origin.pool.close().catch(() => {});
  }
}
