/** Why something failed, for programs: a closed list. No code reads the sentence that says the same to people. */
export type FailureReason =
  /** A program cannot be started. */
  | "start"
  /** A process exited; `value` is its code. */
  | "exit"
  /** A process was ended by a signal; `value` is its name. */
  | "signal"
  /** A server answered with an HTTP status that is no success; `value` is the status. */
  | "status"
  /** The network failed; `value` is the code, such as `ECONNREFUSED`. */
  | "network"
  /** There was no answer in time. */
  | "time"
  /** A server did not finish its handshake in time. */
  | "handshake-time"
  /** A certificate is not trusted. */
  | "certificate"
  /** An address is private, and not allowed. */
  | "private-address"
  /** Plain http to another machine is not allowed. */
  | "plain-http"
  /** A document cannot be read where it lies. */
  | "document"
  /** It is not known where an API is; `value` is an address that may be meant. */
  | "no-address"
  /** A document is refused without credentials. */
  | "document-credentials"
  /** A person has to sign in. */
  | "sign-in"
  /** An authorization is missing. */
  | "authorization"
  /** The given credentials were refused, or none were given. */
  | "credentials"
  /** No credential is set for what an operation asks for. */
  | "no-credential"
  /** The scope of a token is not enough. */
  | "scope"
  /** The caller lacks scopes, which `scopes` names. */
  | "caller-scope";

/** Why something failed. */
export interface FailureCause {
  readonly reason: FailureReason;
  /** The status, the exit code, the signal, the code of the network, or the address. */
  readonly value?: string | number | undefined;
  /** The scopes that are missing. */
  readonly scopes?: readonly string[] | undefined;
  /** The part of the message that says what to do; who knows the reader better puts other words in its place. */
  readonly advice?: string | undefined;
}

/** How deep in the causes of an error is looked. */
const MOST_CAUSES = 5;
const CODE = /^[A-Z][A-Z0-9_]{2,40}$/;

/** Gives why something failed: what an error or one of its causes says of itself, else the first code of the network or the system. */
export function failureIn(thrown: unknown): FailureCause | undefined {
  let network: FailureCause | undefined;
  for (let at = thrown, depth = 0; at instanceof Error && depth < MOST_CAUSES; at = causeOf(at), depth++) {
    const { failure, code } = at as { readonly failure?: unknown; readonly code?: unknown };
    if (typeof failure === "object" && failure !== null && "reason" in failure)
      return failure as FailureCause;
    if (network === undefined && typeof code === "string" && CODE.test(code) && at.name !== "CallError")
      network = { reason: "network", value: code };
  }
  return network;
}

/** What several addresses of one host refused is in a list. */
function causeOf(error: Error): unknown {
  return error.cause ?? (error instanceof AggregateError ? error.errors[0] : undefined);
}
