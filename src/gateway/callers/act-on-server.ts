import type { Identity } from "../../core/access/identity.ts";
import { isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { OnWire } from "../../mcp/channels/channel.ts";
import type { HttpConnectionOptions, McpConnectionOptions } from "../../mcp/client/connection-options.ts";
import type { McpConnection, McpLink, McpRequestOptions } from "../../mcp/client/mcp-connection.ts";
import { takeNote, type UpstreamNote } from "../policy/call-notes.ts";
import { wantsLogin } from "../sources/source-login.ts";
import type { ActingSource } from "./acting-source.ts";
import { type ActingCaller, CallerConnections } from "./caller-connections.ts";
import type { CallerGrant, CallerLogins, GrantStore } from "./caller-logins.ts";
import { type CallerTokens, issuerIn } from "./caller-tokens.ts";

/** What connections to a server are made with, for each caller. */
export interface ServerActing {
  readonly source: ActingSource;
  readonly logins: CallerLogins;
  /** Tokens of callers, where the source is asked with such. */
  readonly tokens: CallerTokens | undefined;
  /** The gateway's own connection, and what it was made with. */
  readonly own: McpConnection;
  readonly options: McpConnectionOptions;
  readonly onWire: OnWire | undefined;
}

/** A caller whose connection is made with something that is kept. */
interface GrantedCaller extends ActingCaller {
  readonly held?: CallerGrant | undefined;
}

/** Makes what looks like one connection to a server, and is one for each caller. */
export function actOnServer(acting: ServerActing): McpLink {
  const { source, logins, own } = acting;
  const { connections, idleMs } = source.identity;
  return new CallerConnections({
    own,
    connections,
    idleMs,
    actAs: async (identity, options, lost) => {
      const caller =
        acting.tokens === undefined
          ? toCaller(await logins.need(source, askOf(identity, options), lost?.grant), acting)
          : await byToken(acting.tokens, identity, acting);
      noteFor(options, caller, source);
      return caller;
    },
    known: async (identity) => {
      if (identity === undefined) return undefined;
      if (acting.tokens !== undefined) return await byToken(acting.tokens, identity, acting).catch(noneKnown);
      const held = await logins.held(source, identity);
      return held && toCaller(held, acting);
    },
    isLost: async (thrown, { held }: GrantedCaller) => {
      if (held === undefined || source.identity.mode !== "caller") return false;
      if (lacksScope(thrown)) return true;
      if (!wantsLogin(thrown)) return false;
      await logins.drop(source, held);
      return true;
    },
  });
}

/** A list is empty for a caller who shows nothing to ask with. */
function noneKnown(thrown: unknown): undefined {
  if (!isCallError(thrown) || thrown.code !== "UNAUTHENTICATED") throw thrown;
  return undefined;
}

function askOf(identity: Identity | undefined, { caller, signal }: McpRequestOptions) {
  const elicit = caller?.elicit;
  return { identity, signal, elicit: elicit?.bind(caller), elicited: caller?.elicited?.bind(caller) };
}

function toCaller(held: CallerGrant, acting: ServerActing): GrantedCaller {
  const { id, owner } = held;
  return {
    owner,
    grant: id,
    held,
    create: () => connect(acting, (options) => withGrant(options, held, acting.source)),
  };
}

async function byToken(
  tokens: CallerTokens,
  identity: Identity | undefined,
  acting: ServerActing,
): Promise<ActingCaller> {
  const owner = await tokens.hold(identity);
  const auth = {
    bearer: (request: { readonly identity: Identity | undefined }) => tokens.of(owner, request.identity),
  };
  return {
    owner,
    grant: acting.source.identity.mode,
    create: () => connect(acting, (options) => ({ ...options, auth })),
  };
}

/** Credentials of the gateway itself are left out: a server must not take one for the other. */
async function connect(
  { options, onWire }: ServerActing,
  dress: (options: HttpConnectionOptions) => object | Promise<object>,
): Promise<McpConnection> {
  const { McpConnection } = await import("../../mcp/client/mcp-connection.ts");
  const { auth: _, headers, ...others } = options as McpConnectionOptions & HttpConnectionOptions;
  const left = isPlainObject(headers) ? withoutAuthorization(headers as Record<string, string>) : headers;
  const given = { ...others, ...(left !== undefined && { headers: left }) };
  return new McpConnection((await dress(given)) as McpConnectionOptions, onWire);
}

function withoutAuthorization(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.toLowerCase() !== "authorization"),
  );
}

async function withGrant(
  options: HttpConnectionOptions,
  held: CallerGrant,
  { identity, login }: ActingSource,
): Promise<HttpConnectionOptions> {
  const { key } = held.stored as { readonly key?: unknown };
  if (identity.mode === "key" && typeof key === "string") {
    if (identity.header === undefined) return { ...options, auth: { bearer: key } };
    return { ...options, headers: { ...(options.headers as object | undefined), [identity.header]: key } };
  }
  const [{ createLoginStore }, { ChannelError }] = await Promise.all([
    import("../../http/oauth/login.ts"),
    import("../../mcp/channels/channel.ts"),
  ]);
  const kept = ofGrant(held, () => new ChannelError("sign-in"));
  return { ...options, auth: { oauth2: createLoginStore(kept, login.client) } };
}

/** What is kept of one grant. Once it has ended or another has taken its place, nothing more is sent over the connection that it opened. */
function ofGrant({ id, store }: CallerGrant, ended: () => Error): GrantStore {
  return {
    ...store,
    load: async () => {
      const stored = await store.load();
      if (stored?.["grant"] !== id) throw ended();
      return stored;
    },
    remove: async () => {
      if ((await store.load())?.["grant"] === id) await store.remove();
    },
  };
}

/** Tells of a login that is good for less than the server wants. */
function lacksScope(thrown: unknown): boolean {
  for (let at: unknown = thrown, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (at.name === "ChannelError") return (at as { readonly reason?: unknown }).reason === "scope";
  }
  return false;
}

function noteFor(
  { call }: McpRequestOptions,
  { grant, held }: GrantedCaller,
  { identity: { mode } }: ActingSource,
): void {
  if (call === undefined) return;
  const issuer = held && issuerIn(held.stored);
  const upstream: UpstreamNote = {
    as: mode,
    ...(issuer !== undefined && { issuer }),
    ...(held !== undefined && { grant }),
  };
  takeNote(call, { upstream });
}
