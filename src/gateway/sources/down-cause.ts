import { isCallError } from "../../core/errors/errors.ts";
import { failureIn } from "../../core/errors/failure.ts";

/** Why a source is down, for programs. */
export type DownKind =
  /** Only another config can mend it. */
  | "config"
  /** Its program cannot be started. */
  | "start"
  /** Its process ended. */
  | "exit"
  /** It answers with an HTTP status that is no success. */
  | "status"
  /** Its document cannot be read. */
  | "document"
  | "certificate"
  /** Its address is private, and not allowed. */
  | "private-address"
  | "time"
  | "credentials"
  /** There is no host of its name. */
  | "host"
  | "unreachable";

/** Why a source is down: a kind, and where it says more the HTTP status, the exit code or the signal. */
export interface DownCause {
  readonly kind: DownKind;
  readonly value?: string | number | undefined;
}

const TIMES: ReadonlySet<string> = new Set([
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
]);
const HOSTS: ReadonlySet<string> = new Set(["ENOTFOUND", "EAI_AGAIN"]);
const UNREACHABLE = /^(?:ECONN|EHOSTUNREACH$|ENETUNREACH$|EPIPE$|UND_ERR_SOCKET$|CONNECTION_REFUSED$)/;
const CERTIFICATES =
  /CERT|^(?:UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER|ERR_TLS_|ERR_SSL_|EPROTO$|HOSTNAME_MISMATCH$)/;

/** Gives why a source is down, as far as what it failed with says so itself; no sentence is read. */
export function toDownCause(thrown: unknown): DownCause | undefined {
  const found = failureIn(thrown);
  switch (found?.reason) {
    case "start":
    case "status":
    case "document":
    case "certificate":
    case "private-address":
    case "time":
      return { kind: found.reason, value: found.value };
    case "exit":
    case "signal":
      return { kind: "exit", value: found.value };
    case "handshake-time":
      return { kind: "time" };
    case "plain-http":
      return { kind: "config" };
    case "document-credentials":
      return { kind: "credentials", value: found.value };
    case "credentials":
    case "sign-in":
    case "authorization":
    case "no-credential":
    case "scope":
      return { kind: "credentials" };
    case "no-address":
    case "network":
    case "caller-scope":
    case undefined:
      return ofNetwork(String(found?.value ?? "")) ?? ofCode(thrown);
  }
}

function ofNetwork(code: string): DownCause | undefined {
  if (TIMES.has(code)) return { kind: "time" };
  if (HOSTS.has(code)) return { kind: "host" };
  if (CERTIFICATES.test(code)) return { kind: "certificate" };
  return UNREACHABLE.test(code) ? { kind: "unreachable" } : undefined;
}

function ofCode(thrown: unknown): DownCause | undefined {
  if (!isCallError(thrown)) return undefined;
  switch (thrown.code) {
    case "UNAUTHENTICATED":
    case "ACCESS_DENIED":
      return { kind: "credentials" };
    case "TIMEOUT":
      return { kind: "time" };
    case "UNAVAILABLE":
      return { kind: "unreachable" };
    default:
      return undefined;
  }
}

/** Says why a source is down to those who call it, by its kind. */
const CAUSES: Readonly<Record<DownKind, string>> = {
  config: "it cannot work as it is configured.",
  start: "its program cannot be started.",
  exit: "its process ended.",
  status: "it answered with an HTTP status that is no success.",
  document: "its document cannot be read.",
  certificate: "its certificate is not trusted.",
  "private-address": "its address is private, and not allowed.",
  time: "it did not answer in time.",
  credentials: "it refused the gateway's credentials.",
  host: "it cannot be reached.",
  unreachable: "it cannot be reached.",
};

/**
 * Says why a source is down to those who call it: one of a few sentences of our own. What a process wrote before it ended, what a server
 * answered, and what stands in the config are for the operator of the gateway.
 */
export function toCause(why: DownCause | undefined): string {
  if (why === undefined) return "it cannot be used.";
  const { kind, value } = why;
  if (kind === "exit" && typeof value === "number") return `its process exited with code ${value}.`;
  if (kind === "exit" && typeof value === "string") return `its process was ended by ${value}.`;
  if ((kind === "status" || kind === "credentials") && typeof value === "number")
    return `it answered with HTTP status ${value}.`;
  return CAUSES[kind];
}
