import type { NatsConnection, NodeConnectionOptions, TlsOptions } from "@nats-io/transport-node";
import type { NatsBus } from "../../call/nats/nats-bus.ts";
import { CallError } from "../../core/errors/errors.ts";
import { type FailureCause, failureIn } from "../../core/errors/failure.ts";
import type { BusConfig } from "../config/gateway-config.ts";
import { toDownCause } from "./down-cause.ts";
import { describeAddress } from "./shown-text.ts";
import { unlessAborted } from "./source.ts";

/** Milliseconds that one attempt to reach a broker may take. */
const CONNECT_MS = 5_000;

/** The addresses of a bus, without secrets in them. */
export function describeBus({ nats }: BusConfig): string {
  return [nats].flat().map(describeAddress).join(", ");
}

/** Connects to the broker of a config, until the signal; rejects with why that cannot be, in the words of a config. */
export async function connectBus(bus: BusConfig, signal: AbortSignal): Promise<NatsBus> {
  const { connectNatsBus } = await import("../../call/nats/nats-bus.ts");
  signal.throwIfAborted();
  return explained(bus, signal, connectNatsBus(await toConnectionOptions(bus)));
}

/** The same without a bus on it. */
export async function connectBroker(bus: BusConfig, signal: AbortSignal): Promise<NatsConnection> {
  const { connect } = await import("../../call/nats/nats-packages.ts");
  signal.throwIfAborted();
  const options = { maxReconnectAttempts: -1, ...(await toConnectionOptions(bus)) };
  return explained(bus, signal, connect(options));
}

async function explained<T extends { close(): Promise<unknown> }>(
  bus: BusConfig,
  signal: AbortSignal,
  connecting: Promise<T>,
): Promise<T> {
  const told = connecting.catch((cause: unknown) => {
    const failure = failureOf(cause);
    const message = `${describeBus(bus)} cannot be reached: ${describeFailure(cause, failure)}.`;
    throw new CallError("UNAVAILABLE", message, { cause, failure });
  });
  return await unlessAborted(told, signal, async (late) => void (await late.close()));
}

async function toConnectionOptions(bus: BusConfig): Promise<NodeConnectionOptions> {
  const { nats, user, password, token, credentials, nkey, inboxPrefix, tls } = bus;
  const { credsAuthenticator, nkeyAuthenticator } = await import("../../call/nats/nats-packages.ts");
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  const proof =
    credentials !== undefined
      ? // Its last line must end, which references to files leave out.
        credsAuthenticator(bytes(`${credentials}\n`))
      : nkey !== undefined && nkeyAuthenticator(bytes(nkey.trim()));
  return {
    servers: [nats].flat() as string[],
    timeout: CONNECT_MS,
    ...(user !== undefined && { user }),
    ...(password !== undefined && { pass: password }),
    ...(token !== undefined && { token }),
    ...(proof !== false && { authenticator: proof }),
    ...(inboxPrefix !== undefined && { inboxPrefix }),
    ...(tls !== undefined && { tls: tls as TlsOptions }),
  };
}

/** What the client of NATS calls its errors, and what they mean. */
const NAMES: Readonly<Record<string, FailureCause>> = {
  AuthorizationError: { reason: "credentials" },
  TimeoutError: { reason: "time" },
};

function failureOf(cause: unknown): FailureCause | undefined {
  const name = cause instanceof Error ? cause.name : "";
  if (Object.hasOwn(NAMES, name)) return NAMES[name];
  const found = failureIn(cause);
  return toDownCause(cause)?.kind === "certificate" ? { reason: "certificate" } : found;
}

function describeFailure(cause: unknown, failure: FailureCause | undefined): string {
  switch (failure?.reason) {
    case "network":
      return "nothing listens there; check that the broker runs, and its address";
    case "credentials":
      return "it refused the credentials; set user and password, token, credentials or nkey";
    case "certificate":
      return "its certificate is not trusted; set tls.ca to the certificate of who issued it";
    case "time":
      return `it did not answer within ${CONNECT_MS / 1_000} s`;
    default:
      return (cause instanceof Error ? cause.message : String(cause)).replace(/\.$/, "");
  }
}
