import { isPlainObject } from "../../core/json/json-value.ts";
import { type Channel, ChannelError } from "../channels/channel.ts";
import { type Params, ProtocolError, RPC_CODES, writeCall } from "../protocol/messages.ts";
import type { RpcPeer } from "../protocol/peer.ts";
import {
  type Era,
  isModernRevision,
  LEGACY_REVISIONS,
  META_KEYS,
  MODERN_REVISIONS,
} from "../protocol/revisions.ts";
import { isFault, networkCodeOf, rpcErrorOf } from "./channel-failure.ts";
import { CLIENT_CAPABILITIES, type ClientInfo } from "./outgoing-params.ts";

/** What a client and a server agreed on. */
export interface Handshake {
  readonly era: Era;
  readonly revision: string;
  /** What the server said of itself, as it came. */
  readonly result: Params;
  /** How to begin the next time. */
  readonly known: KnownServer | undefined;
}

/** What an earlier connection taught of a server: the era it speaks, or that it takes nothing but a plain `initialize`. */
export type KnownServer = "modern" | "plain";

/** What a handshake is made with. */
export interface HandshakeOptions {
  readonly peer: RpcPeer;
  readonly channel: Channel;
  readonly protocol: "auto" | "2025" | "2026";
  readonly clientInfo: ClientInfo;
  readonly known: KnownServer | undefined;
  /** Hears that `server/discover` is asked: some older servers end when they are. */
  onDiscover(isAsked: boolean): void;
  /** Hears which era was agreed on, before the server hears that it was. */
  onAgreed(era: Era): void;
}

/** Agrees with a server on a revision; rejects with a `ProtocolError`, a `ChannelError` or what the channel threw. */
export async function shakeHands(options: HandshakeOptions): Promise<Handshake> {
  const { protocol, known, channel } = options;
  if (protocol === "2025") return await initialize(options);
  if (protocol === "2026") {
    const found = await discover(options);
    if (found === undefined) throw new ChannelError("too-old");
    return found;
  }
  if (known === "plain") return await initialize(options);
  // Over HTTP a request that is not understood costs a round trip and nothing else.
  if (known === "modern" || !channel.isShared)
    return (await discover(options)) ?? (await initialize(options));
  return await initializeOrDiscover(options);
}

/**
 * Opens with an `initialize` that also claims 2026-07-28 in its `_meta`, which older revisions let every request have. A server of theirs
 * answers it: one process, one round trip, and nothing sent that it does not know. A server of 2026-07-28 takes it for a request of that
 * revision, which has no such method, and says so; then it is asked what it offers.
 */
async function initializeOrDiscover(options: HandshakeOptions): Promise<Handshake> {
  try {
    return await initialize(options, { _meta: toClaim(options.clientInfo, MODERN_REVISIONS[0] ?? "") });
  } catch (refusal) {
    if (!(refusal instanceof ProtocolError)) throw refusal;
    // What knows the revision knows that there is no such method in it; anything else may dislike the claim alone.
    const isModern =
      refusal.code === RPC_CODES.methodNotFound || refusal.code === RPC_CODES.unsupportedVersion;
    const plain = isModern ? undefined : await initialize(options).catch(onlyOtherThanRefusals);
    const agreed = plain ?? (await discover(options));
    if (agreed !== undefined) return agreed;
    throw refusal;
  }
}

/** The handshake up to 2025-11-25. */
async function initialize(
  { peer, channel, clientInfo, onAgreed }: HandshakeOptions,
  claim?: Params,
): Promise<Handshake> {
  const [protocolVersion] = LEGACY_REVISIONS;
  const params = { protocolVersion, capabilities: CLIENT_CAPABILITIES, clientInfo, ...claim };
  const result = await ask(peer, "initialize", params);
  const revision = isPlainObject(result) ? result["protocolVersion"] : undefined;
  if (!isPlainObject(result) || typeof revision !== "string" || !LEGACY_REVISIONS.includes(revision)) {
    throw new ChannelError("handshake");
  }
  onAgreed("legacy");
  channel.agree(revision);
  await channel.send(writeCall("notifications/initialized", undefined));
  channel.listen();
  return { era: "legacy", revision, result, known: claim === undefined ? "plain" : undefined };
}

/** Asks what the server offers since 2026-07-28; nothing where it does not know what that means, or offers nothing that is known here. */
async function discover(options: HandshakeOptions): Promise<Handshake | undefined> {
  const { peer, channel, clientInfo } = options;
  options.onDiscover(true);
  try {
    const [newest = ""] = MODERN_REVISIONS;
    const result = await ask(peer, "server/discover", { _meta: toClaim(clientInfo, newest) });
    const offered = isPlainObject(result) ? toTexts(result["supportedVersions"]) : [];
    const revision = MODERN_REVISIONS.find((known) => offered.includes(known));
    if (!isPlainObject(result) || revision === undefined) return undefined;
    options.onAgreed("modern");
    channel.agree(revision);
    return { era: "modern", revision, result, known: "modern" };
  } catch (failure) {
    const refusal = toRefusal(failure);
    if (refusal === undefined) throw failure;
    // A server of later revisions alone says so; what it says is more than that it does not know the method.
    const isLater =
      refusal.code === RPC_CODES.unsupportedVersion &&
      toTexts(isPlainObject(refusal.data) ? refusal.data["supported"] : undefined).some(isModernRevision);
    if (isLater) throw failure;
    return undefined;
  } finally {
    options.onDiscover(false);
  }
}

/** The error with which a server refuses a request that it does not understand; nothing where the request did not get that far. */
function toRefusal(failure: unknown): Pick<ProtocolError, "code" | "data"> | undefined {
  if (failure instanceof ProtocolError) return failure;
  if (!isFault(failure, "status") || failure.status === undefined) return undefined;
  const { status, body } = failure;
  if (status === 401 || status === 403 || status >= 500) return undefined;
  const error = rpcErrorOf(body) ?? { code: RPC_CODES.methodNotFound };
  return { data: undefined, ...error };
}

function onlyOtherThanRefusals(failure: unknown): undefined {
  if (failure instanceof ProtocolError) return undefined;
  throw failure;
}

function toClaim(clientInfo: ClientInfo, revision: string): Params {
  return {
    [META_KEYS.revision]: revision,
    [META_KEYS.clientInfo]: clientInfo,
    [META_KEYS.clientCapabilities]: CLIENT_CAPABILITIES,
  };
}

function toTexts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** What a connection fails with that was kept open from before and that the server has closed meanwhile. */
const STALE: ReadonlySet<string | undefined> = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

/** Asks, and once more over a new connection where one from before was closed just then: nothing of a handshake is harmed by that. */
async function ask(peer: RpcPeer, method: string, params: Params): Promise<unknown> {
  try {
    return await askOnce(peer, method, params);
  } catch (failure) {
    if (!STALE.has(networkCodeOf(failure))) throw failure;
    return await askOnce(peer, method, params);
  }
}

function askOnce(peer: RpcPeer, method: string, params: Params): Promise<unknown> {
  return new Promise((resolve, reject) => {
    peer.request(method, params, {
      onEnd: (end) => {
        if (end.kind === "result") resolve(end.result);
        else if (end.kind === "failure") reject(end.failure);
        else reject(new ProtocolError(end.error.code, end.error.message, end.error.data));
      },
    });
  });
}
