import type { FailureCause } from "../../core/errors/failure.ts";
import { toPlainLine } from "../client/plain-line.ts";
import type { SentRequest } from "../protocol/peer.ts";

/** Why a channel is no more: a sentence for people, and what helps to find out. */
export interface Loss {
  /** In words of ours. */
  readonly reason: string;
  /** The same for programs. */
  readonly failure?: FailureCause | undefined;
  /** What the server said, as it is passed on. */
  readonly said?: string | undefined;
  readonly cause?: unknown;
  /** What the process said last, on one short line; for the program that started it, and for no wire. */
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
  /** Hears each line on standard error, where a process is the server. */
  onStderr?(line: string): void;
}

/** What passes over a channel, as it passes: it may hold secrets. */
export type WireEvent =
  | { readonly type: "sent"; readonly text: string; readonly request: SentRequest | undefined }
  | { readonly type: "received"; readonly message: unknown }
  | { readonly type: "stderr"; readonly line: string };

/** Hears what passes; `mask` takes what is secret between the two ends out of a text, as far as it is known by then. */
export interface OnWire extends WireWatch {
  (event: WireEvent, mask: (text: string) => string): void;
}

/** Whether anybody hears messages at the moment; without it somebody does, and lines of standard error are told in any case. */
export interface WireWatch {
  readonly watch?: { readonly isOn: boolean } | undefined;
}

/** One way to a server: messages to it, and messages from it. */
export interface Channel {
  /** Whether all messages share one stream; otherwise each request has an exchange of its own, which ends with its signal. */
  readonly isShared: boolean;
  /** Whether the server gave the connection a session id. */
  readonly hasSession: boolean;
  start(listener: ChannelListener): Promise<void>;
  /** Sends a message; rejects where it cannot be sent, and for a request also where no answer will come. */
  send(text: string, request?: SentRequest): Promise<void>;
  /** Says which revision is spoken from now on. */
  agree(revision: string): void;
  /** Opens the stream for what the server tells unasked, where it is one of its own. */
  listen(): void;
  loss(): Loss;
  /** Says goodbye where the other side wants to know, then closes. */
  close(): Promise<void>;
}

/** Makes a channel that also tells what passes over it; `tell` must not throw. */
export function watchedChannel(channel: Channel, tell: WireWatch & ((event: WireEvent) => void)): Channel {
  const { watch = { isOn: true } } = tell;
  return {
    get isShared() {
      return channel.isShared;
    },
    get hasSession() {
      return channel.hasSession;
    },
    start: (listener) =>
      channel.start({
        onMessage: (message) => {
          if (watch.isOn) tell({ type: "received", message });
          listener.onMessage(message);
        },
        onOddity: (message) => listener.onOddity(message),
        onClose: () => listener.onClose(),
        onStale: () => listener.onStale(),
        onStderr: (line) => tell({ type: "stderr", line }),
      }),
    send: (text, request) => {
      if (watch.isOn) tell({ type: "sent", text, request });
      return channel.send(text, request);
    },
    agree: (revision) => channel.agree(revision),
    listen: () => channel.listen(),
    loss: () => channel.loss(),
    close: () => channel.close(),
  };
}

/** What went wrong on a channel, for programs. */
type ChannelFault =
  /** An HTTP status that is no success. */
  | "status"
  /** The scope of the token is not enough. */
  | "scope"
  /** A person has to sign in, and nothing here can send one to do so. */
  | "sign-in"
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

/** A transport as MCP libraries shape it: messages in and out, as objects. */
export interface McpTransport {
  start(): Promise<void>;
  send(message: never, options?: never): Promise<void>;
  close(): Promise<void>;
  onmessage?: ((message: never) => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onclose?: (() => void) | undefined;
  /** Where there is a session, its id. */
  readonly sessionId?: string | undefined;
  /** Whether each request has a stream of its own, which ends with the `requestSignal` that it is sent with. */
  readonly hasPerRequestStream?: boolean | undefined;
  /** Hears which revision was agreed on. */
  setProtocolVersion?: ((version: string) => void) | undefined;
}

/** Makes a channel of a transport that somebody else made; each is good for one connection. */
export function toTransportChannel(transport: McpTransport): Channel {
  const isShared = transport.hasPerRequestStream !== true;
  return {
    isShared,
    get hasSession() {
      return transport.sessionId !== undefined;
    },
    start: (listener) => {
      transport.onmessage = (message: unknown) => listener.onMessage(message);
      transport.onerror = (error) => listener.onOddity(toPlainLine(error.message, 300));
      transport.onclose = () => listener.onClose();
      return transport.start();
    },
    send: async (text, request) => {
      const message = JSON.parse(text) as never;
      if (isShared || request === undefined) await transport.send(message);
      else await sendOnItsOwn(transport, message, request);
    },
    agree: (revision) => transport.setProtocolVersion?.(revision),
    listen: () => {},
    loss: () => ({ reason: "the connection was closed" }),
    close: () => transport.close(),
  };
}

/** Settles when the stream of the request ends, or when it could not be sent. */
function sendOnItsOwn(transport: McpTransport, message: never, { signal }: SentRequest): Promise<void> {
  return new Promise((_, reject) => {
    const onRequestStreamEnd = (): void => reject(new ChannelError("stream-ended"));
    const options = { requestSignal: signal, onRequestStreamEnd };
    transport.send(message, options as never).catch(reject);
  });
}
