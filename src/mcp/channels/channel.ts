import type { OutgoingRequest } from "../protocol/peer.ts";

/** Why a channel is no more: a sentence for people, and what helps to find out. */
export interface Loss {
  /** In words of ours. */
  readonly reason: string;
  /** What the server said, as it is passed on. */
  readonly said?: string | undefined;
  readonly cause?: unknown;
  /** What the process said last, on one short line; for whoever started it, and for no wire. */
  readonly lastWords?: string;
}

/** Who hears what comes over a channel; none of these may throw. */
export interface ChannelListener {
  /** Takes what the server sent: one message, or a list of them. */
  onMessage(message: unknown): void;
  /** Hears of something odd that nobody waits for. */
  onOddity(message: string): void;
  /** Hears that nothing more will come; once. */
  onClose(): void;
  /** Hears that what the server tells unasked does not arrive any more, while requests may still work. */
  onStale(): void;
}

/** One way to a server: messages to it, and messages from it. */
export interface Channel {
  /** Whether all messages share one stream; otherwise each request has an exchange of its own, which ends with its signal. */
  readonly isShared: boolean;
  /** Whether the server gave the connection a session id. */
  readonly hasSession: boolean;
  start(listener: ChannelListener): Promise<void>;
  /** Sends a message; rejects where it cannot be sent, and for a request also where no answer will come. */
  send(text: string, request?: OutgoingRequest): Promise<void>;
  /** Says which revision is spoken from now on. */
  agree(revision: string): void;
  /** Opens the stream for what the server tells unasked, where it is one of its own. */
  listen(): void;
  loss(): Loss;
  /** Says goodbye where the other side wants to know, then closes. */
  close(): Promise<void>;
}

/** What went wrong on a channel, for programs. */
export type ChannelFault =
  /** An HTTP status that is no success. */
  | "status"
  /** The scope of the token is not enough. */
  | "scope"
  /** The answer has a type that nobody here reads. */
  | "content-type"
  /** The answer is no message of JSON-RPC. */
  | "no-message"
  /** There will be no answer: it may have run. */
  | "stream-ended"
  /** The server names an address that messages must not be sent to. */
  | "endpoint"
  /** The answer to the handshake is none that can be used. */
  | "handshake"
  /** The server does not speak the revision that was asked for. */
  | "too-old";

/** A failure on the way to a server or from it. */
export class ChannelError extends Error {
  override readonly name = "ChannelError";
  readonly reason: ChannelFault;
  readonly status: number | undefined;
  /** What the server said of it, as it came. */
  readonly body: string;

  constructor(
    reason: ChannelFault,
    {
      status,
      body = "",
      cause,
    }: { readonly status?: number; readonly body?: string; readonly cause?: unknown } = {},
  ) {
    super(status === undefined ? reason : `${reason} ${status}`, cause === undefined ? {} : { cause });
    this.reason = reason;
    this.status = status;
    this.body = body;
  }
}
