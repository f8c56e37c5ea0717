import { changedError, isCallError } from "../../core/errors/errors.ts";
import type { SecretMask } from "../../core/secrets/secret-mask.ts";
import { cleanText } from "../../core/text/clean-text.ts";

/** Characters of a reason; a longer one is cut. */
const MOST_CHARACTERS = 300;
/** Characters that are looked at. */
const MOST_READ = 10_000;

/** Makes one line of any text that is fit to be shown: no secret, nothing a terminal acts on, at most 300 characters. */
export function toShownLine(text: string, secrets: SecretMask, most: number = MOST_CHARACTERS): string {
  // Masked before and after: what is taken out of a text could hide a secret, or make one.
  const masked = secrets.mask(text).slice(0, MOST_READ);
  const line = secrets.mask(cleanText(masked).text).replace(/\s+/g, " ").trim();
  if (line.length <= most) return line;
  return `${line.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** What is said in terms of the program interface, and what is said instead. */
export type Wording = readonly (readonly [said: RegExp, better: string])[];

/** In the words of a config. */
const IN_CONFIG_WORDS: Wording = [
  [/give it a bearer or auth, or check the headers/, "set bearer, oauth or headers for it"],
  [/it wants an authorization that is missing/, "it wants an authorization; set bearer, oauth or headers"],
  [/use https, or set allowHttp/, "use https, or set allowHttp: true"],
  [
    /did not finish the handshake in time/,
    "did not finish the handshake in time; a slow one may be given more with connectTimeoutMs",
  ],
];

const CERTIFICATE =
  /\((?:[A-Z_]*CERT[A-Z_]*|UNABLE_TO_VERIFY_LEAF_SIGNATURE|ERR_TLS_[A-Z_]+|ERR_SSL_[A-Z_]+|EPROTO)\)/;

/** Says why something failed: a sentence fit to be shown. */
export function toReason(thrown: unknown, secrets: SecretMask, wording: Wording = []): string {
  let text = reword(reword(messageOf(thrown), wording), IN_CONFIG_WORDS);
  if (CERTIFICATE.test(text)) {
    text = `${text.replace(/\.$/, "")}: its certificate is not trusted; name its authority in NODE_EXTRA_CA_CERTS`;
  }
  const line = toShownLine(text, secrets);
  return /[.!?…]$/.test(line) ? line : toShownLine(`${line}.`, secrets);
}

/** The error in better words, where there are any for it. */
export function rewordError(thrown: unknown, wording: Wording): unknown {
  if (!isCallError(thrown)) return thrown;
  const message = reword(thrown.message, wording);
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

function reword(text: string, wording: Wording): string {
  return wording.reduce((worded, [said, better]) => worded.replace(said, () => better), text);
}

function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.message !== "") return thrown.message;
  // What several addresses of one host refused has no message of its own.
  const [first] = thrown instanceof AggregateError ? thrown.errors : [thrown.cause];
  return first instanceof Error && first.message !== "" ? first.message : thrown.name;
}
