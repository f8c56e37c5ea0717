/** One message as a transport delivers it. */
export interface TransportMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Where an answer is expected. */
  readonly replyTo?: string | undefined;
  /** Not a message at all: the transport says that nobody took the one sent with this subject as its reply. */
  readonly isUndelivered?: boolean | undefined;
}

/** Listening to a subject. */
export interface TransportSubscription {
  /** Hears nothing more, at once. */
  stop(): void;
  /** Takes no more messages; resolves when those on their way have been heard. */
  drain(): Promise<void>;
}

/**
 * Carries bytes between subjects, which are names in parts divided by dots; when subscribing, a part may be `*`. Everybody who
 * subscribes gets a copy of a message, except that of those in a queue one does. Messages from one sender to one receiver keep their
 * order.
 */
export interface Transport {
  /** Bytes one message may hold. */
  readonly maxMessageBytes: number;
  /** Whether messages can be sent right now. */
  readonly isConnected: boolean;
  /** A subject that only this side listens to, with one part to be added. */
  readonly inbox: string;
  publish(subject: string, data: Uint8Array, replyTo?: string): void;
  subscribe(
    subject: string,
    listener: (message: TransportMessage) => void,
    queue?: string,
  ): TransportSubscription;
  /** Resolves when everything published or subscribed so far is known to whoever carries it. */
  flush(): Promise<void>;
  /** Hears when messages can be sent again after they could not; returns how to stop listening. */
  onReconnect(listener: () => void): () => void;
  /** Hears when the connection is gone for good; returns how to stop listening. */
  onClosed(listener: () => void): () => void;
  close(): Promise<void>;
}
