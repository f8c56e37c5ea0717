import { cleanText } from "../../core/text/clean-text.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { decodeBase64 } from "../../core/wire/base64.ts";
import { matchesPattern } from "../glob.ts";

/** What a guard looks for in texts by itself. */
export const GUARD_KINDS = ["credentials", "cards", "hidden", "links"] as const;

/** One of the kinds of findings that a guard looks for by itself. */
export type GuardKind = (typeof GUARD_KINDS)[number];

/** One place in a text that a rule found. */
export interface TextMatch {
  readonly kind: GuardKind;
  /** The rule that found it, such as `github-token`. */
  readonly rule: string;
  readonly at: number;
  readonly end: number;
}

/** What is looked for in a text. */
export interface TextSearch {
  readonly kinds: ReadonlySet<GuardKind>;
  /** Patterns of hosts that links may lead to. */
  readonly linkHosts: readonly string[];
}

/** Finds what rules of these kinds say about a text, in the order of its characters within each kind; in time linear in its length. */
export function findInText(text: string, { kinds, linkHosts }: TextSearch): readonly TextMatch[] {
  const plain = withoutEscapes(text);
  return [
    ...(kinds.has("credentials") ? credentialsIn(plain) : []),
    ...(kinds.has("cards") ? cardsIn(plain) : []),
    ...(kinds.has("hidden") ? hiddenIn(text) : []),
    ...(kinds.has("links") ? linksIn(plain, linkHosts) : []),
  ];
}

/**
 * The text, as long as it was, with spaces in place of the escapes that a text in JSON has for white space and other characters, and plain
 * characters in place of the digits, spaces and hyphens that other scripts and typography have.
 */
function withoutEscapes(text: string): string {
  if (!/[\\\u00a0\u0660-\u0669\u06f0-\u06f9\u2007-\u2013\u202f\uff10-\uff19]/.test(text)) return text;
  return text
    .replaceAll(/\\(?:[bfnrt]|u[\da-f]{4})/gi, (found) => " ".repeat(found.length))
    .replaceAll(/[\u00a0\u2007-\u200a\u202f]/g, " ")
    .replaceAll(/[\u2010-\u2013]/g, "-")
    .replaceAll(/[\u0660-\u0669\u06f0-\u06f9\uff10-\uff19]/g, (digit) => String(digit.charCodeAt(0) & 0xf));
}

interface CredentialRule {
  readonly rule: string;
  /** Some text that stands in every match: where it is missing, the pattern is not tried. */
  readonly hints: readonly string[];
  /** Has a bound for every repetition; where it has a group, the group is the credential. */
  readonly pattern: RegExp;
  readonly isReal?: (found: string) => boolean;
}

/** Formats that their issuers document and that nothing else looks like. */
const CREDENTIALS: readonly CredentialRule[] = [
  {
    rule: "private-key",
    hints: ["PRIVATE KEY"],
    pattern:
      /-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){16,20000}(?:-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?/g,
  },
  {
    rule: "aws-access-key",
    hints: ["AKIA", "ASIA"],
    pattern: /(?<![A-Za-z0-9])A[KS]IA[A-Z2-7]{16}(?![A-Za-z0-9])/g,
    isReal: (found) => !found.endsWith("EXAMPLE"),
  },
  {
    rule: "github-token",
    hints: ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
    pattern:
      /(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})(?![A-Za-z0-9])/g,
    isReal: isMixed,
  },
  {
    rule: "gitlab-token",
    hints: ["glpat-"],
    pattern: /(?<![A-Za-z0-9])glpat-[\w-]{20,64}/g,
    isReal: isMixed,
  },
  {
    rule: "npm-token",
    hints: ["npm_"],
    pattern: /(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])/g,
    isReal: isMixed,
  },
  { rule: "pypi-token", hints: ["pypi-"], pattern: /(?<![A-Za-z0-9])pypi-AgE[\w-]{50,500}/g },
  {
    rule: "slack-token",
    hints: ["xox"],
    pattern: /(?<![A-Za-z0-9])xox[abeoprs]-[A-Za-z0-9-]{16,250}/g,
    isReal: isMixed,
  },
  {
    rule: "slack-webhook",
    hints: ["hooks.slack.com/services/"],
    pattern: /hooks\.slack\.com\/services\/T[A-Z0-9]{6,16}\/B[A-Z0-9]{6,16}\/[A-Za-z0-9]{16,64}/g,
  },
  {
    rule: "stripe-key",
    hints: ["k_live_", "k_test_"],
    pattern: /(?<![A-Za-z0-9])[rs]k_(?:live|test)_[A-Za-z0-9]{16,250}/g,
    isReal: isMixed,
  },
  { rule: "google-api-key", hints: ["AIza"], pattern: /(?<![\w-])AIza[\w-]{35}(?![\w-])/g, isReal: isMixed },
  { rule: "google-token", hints: ["ya29."], pattern: /(?<![\w-])ya29\.[\w-]{20,1000}/g, isReal: isMixed },
  {
    rule: "model-provider-key",
    hints: ["sk-"],
    pattern: /(?<![\w-])sk-(?:ant-[a-z0-9]{1,10}-|proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,250}/g,
    isReal: isMixed,
  },
  {
    rule: "hugging-face-token",
    hints: ["hf_"],
    pattern: /(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{34}(?![A-Za-z0-9])/g,
    isReal: isMixedCase,
  },
  { rule: "sendgrid-key", hints: ["SG."], pattern: /(?<![\w-])SG\.[\w-]{22}\.[\w-]{43}(?![\w-])/g },
  {
    rule: "azure-storage-key",
    hints: ["AccountKey="],
    pattern: /AccountKey=([A-Za-z0-9+/]{86}==)/g,
  },
  {
    rule: "jwt",
    hints: ["eyJ"],
    pattern: /(?<![\w-])eyJ[\w-]{8,2000}\.eyJ[\w-]{4,8000}\.[\w-]{16,2000}/g,
    isReal: isJwt,
  },
  {
    rule: "authorization-header",
    hints: ["bearer ", "basic ", "Bearer ", "Basic "],
    pattern:
      /authorization["'\\]{0,2}\s{0,4}[:=]\s{0,4}["'\\]{0,2}(?:bearer|basic)\s{1,4}([\w.+/=~-]{16,4000})/gi,
    isReal: isNoPlaceholder,
  },
  {
    rule: "url-password",
    hints: ["://"],
    pattern:
      /(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}:\/\/[^\s/:@?#"'<>]{0,100}:([^\s/@"'<>]{3,200})@[^\s/@"'<>]/g,
    isReal: isNoPlaceholder,
  },
  {
    rule: "assigned-secret",
    hints: ["=", ":"],
    pattern:
      /(?<![A-Za-z])(?:passw(?:or)?d|secret|token|(?:api|access|secret|private)[_-]?key|client[_-]?secret|(?:access|auth|refresh)[_-]?token)["'\\]{0,2}\s{0,4}[:=]\s{0,4}["'\\]{0,2}([^\s"'`,;<>(){}[\]\\]{12,200})/gi,
    isReal: isRandom,
  },
];

function* credentialsIn(text: string): Generator<TextMatch> {
  for (const { rule, hints, pattern, isReal } of CREDENTIALS) {
    if (!hints.some((hint) => text.includes(hint))) continue;
    for (const match of text.matchAll(pattern)) {
      const [whole, group] = match;
      const found = group ?? whole;
      if (isReal?.(found) === false) continue;
      const at = match.index + (group === undefined ? 0 : whole.indexOf(group));
      yield { kind: "credentials", rule, at, end: at + found.length };
    }
  }
}

/** Letters and digits both: words that begin like a token have none of the latter. */
function isMixed(found: string): boolean {
  return /\d/.test(found.slice(4)) && /[A-Za-z]/.test(found.slice(4)) && isNoPlaceholder(found.slice(4));
}

function isMixedCase(found: string): boolean {
  return /[A-Z]/.test(found) && isNoPlaceholder(found.slice(3));
}

/** Documentation writes what is to be replaced as one letter over and over, as stars, or says what belongs there. */
function isNoPlaceholder(found: string): boolean {
  if (/^(?:\$|%|\*|\{|<)|\*{3}|\.{3}|x{6}|your|example|redacted|placeholder|changeme/i.test(found))
    return false;
  return new Set(found).size >= Math.min(6, found.length / 2);
}

/** A value after a name such as `password=` is a secret where it looks made at random: three kinds of characters, many different ones. */
export function isRandom(found: string): boolean {
  if (!isNoPlaceholder(found)) return false;
  const kinds = [/[a-z]/, /[A-Z]/, /\d/, /[^A-Za-z0-9]/].filter((kind) => kind.test(found)).length;
  const isWords = /^[A-Za-z]+(?:[._/-][A-Za-z]+)*$/.test(found);
  return kinds >= 2 && /\d/.test(found) && !isWords && new Set(found).size >= 8;
}

function isJwt(found: string): boolean {
  try {
    const header = found.slice(0, found.indexOf(".")).replaceAll("-", "+").replaceAll("_", "/");
    const bytes = decodeBase64(header.padEnd(Math.ceil(header.length / 4) * 4, "="));
    if (bytes === undefined) return false;
    return Object.hasOwn(JSON.parse(new TextDecoder().decode(bytes)) as object, "alg");
  } catch {
    return false;
  }
}

/** How many digits the numbers of each issuer have, by how they begin; ISO/IEC 7812. */
const ISSUERS: readonly (readonly [begins: RegExp, lengths: readonly number[]])[] = [
  [/^4/, [13, 16, 19]],
  [/^(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, [16]],
  [/^3[47]/, [15]],
  [/^(?:6011|64[4-9]|65)/, [16, 19]],
  [/^3(?:0[0-5]|[689])/, [14]],
  [/^35(?:2[89]|[3-8])/, [16, 19]],
  [/^62/, [16, 17, 18, 19]],
];

/** How numbers are written in groups: fours, or as on American Express and Diners cards. */
const GROUPED = /^(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{4}([ -])\d{6}\2\d{4,5})$/;

function* cardsIn(text: string): Generator<TextMatch> {
  for (const match of text.matchAll(/(?<![\w.$-])\d(?:[ -]?\d){12,18}(?![\w-]|\.\d)/g)) {
    const [found] = match;
    if (/\D/.test(found) && !GROUPED.test(found)) continue;
    if (isCardNumber(found.replaceAll(/\D/g, ""))) {
      yield { kind: "cards", rule: "payment-card", at: match.index, end: match.index + found.length };
    }
  }
}

/** Tells whether digits are the number of a payment card: an issuer's beginning and length, and the check digit of Luhn. */
export function isCardNumber(digits: string): boolean {
  const isIssued = ISSUERS.some(
    ([begins, lengths]) => lengths.includes(digits.length) && begins.test(digits),
  );
  return isIssued && new Set(digits).size > 1 && luhnSum(digits) % 10 === 0;
}

function luhnSum(digits: string): number {
  let sum = 0;
  for (let at = digits.length - 1, isDoubled = false; at >= 0; at -= 1, isDoubled = !isDoubled) {
    const digit = digits.charCodeAt(at) - 48;
    sum += isDoubled ? (digit > 4 ? digit * 2 - 9 : digit * 2) : digit;
  }
  return sum;
}

/** Hidden characters of one kind are one match over the whole text: they are taken out together. */
function* hiddenIn(text: string): Generator<TextMatch> {
  for (const { kind } of cleanText(text).findings) {
    yield { kind: "hidden", rule: `${kind}-characters`, at: 0, end: text.length };
  }
}

/** What browsers leave out of addresses, and what stands for the rest of a character reference. */
const GAP = String.raw`[\0\t\r\n]{0,20}`;
const HOST = String.raw`\0{0,20}(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2}`;
const SCHEME = ["http", "https", "ws", "wss", "ftp"].map((name) => [...name].join(GAP)).join("|");
/**
 * Browsers take backslashes for slashes, one or many for two, and where a host follows, none. Whatever stands before an `@` is no host, so it
 * is read to there even where a link in a sentence would have ended.
 */
const LINK = new RegExp(
  String.raw`(?:(?<![A-Za-z0-9+])(?:${SCHEME})${GAP}\\{0,4}:(?:(?:${GAP}[\\/]){1,8}${GAP}|(?=${HOST}))` +
    String.raw`|(?<=^|[("'\s=<])/\0{0,20}/|(?<=[("'=<])[\\/]\0{0,20}[\\/](?=${HOST}))` +
    String.raw`(?:[^\s/?#\\"<>]{0,20000}@)?[^\s<>"'${"`"}\\)\]}|]{1,2000}`,
  "gi",
);
/** What ends a link in a sentence before its path goes on in a name of a host: to browsers, `good.example).evil.example` is one. */
const REST_OF_HOST = /[\t\r\n'`)}\\\0][^\s"<>/?#]{0,253}?\.\w[^\s"<>]{0,2000}/y;
const PAIRS: Readonly<Record<string, string>> = { "'": "'", "`": "`", "(": ")", "{": "}" };

function* linksIn(text: string, hosts: readonly string[]): Generator<TextMatch> {
  const readings = [...new Set([text, withoutReferences(text)])];
  const found = new Map(readings.flatMap((reading) => [...linksOf(reading, hosts)]));
  for (const [at, end] of found) yield { kind: "links", rule: "link-to-other-host", at, end };
}

function* linksOf(text: string, hosts: readonly string[]): Generator<readonly [at: number, end: number]> {
  if (!/[\\/]|[sp][\0\t\r\n]{0,20}:\w/i.test(text)) return;
  const isAllowed = (link: string): boolean | undefined => {
    const url = parseUrl(link.replaceAll(/\0|\\(?=[:)])/g, ""), "https://relative.invalid");
    return url && hosts.some((pattern) => matchesPattern(pattern.toLowerCase(), url.hostname));
  };
  for (const { 0: link, index: at } of text.matchAll(LINK)) {
    const end = at + link.length;
    const [before = "", after = ""] = [text[at - 1], text[end]];
    REST_OF_HOST.lastIndex = end;
    const isOver = PAIRS[before] === after || (/\s/.test(after) && !/["']/.test(before));
    const isHost = /^[^\\/]*[\\/\0\t\r\n]*[^\\/?#]*$/.test(link);
    const rest = isHost && !isOver ? REST_OF_HOST.exec(text)?.[0] : undefined;
    if (rest !== undefined && isAllowed(link + rest) === false) yield [at, end + rest.length];
    else if (isAllowed(link) !== true) yield [at, end];
  }
}

const NAMES = ["colon", "sol", "bsol", "num", "quest", "commat", "Tab", "NewLine"];
const REFERENCE = new RegExp(`&(?:#0{0,9}(\\d{1,7})|#x0{0,9}([\\da-f]{1,6})|(${NAMES.join("|")}));`, "gi");

/** The text as Markdown and HTML read it, as long as it was: the rest of each character reference is filled up. */
function withoutReferences(text: string): string {
  return text.replaceAll(REFERENCE, (whole: string, decimal?: string, hex?: string, name?: string) => {
    const code = Number.parseInt(decimal ?? hex ?? "", decimal === undefined ? 16 : 10);
    const named = ":/\\#?@"[NAMES.indexOf(name ?? "")] ?? "";
    return (name === undefined ? String.fromCharCode(code) : named).padEnd(whole.length, "\0");
  });
}
