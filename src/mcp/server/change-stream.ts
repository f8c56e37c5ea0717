import type { Identity } from "../../core/access/identity.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import {
  ProtocolError,
  type RequestId,
  RPC_CODES,
  type RpcRequest,
  writeCall,
  writeResult,
} from "../protocol/messages.ts";
import { META_KEYS } from "../protocol/revisions.ts";
import type { ListKind, ServedMcp, ServerCapabilities } from "./mcp-server.ts";
import { Peer } from "./peer.ts";
import { invalidParams } from "./protocol-errors.ts";
import { MAX_PEER_CHARACTERS, MAX_SUBSCRIPTIONS } from "./resource-subscriptions.ts";

/** How long a client waits for those who have the resources; they are still asked afterwards. */
const HOLD_MS = 5_000;

/** Changes that are kept until then; a client that missed some lists anew anyway. */
const MAX_EARLY = 1_000;

const LISTS = {
  toolsListChanged: "tools",
  resourcesListChanged: "resources",
  promptsListChanged: "prompts",
} as const;

/** What a client wants to hear of, as far as the server can tell it. */
interface SubscriptionFilter {
  readonly lists: readonly ListKind[];
  readonly uris: readonly string[];
  /** The lists in the words of the protocol. */
  readonly switches: object;
}

/** For whom changes are told, and how. */
export interface ChangeStreamOptions {
  readonly identity: Identity | undefined;
  /** Sends one message. */
  readonly send: (text: string) => void;
  /** Hears that it ended, from this side. */
  readonly onEnd: () => void;
}

/** The changes that a 2026-07-28 client hears of after `subscriptions/listen`, until it calls that off. */
export class ChangeStream {
  readonly id: RequestId;
  readonly #server: ServedMcp;
  readonly #options: ChangeStreamOptions;
  /** What was asked for, until it is known what of it there is. */
  #filter: SubscriptionFilter | undefined;
  readonly #peer: Peer;
  /** What happened before the client knows that it is heard. */
  #early: string[] | undefined = [];
  #leave: (() => void) | undefined;
  #isOver = false;

  /** Throws a `ProtocolError` for a request that does not say what it wants, or wants too much. */
  constructor(server: ServedMcp, { id, params }: RpcRequest, options: ChangeStreamOptions) {
    this.id = id;
    this.#server = server;
    this.#options = options;
    const filter = readFilter(params?.["notifications"], server.capabilities);
    this.#filter = filter;
    this.#peer = new Peer({
      era: "modern",
      identity: options.identity,
      lists: filter.lists,
      notify: (method, given) => this.#tell(writeCall(method, this.#stamped(given))),
      end: () => this.end(),
    });
  }

  /** Begins to tell; the client hears of it when those who have the resources have been asked. */
  async open(): Promise<void> {
    if (this.#isOver || this.#filter === undefined) return;
    const { lists, uris, switches } = this.#filter;
    // Addresses that do not exist are not kept.
    this.#filter = undefined;
    const isIdle = lists.length === 0 && uris.length === 0;
    if (!isIdle) {
      this.#leave = this.#server.follow(this.#peer);
      if (uris.length > 0) await within(HOLD_MS, this.#server.subscribe(this.#peer, uris));
    }
    if (this.#isOver) return;
    const early = this.#early ?? [];
    const kept = uris.filter((uri) => this.#peer.subscriptions.has(uri));
    const honored = { ...switches, ...(kept.length > 0 && { resourceSubscriptions: kept }) };
    this.#early = undefined;
    this.#options.send(
      writeCall("notifications/subscriptions/acknowledged", this.#stamped({ notifications: honored })),
    );
    for (const text of early) this.#options.send(text);
    if (isIdle) this.end();
  }

  /** Ends it from this side: the client is told that nothing more comes. */
  end(): void {
    if (this.#isOver) return;
    const meta = { [META_KEYS.subscriptionId]: this.id, [META_KEYS.serverInfo]: this.#server.info };
    this.#options.send(writeResult(this.id, JSON.stringify({ resultType: "complete", _meta: meta })));
    this.drop();
    this.#options.onEnd();
  }

  /** Ends it without a word: the client has gone, or called it off. */
  drop(): void {
    this.#isOver = true;
    this.#leave?.();
    this.#leave = undefined;
  }

  #tell(text: string): void {
    if (this.#isOver) return;
    if (this.#early === undefined) this.#options.send(text);
    else if (this.#early.length < MAX_EARLY) this.#early.push(text);
  }

  #stamped(params: object = {}): object {
    return { ...params, _meta: { [META_KEYS.subscriptionId]: this.id } };
  }
}

function readFilter(wanted: unknown, capabilities: ServerCapabilities): SubscriptionFilter {
  if (!isPlainObject(wanted)) throw invalidParams('The request needs "notifications", an object.');
  const { resourceSubscriptions: given = [] } = wanted;
  const isSwitch = (name: string): boolean => wanted[name] === undefined || typeof wanted[name] === "boolean";
  if (
    !Object.keys(LISTS).every(isSwitch) ||
    !Array.isArray(given) ||
    !given.every((uri) => typeof uri === "string")
  ) {
    throw invalidParams('"notifications" has switches for lists, and addresses in resourceSubscriptions.');
  }
  if (given.length > MAX_SUBSCRIPTIONS) {
    const message = `At most ${MAX_SUBSCRIPTIONS} resources can be listened to in one stream.`;
    throw new ProtocolError(RPC_CODES.invalidParams, message);
  }
  if (given.reduce((sum: number, uri: string) => sum + uri.length, 0) > MAX_PEER_CHARACTERS) {
    const message = `The addresses of one stream can have at most ${MAX_PEER_CHARACTERS} characters.`;
    throw new ProtocolError(RPC_CODES.invalidParams, message);
  }
  const names = (Object.keys(LISTS) as (keyof typeof LISTS)[]).filter(
    (name) => wanted[name] === true && capabilities[LISTS[name]]?.listChanged === true,
  );
  const uris = capabilities.resources?.subscribe === true ? [...new Set(given as string[])] : [];
  const switches = Object.fromEntries(names.map((name) => [name, true]));
  return { lists: names.map((name) => LISTS[name]), uris, switches };
}

/** Waits for something, and no longer than that. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
