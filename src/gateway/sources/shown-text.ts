import { changedError, isCallError } from "../../core/errors/errors.ts";
import { type FailureCause, type FailureReason, failureIn } from "../../core/errors/failure.ts";
import type { SecretMask } from "../../core/secrets/secret-mask.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { shortText } from "../../core/text/truncate-text.ts";
import type { McpServerConfig } from "../config/gateway-config.ts";
import { toDownCause } from "./down-cause.ts";

/** Characters of a reason; a longer one is cut. */
const MOST_CHARACTERS = 300;
/** Characters that are looked at. */
const MOST_READ = 10_000;

/** Makes one line of any text that is fit to be shown: no secret, nothing a terminal acts on, at most 300 characters. */
export function toShownLine(text: string, secrets: SecretMask, most: number = MOST_CHARACTERS): string {
  // Masked before and after: what is taken out of a text could hide a secret, or make one.
  const masked = secrets.mask(text).slice(0, MOST_READ);
  const line = secrets.mask(cleanText(masked).text).replace(/\s+/g, " ").trim();
  return line.length <= most ? line : shortText(line, most - 1);
}

/** What to do about a failure in the words of a config, in the place of the advice that is in terms of the program interface. */
export type Wording = Readonly<Partial<Record<FailureReason, string>>>;

const IN_CONFIG_WORDS: Wording = {
  "sign-in":
    "it wants a person to log in (OAuth); set oauth to { login: true } without another credential, or bearer to a token",
  credentials: "set bearer, oauth or headers for it",
  authorization: "it wants an authorization; set bearer, oauth or headers",
  "plain-http": "use https, or set allowHttp: true",
  "handshake-time":
    "did not finish the handshake in time; a slow one may be given more with connectTimeoutMs",
};

/** Says why something failed: a sentence fit to be shown. */
export function toReason(thrown: unknown, secrets: SecretMask, wording: Wording = {}): string {
  let text = reword(messageOf(thrown), failureIn(thrown), { ...IN_CONFIG_WORDS, ...wording });
  if (toDownCause(thrown)?.kind === "certificate") {
    text = `${text.replace(/\.$/, "")}: its certificate is not trusted; name its authority in NODE_EXTRA_CA_CERTS`;
  }
  const line = toShownLine(text, secrets);
  return /[.!?…]$/.test(line) ? line : toShownLine(`${line}.`, secrets);
}

/** The error in better words, where there are any for it. */
export function rewordError(thrown: unknown, wording: Wording): unknown {
  if (!isCallError(thrown)) return thrown;
  const message = reword(thrown.message, thrown.failure, wording);
  return message === thrown.message ? thrown : changedError(thrown, { message });
}

/** The secrets of a config that stand in one of its entries, which are the credentials of that source. */
export function secretsIn(entry: unknown, { values }: SecretMask): readonly string[] {
  const texts = textsOf(entry);
  return [...values].filter((value) => texts.some((text) => text.includes(value)));
}

function textsOf(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

function reword(text: string, failure: FailureCause | undefined, wording: Wording): string {
  const { reason, advice } = failure ?? {};
  const better = reason && wording[reason];
  return advice === undefined || better === undefined ? text : text.replace(advice, () => better);
}

function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.message !== "") return thrown.message;
  // What several addresses of one host refused has no message of its own.
  const [first] = thrown instanceof AggregateError ? thrown.errors : [thrown.cause];
  return first instanceof Error && first.message !== "" ? first.message : thrown.name;
}

const SECRET_FLAG = /^--?[\w-]*(?:token|key|secret|passw|pwd|auth|credential|bearer)[\w-]*$/i;
const SECRET_ASSIGNMENT =
  /^(-{0,2}[\w-]*(?:token|key|secret|passw|pwd|auth|credential|bearer)[\w-]*[=:]).+$/is;
const CREDENTIALS_IN_URL = /(:\/\/)[^/\s@]+@/g;
/** Long, without spaces or dots, with letters and digits: more likely a key than a name. */
const OPAQUE = /^(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_+=-]{32,}$/;

/** Shows what a server is started or reached with: what looks like a secret is left out, known secrets are masked by others. */
export function describeServer({ command, args = [], url }: McpServerConfig): string {
  if (command !== undefined) return [command, ...withoutSecrets(args)].join(" ");
  return url === undefined ? "" : describeAddress(url);
}

/** Shows an address without user, password, query and fragment; a path as it is. */
export function describeAddress(address: string): string {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(address) || parseUrl(address) === undefined) return address;
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname === "/" ? "" : pathname}`;
}

function withoutSecrets(args: readonly string[]): string[] {
  return args.map((arg, at) => {
    const before = args[at - 1];
    if (before !== undefined && SECRET_FLAG.test(before) && !arg.startsWith("-")) return "***";
    if (OPAQUE.test(arg)) return "***";
    return arg.replace(SECRET_ASSIGNMENT, "$1***").replace(CREDENTIALS_IN_URL, "$1***@");
  });
}
