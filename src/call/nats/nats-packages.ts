/** Says what to install where an optional package is not there. */
function explain(name: string): (cause: unknown) => never {
  return (cause) => {
    const isMissing = cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND";
    throw isMissing && cause.message.includes(`'${name}'`) ? new NatsMissingError(name, { cause }) : cause;
  };
}

/** Thrown where NATS is used and its client is not installed. */
class NatsMissingError extends Error {
  readonly code = "NATS_NOT_INSTALLED";

  constructor(name: string, options: ErrorOptions) {
    super(
      `NATS needs the package ${name}, which is not installed: npm install @nats-io/transport-node @nats-io/jetstream`,
      options,
    );
    this.name = "NatsMissingError";
  }
}

/** What of the client of NATS is used. */
export const { connect, createInbox, credsAuthenticator, errors, headers, nanos, nkeyAuthenticator } =
  await import("@nats-io/transport-node").catch(explain("@nats-io/transport-node"));

/** What of JetStream is used. */
export const {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  jetstream,
  jetstreamManager,
  PubHeaders,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
} = await import("@nats-io/jetstream").catch(explain("@nats-io/jetstream"));
