import { toPlainLine } from "../client/plain-line.ts";
import type { OutgoingRequest } from "../protocol/peer.ts";
import { type Channel, ChannelError } from "./channel.ts";

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
function sendOnItsOwn(transport: McpTransport, message: never, { signal }: OutgoingRequest): Promise<void> {
  return new Promise((_, reject) => {
    const onRequestStreamEnd = (): void => reject(new ChannelError("stream-ended"));
    const options = { requestSignal: signal, onRequestStreamEnd };
    transport.send(message, options as never).catch(reject);
  });
}
