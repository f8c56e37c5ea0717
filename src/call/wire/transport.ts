/** One message as a transport delivers it. */
export interface TransportMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Where an answer is expected. */
  readonly replyTo?: string | undefined;
  /**
   * Not a message at all: the transport itself says, on the subject a message named as its `replyTo`, that nobody took that message.
   * Calls that nobody answers fail at once by it; a transport that cannot tell lets them run into their deadline.
   */
  readonly isUndelivered?: boolean | undefined;
}

/** Listening to a subject. */
export interface TransportSubscription {
  /** Why whoever carries the messages does not let this side listen; known after a flush. */
  readonly refusal?: Error | undefined;
  /** Hears nothing more, at once. */
  stop(): void;
  /** Takes no more messages; resolves when those on their way have been heard. */
  drain(): Promise<void>;
}

/**
 * Carries bytes between subjects, which are names in parts divided by dots; when subscribing, a part may be `*`. Everybody who
 * subscribes gets a copy of a message, except that of those in a queue one does. Messages from one sender to one receiver keep their
 * order, and none arrives twice.
 *
 * A transport that loses its connection makes it again by itself, and its subscriptions with it.
 */
export interface Transport {
  /** Bytes one message may hold. */
  readonly maxMessageBytes: number;
  /** Whether messages can be sent right now. */
  readonly isConnected: boolean;
  /**
   * A subject that only this side listens to, with one part to be added. Its own last part is unique to this connection: others know
   * this side by it. (`{inbox}-services.*` is listened to as well.)
   */
  readonly inbox: string;
  /** Throws a `RangeError` for more than `maxMessageBytes`, and nothing else; what is sent without a connection is kept for a while or lost. */
  publish(subject: string, data: Uint8Array, replyTo?: string): void;
  subscribe(
    subject: string,
    listener: (message: TransportMessage) => void,
    queue?: string,
  ): TransportSubscription;
  /** Resolves when everything published or subscribed so far is known to whoever carries it. */
  flush(): Promise<void>;
  /** Hears when messages cannot be sent any more; returns how to stop listening. */
  onDisconnect(listener: () => void): () => void;
  /** Hears when they can again; returns how to stop listening. */
  onReconnect(listener: () => void): () => void;
  /** Hears when the connection is gone for good; returns how to stop listening. */
  onClosed(listener: () => void): () => void;
  /** Stops listening and sending, for good. */
  close(): Promise<void>;
}
