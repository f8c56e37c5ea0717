import { randomUUID } from "node:crypto";
import type { Identity } from "../../core/access/identity.ts";
import type { Params } from "../protocol/messages.ts";
import type { Era } from "../protocol/revisions.ts";
import type { McpLogLevel } from "../provider.ts";
import type { ListKind } from "./mcp-server.ts";

/** For whom a peer is made, and how it is told things. */
export interface PeerOptions {
  readonly era: Era;
  readonly identity: Identity | undefined;
  /** Tells it something that belongs to no request of its own. @default nothing can be told */
  readonly notify?: ((method: string, params?: object) => void) | undefined;
  /** Lists whose changes it wants to hear of. @default all */
  readonly lists?: readonly ListKind[] | undefined;
  /** Ends it from this side, with what runs for it. @default it is one request, and ends with it */
  readonly end?: (() => void) | undefined;
}

/** A client as the server knows it: a session, a connection, a stream of changes, or a single request. */
export class Peer {
  readonly era: Era;
  readonly identity: Identity | undefined;
  readonly notify: (method: string, params?: object) => void;
  readonly end: () => void;
  /** Whether it is a session or a connection, and not one request alone. */
  readonly stays: boolean;
  readonly #lists: readonly ListKind[] | undefined;
  #id: string | undefined;
  /** What a 2025 client said in its `initialize`. */
  client: Params = {};
  /** What a 2025 session speaks, once that is settled. */
  revision: string | undefined;
  /** What a 2025 client asked for with `logging/setLevel`; all until it does. */
  level: McpLogLevel | undefined;
  /** What it subscribed to, by the URI it used. */
  readonly subscriptions = new Set<string>();

  constructor({ era, identity, notify = () => {}, lists, end }: PeerOptions) {
    this.era = era;
    this.stays = end !== undefined;
    this.identity = identity;
    this.notify = notify;
    this.end = end ?? (() => {});
    this.#lists = lists;
  }

  /** Tells it from all others; nobody else knows it. */
  get id(): string {
    this.#id ??= randomUUID();
    return this.#id;
  }

  /** Whether it wants to hear of changes of a list. */
  hears(kind: ListKind): boolean {
    return this.#lists === undefined || this.#lists.includes(kind);
  }
}
