import type { Identity } from "../../core/access/identity.ts";
import { endsWithin } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import {
  invalidParams,
  type Params,
  ProtocolError,
  type RequestId,
  RPC_CODES,
  type RpcRequest,
  writeCall,
  writeResult,
} from "../protocol/messages.ts";
import { META_KEYS } from "../protocol/revisions.ts";
import type { ChannelServer, ListKind, ServerCapabilities } from "./mcp-server.ts";
import { Peer } from "./peer-request.ts";
import { MAX_PEER_CHARACTERS, MAX_SUBSCRIPTIONS } from "./resources/resource-subscriptions.ts";
import { declaresTasks, MOST_HEARD_TASKS, tasksNotDeclared } from "./tasks/task-wire.ts";

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
  /** Tasks, by their ids. */
  readonly taskIds: readonly string[];
  /** The lists in the words of the protocol. */
  readonly switches: object;
}

interface ChangeStreamOptions {
  readonly identity: Identity | undefined;
  /** The connection whose tasks it hears of. @default those of the identity alone */
  readonly connection?: Peer | undefined;
  /** Sends one message. */
  readonly send: (text: string) => void;
  /** Hears that it ended, from this side. */
  readonly onEnd: () => void;
}

/** The changes that a 2026-07-28 client hears of after `subscriptions/listen`, until it calls that off. */
export class ChangeStream {
  readonly id: RequestId;
  readonly #server: ChannelServer;
  readonly #options: ChangeStreamOptions;
  /** What was asked for, until it is known what of it there is. */
  #filter: SubscriptionFilter | undefined;
  readonly #peer: Peer;
  /** What happened before the client knows that it is heard. */
  #early: string[] | undefined = [];
  #leave: (() => void) | undefined;
  readonly #params: Params;
  readonly #leaveTasks: (() => void)[] = [];
  #isOver = false;

  /** Throws a `ProtocolError` for a request that does not say what it wants, or wants too much. */
  constructor(server: ChannelServer, { id, params }: RpcRequest, options: ChangeStreamOptions) {
    this.id = id;
    this.#server = server;
    this.#options = options;
    this.#params = params ?? {};
    const filter = readFilter(params?.["notifications"], server.capabilities);
    if (filter.taskIds.length > 0 && !declaresTasks(this.#params)) throw tasksNotDeclared();
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
    const { lists, uris, taskIds, switches } = this.#filter;
    // Addresses that do not exist are not kept.
    this.#filter = undefined;
    const heard = await this.#followTasks(taskIds);
    const hasLists = lists.length > 0 || uris.length > 0;
    const isIdle = !hasLists && heard.length === 0;
    if (hasLists && !this.#isOver) {
      this.#leave = this.#server.follow(this.#peer);
      if (uris.length > 0) await endsWithin(HOLD_MS, this.#server.subscribe(this.#peer, uris));
    }
    if (this.#isOver) return;
    const early = this.#early ?? [];
    const kept = uris.filter((uri) => this.#peer.subscriptions.has(uri));
    const honored = {
      ...switches,
      ...(kept.length > 0 && { resourceSubscriptions: kept }),
      ...(heard.length > 0 && { taskIds: heard }),
    };
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
    for (const leave of this.#leaveTasks.splice(0)) leave();
  }

  /** Begins to tell of tasks; gives the ids of those that the client sees. */
  async #followTasks(ids: readonly string[]): Promise<readonly string[]> {
    const { identity, connection = new Peer({ era: "modern", identity }) } = this.#options;
    const heard: string[] = [];
    for (const id of ids) {
      const tell = (params: object): void =>
        this.#tell(writeCall("notifications/tasks", this.#stamped(params)));
      const leave = await this.#server.followTask(connection, { id, params: this.#params }, tell);
      if (leave === undefined) continue;
      heard.push(id);
      if (this.#isOver) leave();
      else this.#leaveTasks.push(leave);
    }
    return heard;
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
  const { resourceSubscriptions: given = [], taskIds = [] } = wanted;
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
  const areTasks = Array.isArray(taskIds) && taskIds.every((id) => typeof id === "string");
  if (!areTasks || taskIds.length > MOST_HEARD_TASKS) {
    throw invalidParams(`"taskIds" must be a list of at most ${MOST_HEARD_TASKS} ids.`);
  }
  const names = (Object.keys(LISTS) as (keyof typeof LISTS)[]).filter(
    (name) => wanted[name] === true && capabilities[LISTS[name]]?.listChanged === true,
  );
  const uris = capabilities.resources?.subscribe === true ? [...new Set(given as string[])] : [];
  const switches = Object.fromEntries(names.map((name) => [name, true]));
  return {
    lists: names.map((name) => LISTS[name]),
    uris,
    taskIds: [...new Set(taskIds as string[])],
    switches,
  };
}
