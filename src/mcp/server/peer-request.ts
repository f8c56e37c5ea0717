import { randomUUID } from "node:crypto";
import {
  type InputRequiredResult,
  MissingRequiredClientCapabilityError,
  type CallToolResult as SdkCallToolResult,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { type Identity, ownerOf } from "../../core/access/identity.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import type { CallToolResult } from "../../core/result/call-tool-result.ts";
import type { JsonSchemaObject } from "../../core/schema/json-schema.ts";
import type { McpLogLevel } from "../provider.ts";
import { toCallerSide } from "./ask-client.ts";
import {
  type AskableCapabilities,
  assertAskable,
  missingCapabilities,
  readCapabilities,
} from "./caller-answers.ts";
import type { Era } from "./describe-tool.ts";
import { Exchange } from "./exchange.ts";
import type { McpPeer } from "./mcp-server.ts";
import type { McpClient } from "./mcp-server-options.ts";
import { identityOf } from "./peer-identity.ts";
import { declaredCapabilities, declaredName, wantedLogLevel } from "./request-envelope.ts";
import type { MayGoOn, SuspendableRun, WaitingCalls } from "./waiting-calls.ts";

const CANNOT = { form: false, url: false, sampling: false, roots: false };

/** What a 2026-07-28 client that declares nothing can be asked: each question fails, and says what was not declared. */
const NOBODY: CallerSide = {
  elicit: async ({ mode = "form" }) => refuse(mode),
  sample: async () => refuse("sampling"),
  roots: async () => refuse("roots"),
};

function refuse(kind: keyof AskableCapabilities): never {
  assertAskable(kind, CANNOT);
  throw new Error("unreachable");
}

/** One peer: the server of the SDK that was made for it, and what it has said so far. */
export class Peer {
  readonly server: Server;
  readonly era: Era;
  readonly stays: boolean;
  readonly splices: boolean;
  readonly identity: Identity | undefined;
  /** Tells it from all others; nobody else knows it. */
  readonly id = randomUUID();
  /** What a 2025 client asked for with `logging/setLevel`; all until it does. */
  level: McpLogLevel | undefined;
  /** What it subscribed to, by the URI it used. */
  readonly subscriptions = new Set<string>();

  constructor(
    server: Server,
    { era, stays, splices = false, identity }: McpPeer,
    fallback: Identity | undefined,
  ) {
    this.server = server;
    this.era = era;
    this.stays = stays;
    this.splices = splices;
    this.identity = identity === "anonymous" ? undefined : (identity ?? fallback);
  }
}

/** One request of a peer. */
export class PeerRequest {
  readonly peer: Peer;
  readonly context: ServerContext;
  readonly identity: Identity | undefined;
  readonly #waiting: WaitingCalls;
  readonly #waitingMs: number;

  constructor(peer: Peer, context: ServerContext, waiting: WaitingCalls, waitingMs: number) {
    this.peer = peer;
    this.context = context;
    this.identity = identityOf(context, peer.identity);
    this.#waiting = waiting;
    this.#waitingMs = waitingMs;
  }

  /** Who is asking, as far as that decides how to answer. */
  get client(): McpClient {
    const { peer, context, identity } = this;
    const name = peer.era === "modern" ? declaredName(context) : peer.server.getClientVersion()?.name;
    return { name, identity };
  }

  /** The revision of MCP in use; nothing where no handshake told. */
  get revision(): string | undefined {
    const { peer, context } = this;
    const told = context.http?.req?.headers.get("mcp-protocol-version") ?? undefined;
    return peer.server.getNegotiatedProtocolVersion() ?? told;
  }

  /** Names who keeps what this request leaves behind: the caller, else the session or connection, else all who are anonymous. */
  get owner(): string {
    const { peer, identity } = this;
    if (identity !== undefined) return ownerOf(identity);
    return peer.stays ? peer.id : "";
  }

  /** Who makes the request, over several of them: a session, or a caller who said who they are. */
  get party(): object | string | undefined {
    const { peer, identity } = this;
    if (peer.era === "legacy") return peer;
    return identity && ownerOf(identity);
  }

  /**
   * Runs what may ask the client something on the way, in whichever way this client can be asked. `mayGoOn` is asked about whoever brings
   * the answer in another request.
   */
  async run<T>(
    method: string,
    name: string,
    start: (run: SuspendableRun, exchange: Exchange) => Promise<T>,
    mayGoOn: MayGoOn,
  ): Promise<T | InputRequiredResult> {
    const { context, peer } = this;
    if (peer.era === "modern" && this.#maySuspend()) {
      const { identity } = this;
      const binding = { method, name, owner: ownerOf(identity), identity };
      return await this.#waiting.run(context, binding, () => this.#exchange(), { start, mayGoOn });
    }
    const exchange = this.#exchange();
    exchange.attach(context);
    const { signal } = context.mcpReq;
    const caller = peer.era === "legacy" ? this.#legacyCaller() : NOBODY;
    return await start({ signal, caller }, exchange);
  }

  /** Throws what the 2026-07-28 revision wants to hear where a call failed for want of a capability of its client. */
  assertCapable(thrown: unknown): void {
    const requiredCapabilities = this.peer.era === "modern" ? missingCapabilities(thrown) : undefined;
    if (requiredCapabilities !== undefined) {
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities });
    }
  }

  /** Brings a result into the form the revision in use wants. */
  project(result: CallToolResult, schema: JsonSchemaObject | undefined): CallToolResult {
    return this.peer.server.projectCallToolResult(result as SdkCallToolResult, schema) as CallToolResult;
  }

  /**
   * All calls of a session are those of one caller: a 2025 client knows that a question does not say which of them it is about. To a
   * 2026-07-28 client it does, and such a client may be a gateway with many callers of its own.
   */
  #legacyCaller(): CallerSide {
    const { peer, context } = this;
    return toCallerSide(peer.server, context, { party: peer, timeoutMs: this.#waitingMs });
  }

  /** A client that can be asked nothing, and answers nothing, needs no more than a plain call. */
  #maySuspend(): boolean {
    const can = readCapabilities(declaredCapabilities(this.context));
    if (can.form || can.url || can.sampling || can.roots) return true;
    return this.context.mcpReq.requestState() !== undefined;
  }

  #exchange(): Exchange {
    const { peer } = this;
    return new Exchange((context) => (peer.era === "modern" ? wantedLogLevel(context) : peer.level));
  }
}
