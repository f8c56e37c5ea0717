import type { CallHandlerOptions } from "../../call/call-handler.ts";
import type { CredentialSource } from "../../call/call-options.ts";
import type { NatsBus } from "../../call/nats/nats-bus.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { BusConfig } from "../config/gateway-config.ts";
import { describeAddress } from "./shown-target.ts";
import { unlessAborted } from "./unless-aborted.ts";

/** Milliseconds that one attempt to reach a broker may take. */
const CONNECT_MS = 5_000;

/** Who vouches for identities that were signed with `bus.secret`. */
const BUS_ISSUER = "waybill";

/** The addresses of a bus, without secrets in them. */
export function describeBus({ nats }: BusConfig): string {
  return [nats].flat().map(describeAddress).join(", ");
}

/** Connects to the broker of a config, until the signal; rejects with why that cannot be, in the words of a config. */
export async function connectBus(bus: BusConfig, signal: AbortSignal): Promise<NatsBus> {
  const { connectNatsBus } = await import("../../call/nats/nats-bus.ts");
  signal.throwIfAborted();
  const { nats, user, password, token } = bus;
  const connecting = connectNatsBus({
    servers: [nats].flat() as string[],
    timeout: CONNECT_MS,
    ...(user !== undefined && { user }),
    ...(password !== undefined && { pass: password }),
    ...(token !== undefined && { token }),
  }).catch((cause: unknown) => {
    throw new Error(`${describeBus(bus)} cannot be reached: ${describeFailure(cause)}.`, { cause });
  });
  return await unlessAborted(connecting, signal, (late) => late.close());
}

function describeFailure(cause: unknown): string {
  const said = cause instanceof Error ? cause.message : String(cause);
  if (/refused/i.test(said)) return "nothing listens there; check that the broker runs, and its address";
  if (/authorization|authentication/i.test(said))
    return "it refused the credentials; set user and password, or token";
  if (/timeout/i.test(said)) return `it did not answer within ${CONNECT_MS / 1_000} s`;
  return said.replace(/\.$/, "");
}

/** What signs who is asking; without a secret nobody's word is taken on, and nobody is made anonymous by the way. */
export async function createBusSigner({ secret }: BusConfig): Promise<CredentialSource> {
  if (secret === undefined) return refuseUnproven;
  const { createTokenSigner } = await import("../../call/credentials/token-signer.ts");
  return createTokenSigner({ key: Buffer.from(secret), issuer: BUS_ISSUER });
}

/** What reads who is asking; without a secret everybody on the bus is anonymous. */
export async function createBusVerifier({
  secret,
}: BusConfig): Promise<Pick<CallHandlerOptions, "authenticate">> {
  if (secret === undefined) return {};
  const { createTokenVerifier } = await import("../../call/credentials/token-verifier.ts");
  return { authenticate: createTokenVerifier({ keys: Buffer.from(secret), issuer: BUS_ISSUER }) };
}

const refuseUnproven: CredentialSource = (_, operationId) => {
  const message = `The call of "${operationId}" is somebody's, and the bus is not told whose: set bus.secret, here and in whoever serves it.`;
  throw new CallError("UNAUTHENTICATED", message, { stack: false });
};
