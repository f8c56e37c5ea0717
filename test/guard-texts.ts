import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./run-node.ts";

/** A text with what a person would say is in it. */
export interface LabelledText {
  readonly label: "credentials" | "cards" | "hidden" | "links" | "none";
  /** Which form it has, for a table by form. */
  readonly form: string;
  readonly text: string;
}

/** Random numbers that are the same in every run. */
function createRandom(seed: number) {
  let state = seed;
  const next = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 4_294_967_296) * below);
  };
  const pick = <T>(items: readonly T[]): T => items[next(items.length)] as T;
  const letters = (length: number, alphabet: string): string =>
    Array.from({ length }, () => alphabet[next(alphabet.length)]).join("");
  return { next, pick, letters };
}

type Random = ReturnType<typeof createRandom>;

const ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX = "0123456789abcdef";
const DIGITS = "0123456789";
const BASE64URL = `${ALNUM}-_`;

/** How credentials look, those too that no rule knows: what is missed counts. */
const CREDENTIALS: Readonly<Record<string, (random: Random) => string>> = {
  "AWS access key": ({ letters }) => `AKIA${letters(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")}`,
  "AWS secret key after its name": ({ letters }) => `aws_secret_access_key = ${letters(40, `${ALNUM}/+`)}`,
  "GitHub token": ({ letters, pick }) => `${pick(["ghp_", "gho_", "ghs_"])}${letters(36, ALNUM)}`,
  "GitHub fine-grained token": ({ letters }) => `github_pat_${letters(22, ALNUM)}_${letters(59, ALNUM)}`,
  "GitLab token": ({ letters }) => `glpat-${letters(20, BASE64URL)}`,
  "npm token": ({ letters }) => `npm_${letters(36, ALNUM)}`,
  "Slack token": ({ letters }) => `xoxb-${letters(12, DIGITS)}-${letters(13, DIGITS)}-${letters(24, ALNUM)}`,
  "Stripe key": ({ letters }) => `sk_live_${letters(24, ALNUM)}`,
  "Google API key": ({ letters }) => `AIza${letters(35, BASE64URL)}`,
  "key of a model provider": ({ letters, pick }) =>
    `${pick(["sk-", "sk-proj-", "sk-ant-api03-"])}${letters(48, ALNUM)}`,
  "SendGrid key": ({ letters }) => `SG.${letters(22, BASE64URL)}.${letters(43, BASE64URL)}`,
  "Azure connection string": ({ letters }) =>
    `DefaultEndpointsProtocol=https;AccountName=a;AccountKey=${letters(86, `${ALNUM}+/`)}==;EndpointSuffix=x`,
  "JSON Web Token": ({ letters }) =>
    `${btoa('{"alg":"RS256"}').replace(/=+$/, "")}.${btoa('{"sub":"1"}').replace(/=+$/, "")}.${letters(86, BASE64URL)}`,
  "private key": ({ letters }) =>
    `-----BEGIN PRIVATE KEY-----\n${letters(1_200, ALNUM)}\n-----END PRIVATE KEY-----`,
  "password in an address": ({ letters }) => `postgres://app:${letters(16, ALNUM)}@db.internal:5432/app`,
  "bearer token in a header": ({ letters }) => `Authorization: Bearer ${letters(40, ALNUM)}`,
  "password after its name": ({ letters }) => `password: ${letters(14, `${ALNUM}!%+`)}`,
  "random key in JSON": ({ letters }) => `{"apiKey":"${letters(32, ALNUM)}"}`,
  "hexadecimal key after its name": ({ letters }) => `api_key=${letters(32, HEX)}`,
  "key without a name or a prefix": ({ letters }) => `key-${letters(32, HEX)}`,
  "password of words after its name": ({ pick }) =>
    `password: ${pick(["correct", "purple", "quiet"])}-horse-battery`,
  "token cut by a line break": ({ letters }) => `ghp_${letters(18, ALNUM)}\n${letters(18, ALNUM)}`,
};

const PLACES: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => `The value is ${text} for now.`,
  (text) => `level=info msg="done" value="${text}" took=12ms`,
  (text) => `<p>${text}</p>`,
  (text) => JSON.stringify({ note: text }),
];

function cardNumber({ pick, letters }: Random): string {
  const [begins, length] = pick([
    ["4", 16],
    ["51", 16],
    ["37", 15],
    ["6011", 16],
    ["3566", 16],
  ] as const);
  const digits = begins + letters(length - begins.length - 1, DIGITS);
  for (let check = 0; check < 10; check += 1) if (isLuhn(digits + check)) return digits + check;
  return digits;
}

function isLuhn(digits: string): boolean {
  const sum = [...digits].reverse().reduce((all, digit, at) => {
    const value = Number(digit) * (at % 2 === 1 ? 2 : 1);
    return all + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}

const CARDS: Readonly<Record<string, (random: Random) => string>> = {
  "card number": (random) => cardNumber(random),
  "card number in groups": (random) => {
    const number = cardNumber(random);
    const groups = number.length === 15 ? /^(\d{4})(\d{6})(\d{5})$/ : /(\d{4})(?=\d)/g;
    return number.length === 15 ? number.replace(groups, "$1 $2 $3") : number.replace(groups, "$1-");
  },
  "card number with dots": (random) => cardNumber(random).replace(/(\d{4})(?=\d)/g, "$1."),
};

/** What is easily taken for one of them, and is none. */
const HARMLESS: Readonly<Record<string, (random: Random) => string>> = {
  UUID: ({ letters }) =>
    `${letters(8, HEX)}-${letters(4, HEX)}-4${letters(3, HEX)}-a${letters(3, HEX)}-${letters(12, HEX)}`,
  "hash of git": ({ letters }) => `commit ${letters(40, HEX)}`,
  "SHA-256": ({ letters }) => `sha256:${letters(64, HEX)}`,
  "integrity of a lock file": ({ letters }) => `"integrity": "sha512-${letters(86, `${ALNUM}+/`)}=="`,
  "time in milliseconds": ({ letters }) => `"at": 17${letters(11, DIGITS)}`,
  "telephone number": ({ letters }) => `+49 30 ${letters(4, DIGITS)} ${letters(4, DIGITS)}`,
  "number of an order, 16 digits": ({ letters }) => `order 1${letters(15, DIGITS)}`,
  "number of an account, 16 digits of any kind": ({ letters }) => `account ${letters(16, DIGITS)}`,
  ISBN: ({ letters }) =>
    `ISBN 978-${letters(1, DIGITS)}-${letters(4, DIGITS)}-${letters(4, DIGITS)}-${letters(1, DIGITS)}`,
  "placeholder of a token": ({ pick }) =>
    pick([
      "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
      "Bearer <token>",
      "api_key=YOUR_API_KEY_HERE",
      "password: ********",
    ]),
  "name of a variable": ({ pick }) =>
    `process.env.${pick(["API_KEY", "CLIENT_SECRET", "DATABASE_PASSWORD"])}`,
  "cursor of a page": ({ letters }) => `"nextCursor": "${letters(40, BASE64URL)}"`,
  "prose about tokens": ({ pick }) =>
    pick([
      "The token: a word that stands for a part of text.",
      "Reset your password: follow the link.",
      "secret = what nobody knows",
    ]),
};

const HIDDEN = ["\u202e", "\u200b", "\u{e0041}", "\u2066", "\u001b[31m"];

/** Made texts: as many of each form as asked for. */
export function labelledTexts(each: number): readonly LabelledText[] {
  const random = createRandom(20_261_119);
  const forms = (label: LabelledText["label"], made: Readonly<Record<string, (random: Random) => string>>) =>
    Object.entries(made).flatMap(([form, make]) =>
      Array.from({ length: each }, (_, at) => {
        const place = PLACES[at % PLACES.length] as (text: string) => string;
        const text = make(random);
        // JSON writes some hidden characters as escapes, which anybody can see.
        return { label, form, text: label === "hidden" ? text : place(text) };
      }),
    );
  return [
    ...forms("credentials", CREDENTIALS),
    ...forms("cards", CARDS),
    ...forms("none", HARMLESS),
    ...forms("hidden", { "hidden characters": ({ pick }) => `plain${pick(HIDDEN)}text` }),
    ...forms("links", {
      "link to another host": ({ letters }) =>
        `see https://${letters(8, "abcdef")}.example/${letters(6, ALNUM)}`,
    }),
  ];
}

/** Every text in what ten public servers were recorded to answer: lists, schemas, results. */
export function recordedTexts(): readonly string[] {
  const folder = join(ROOT, "test/data/recorded-servers");
  const texts: string[] = [];
  for (const name of readdirSync(folder).filter((file) => file.endsWith(".json"))) {
    collect(JSON.parse(readFileSync(join(folder, name), "utf8")), texts);
  }
  return texts;
}

function collect(value: unknown, texts: string[]): void {
  if (typeof value === "string") texts.push(value);
  else if (typeof value === "object" && value !== null)
    for (const member of Object.values(value)) collect(member, texts);
}
