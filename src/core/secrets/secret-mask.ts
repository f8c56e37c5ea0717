import { adoptEnvelope } from "../envelope/envelope.ts";
import type { ResponseEnvelope, ResponseMeta } from "../envelope/response-meta.ts";
import { type CallError, changedError, isCallError } from "../errors/errors.ts";
import { saidIn, toSaid, withoutSaid } from "../errors/source-words.ts";
import { joinPointer } from "../json/json-pointer.ts";
import { isPlainObject } from "../json/json-value.ts";
import { rewriteTexts, type TextRewriter } from "../json/rewrite-texts.ts";
import { checkOption } from "../options/check-options.ts";
import { encodeBase64 } from "../wire/base64.ts";
import { collectHeaderSecret } from "./collect-secrets.ts";
import { MAY_BE_ESCAPED, type Place, placesBefore, unescapeText } from "./escaped-text.ts";
import { isTooCommon } from "./secret-names.ts";

/** All spellings have at least this many characters; texts are looked through by that many. */
const START_LENGTH = 4;
/** A line of a secret with several is a secret of its own from this length on. */
const LEAST_LINE = 16;
/** A secret is known within longer text in base64 from this many bytes on; less would be found in what is none. */
const LEAST_WITHIN_BASE64 = 8;
/** A long secret is looked for by this many characters first: text that only begins like it must not take longer. */
const HEAD_LENGTH = 64;
/** Escapes of escapes that are read: a form in JSON in a log line has three. */
const MOST_LAYERS = 3;
const STARS = "***";

/**
 * Knows the values that must not be shown, and takes them out of texts: as they are, with any of their characters escaped as in
 * addresses, JSON or HTML, and in base64 or hexadecimal, alone or within longer text. Looks closer only where a text goes on like the
 * beginning of one of them.
 */
export class SecretMask {
  readonly #values = new Set<string>();
  readonly #spellings = new Set<string>();
  /** How long spellings begin. */
  readonly #heads = new Set<string>();
  /** The lengths of spellings by how they begin, longest first. */
  readonly #lengths = new Map<string, readonly number[]>();
  #shortest = Number.POSITIVE_INFINITY;
  /** Finds where a spelling may begin; made anew once there are more. */
  #starts: RegExp | undefined;

  /** What is secret by now, for a mask in another thread of this process. */
  get values(): ReadonlySet<string> {
    return this.#values;
  }

  /** Makes a value a secret from now on; what is very short or very common cannot be told from other text and is left out. */
  add(value: string): void {
    if (isTooCommon(value) || this.#values.has(value)) return;
    this.#values.add(value);
    for (const spelling of spellingsOf(value)) this.#addSpelling(spelling);
    const lines = value.split(/\r?\n/);
    if (lines.length === 1) return;
    for (const line of lines) {
      if (line.trim().length >= LEAST_LINE && !line.startsWith("-----")) this.add(line.trim());
    }
  }

  /** Makes all that another one knows by now secrets here too. */
  addAll(other: SecretMask): void {
    for (const value of other.#values) if (!this.#values.has(value)) this.add(value);
  }

  /** Tells whether there is a secret in a text. */
  finds(text: string): boolean {
    if (this.#values.size === 0) return false;
    return this.#next(text, 0) !== undefined || this.#withinEscapes(text, MOST_LAYERS).length > 0;
  }

  /** The text with every secret in it replaced by `***`. */
  mask(text: string): string {
    let masked = "";
    let from = 0;
    for (const { at, end } of this.places(text)) {
      masked += text.slice(from, at) + STARS;
      from = end;
    }
    return from === 0 ? text : masked + text.slice(from);
  }

  /** Where secrets stand in a text, in order; those that touch or overlap are one place, so that no part of one is left. */
  places(text: string): readonly Place[] {
    if (this.#values.size === 0) return [];
    const plain = this.#places(text);
    const escaped = this.#withinEscapes(text, MOST_LAYERS);
    return escaped.length === 0 ? plain : joined([...plain, ...escaped].sort((a, b) => a.at - b.at));
  }

  /** Secrets of which some characters are written as escapes, at the places of the text as it is. */
  #withinEscapes(text: string, layers: number): Place[] {
    if (layers === 0) return [];
    const unescaped = MAY_BE_ESCAPED.test(text) ? unescapeText(text) : text;
    if (unescaped === text) return [];
    const found = [...this.#places(unescaped), ...this.#withinEscapes(unescaped, layers - 1)];
    return found.length === 0 ? [] : placesBefore(text, joined(found.sort((a, b) => a.at - b.at)));
  }

  #places(text: string): Place[] {
    const places: { at: number; end: number }[] = [];
    for (let found = this.#next(text, 0); found !== undefined; found = this.#next(text, found.at + 1)) {
      places.push({ at: found.at, end: found.at + found.length });
    }
    return joined(places);
  }

  /** The next place from here where a secret begins. */
  #next(text: string, from: number): { readonly at: number; readonly length: number } | undefined {
    if (text.length - from < this.#shortest) return undefined;
    this.#starts ??= new RegExp([...this.#lengths.keys()].map(escapeLetters).join("|"), "g");
    const starts = this.#starts;
    starts.lastIndex = from;
    while (starts.test(text)) {
      const at = starts.lastIndex - START_LENGTH;
      const length = this.#lengthAt(text, at);
      if (length > 0) return { at, length };
      starts.lastIndex = at + 1;
    }
    return undefined;
  }

  /** The length of the longest secret that begins here. */
  #lengthAt(text: string, at: number): number {
    const lengths = this.#lengths.get(text.slice(at, at + START_LENGTH));
    const isHere = (length: number): boolean => {
      if (at + length > text.length) return false;
      if (length > HEAD_LENGTH && !this.#heads.has(text.slice(at, at + HEAD_LENGTH))) return false;
      return this.#spellings.has(text.slice(at, at + length));
    };
    return lengths?.find(isHere) ?? 0;
  }

  #addSpelling(spelling: string): void {
    const start = spelling.slice(0, START_LENGTH);
    const others = this.#lengths.get(start) ?? [];
    this.#spellings.add(spelling);
    this.#shortest = Math.min(this.#shortest, spelling.length);
    this.#starts = undefined;
    if (spelling.length > HEAD_LENGTH) this.#heads.add(spelling.slice(0, HEAD_LENGTH));
    if (!others.includes(spelling.length)) {
      this.#lengths.set(
        start,
        [...others, spelling.length].sort((a, b) => b - a),
      );
    }
  }
}

/** Places in the order in which they begin, with those that touch or overlap made one. */
function joined(places: readonly Place[]): Place[] {
  const apart: { at: number; end: number }[] = [];
  for (const { at, end } of places) {
    const last = apart.at(-1);
    if (last !== undefined && at <= last.end) last.end = Math.max(last.end, end);
    else apart.push({ at, end });
  }
  return apart;
}

/** Writes text so that a pattern means just that. */
function escapeLetters(text: string): string {
  return text.replace(
    /[^A-Za-z0-9]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** How a value may be written in other texts, beside escapes of single characters. */
function spellingsOf(value: string): Set<string> {
  const bytes = new TextEncoder().encode(value);
  const base64 = encodeBase64(bytes).replace(/=+$/, "");
  const spellings = [value, value.replaceAll(" ", "+"), base64, toBase64Url(base64), ...withinBase64(bytes)];
  if (bytes.length >= LEAST_WITHIN_BASE64) {
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    spellings.push(hex, hex.toUpperCase());
  }
  return new Set(spellings.filter((spelling) => spelling.length >= START_LENGTH));
}

/**
 * What base64 of a longer text has of these bytes: each three of its bytes are four characters, so what it is depends on how many bytes
 * stand before. The characters at both ends that depend on their neighbours too are left out.
 */
function withinBase64(bytes: Uint8Array): string[] {
  if (bytes.length < LEAST_WITHIN_BASE64) return [];
  return [0, 1, 2].flatMap((before) => {
    const placed = new Uint8Array(before + bytes.length);
    placed.set(bytes, before);
    const [from, to] = [Math.ceil((before * 8) / 6), Math.floor((placed.length * 8) / 6)];
    const part = encodeBase64(placed).slice(from, to);
    return [part, toBase64Url(part)];
  });
}

function toBase64Url(base64: string): string {
  return base64.replaceAll("+", "-").replaceAll("/", "_");
}

/** What is passed on of what a source says and repeats; the same options for every kind of source. */
export interface PassedOn {
  /** Passes on, in `details.said` of an error, what the source said when it failed. @default true */
  readonly said?: boolean | undefined;
  /** Masks credentials of 16 characters or more in results as well, each named in `meta.waybill.masked`. @default true */
  readonly maskResults?: boolean | undefined;
  /** Values that are masked like credentials. @default none but the credentials */
  readonly secrets?: readonly string[] | undefined;
}

/** Refuses options of `PassedOn` that cannot work with a `TypeError`, which shows no secret. */
export function checkPassedOn({ said, maskResults, secrets }: PassedOn): void {
  checkOption("said", said, "true or false", typeof said === "boolean");
  checkOption("maskResults", maskResults, "true or false", typeof maskResults === "boolean");
  const isTexts = Array.isArray(secrets) && secrets.every((secret) => typeof secret === "string");
  if (secrets !== undefined && !isTexts) throw new TypeError("secrets must be a list of texts.");
}

/** Shorter secrets may stand in a result by chance, and are masked in errors alone. */
const LEAST_IN_RESULTS = 16;
/** Tokens had at run time that are remembered at least; the oldest go first. */
const MOST_OBTAINED = 256;

/** The secrets of one source, and what of its answers is passed on. */
export class SourceSecrets {
  readonly #options: PassedOn;
  readonly #known: Masks;
  /** Had at run time, in two generations: what is old and no longer used is forgotten. */
  #obtained = new Masks();
  #earlier: Masks | undefined;
  #active: readonly Masks[] | undefined;
  /** Paths of this machine that a source may know. */
  readonly #paths: readonly string[];

  /** `known` are the credentials among the options of the source. */
  constructor(known: SecretMask = new SecretMask(), options: PassedOn = {}, paths: readonly string[] = []) {
    this.#options = options;
    this.#known = new Masks();
    for (const value of [...known.values, ...(options.secrets ?? [])]) this.#known.add(value);
    this.#paths = paths.filter((path) => path.length >= 4);
  }

  /** Makes a value that was had at run time a secret, such as a token. */
  obtained(value: string): void {
    if (this.#known.all.values.has(value) || this.#obtained.all.values.has(value)) return;
    if (this.#obtained.all.values.size >= MOST_OBTAINED) {
      this.#earlier = this.#obtained;
      this.#obtained = new Masks();
    }
    this.#obtained.add(value);
    this.#active = undefined;
  }

  /** Makes the credential in a header that is sent a secret. */
  obtainedHeader(name: string, value: string): void {
    collectHeaderSecret(name, value, { add: (secret) => this.obtained(secret) });
  }

  /** Takes every secret out of a text. */
  readonly mask = (text: string): string => this.#masks().reduce((masked, { all }) => all.mask(masked), text);

  /** Takes every secret out of a value that becomes part of an error. */
  maskAll<T>(value: T): T {
    return this.#masks().reduce((masked, { all }) => maskValue(masked, all), value);
  }

  /** Gives what the source said as it is passed on: in `said`, or not at all. */
  saying(words: string | undefined): { readonly said?: string } {
    if (words === undefined || this.#options.said === false) return {};
    const said = toSaid(words, (text) => this.#hidePaths(this.mask(text)));
    return said === undefined ? {} : { said };
  }

  /** Details that came from another Waybill: of its words, those in `said`, or else what it says for people. */
  passDetails(details: unknown, sentence?: string): unknown {
    const { said } = this.saying(saidIn(details) ?? sentence);
    const others = this.maskAll(withoutSaid(details));
    if (said === undefined) return others;
    return isPlainObject(others) ? { ...others, said } : { said };
  }

  /** The error with every secret masked; the same one where there is none. Other things are given back as they are. */
  maskError(thrown: unknown): unknown {
    return this.#masks().reduce((masked, { all }) => maskError(masked, all), thrown);
  }

  /** The result with every long secret masked, unless that is turned off; one that is an error with every secret. */
  maskEnvelope(envelope: ResponseEnvelope): ResponseEnvelope {
    const isError = envelope.meta.isError === true;
    if (!isError && this.#options.maskResults === false) return envelope;
    return this.#masks().reduce(
      (masked, { all, long }) => maskEnvelope(masked, isError ? all : long),
      envelope,
    );
  }

  /** The same for whatever else a source answers with. */
  maskResult<T>(value: T): T {
    if (this.#options.maskResults === false) return value;
    return this.#masks().reduce((masked, { long }) => maskValue(masked, long), value);
  }

  /** Kept, as every result asks for them; nothing where nothing is secret. */
  #masks(): readonly Masks[] {
    this.#active ??= [this.#known, this.#obtained, this.#earlier].filter(
      (masks) => masks !== undefined && masks.all.values.size > 0,
    ) as Masks[];
    return this.#active;
  }

  /** A path of this machine goes up to where a path ends. */
  #hidePaths(text: string): string {
    return this.#paths.reduce((shown, path) => {
      const parts = shown.split(path);
      return parts
        .map((part, index) => (index === 0 ? part : `[path]${part.replace(/^[^\s"'`<>()[\]{},;]*/, "")}`))
        .join("");
    }, text);
  }
}

/** All secrets of one kind, and those that are looked for in results too. */
class Masks {
  readonly all = new SecretMask();
  readonly long = new SecretMask();

  add(value: string): void {
    this.all.add(value);
    if (value.length >= LEAST_IN_RESULTS) this.long.add(value);
  }
}

/** Values of one result that are named as masked; further ones are masked as well. */
const MOST_NAMED = 100;

/** Numbers below it are no secrets: those are looked for in whole numbers of 16 digits. */
const LEAST_NUMBER = 1e15;
const STAR = 0x2a;
/** Causes of causes that are looked at; those beyond are left out. */
const MOST_CAUSES = 5;

/** The value with every secret in it replaced: in texts, in keys, in bytes. Gives the same value where there is none. */
export function maskValue<T>(value: T, mask: SecretMask): T {
  return holds(value, mask) ? (rewriteTexts(value, "", new Masking(mask)) as T) : value;
}

/** The envelope with every secret in its data and its meta replaced, each named by JSON pointer in `meta.waybill.masked`. */
export function maskEnvelope(envelope: ResponseEnvelope, mask: SecretMask): ResponseEnvelope {
  const { data, meta } = envelope;
  // Looked for first: most results hold none, and naming places costs more than looking.
  if (!holds(data, mask) && !holds(meta, mask)) return envelope;
  const masking = new Masking(mask);
  const { data: masked, meta: shown } = rewriteTexts({ data, meta }, "", masking) as ResponseEnvelope;
  const named = new Set([...(meta.waybill?.masked ?? []), ...masking.pointers]);
  const waybill = { ...shown.waybill, masked: [...named].slice(0, MOST_NAMED) };
  return adoptEnvelope({ data: masked, meta: { ...shown, waybill } as ResponseMeta });
}

/** The error with every secret in it replaced, its causes included; gives back what is no `CallError` as it is. */
export function maskError(thrown: unknown, mask: SecretMask): unknown {
  if (!isCallError(thrown) || mask.values.size === 0) return thrown;
  const error: CallError = thrown;
  const message = mask.mask(error.message);
  const details = maskValue(error.details, mask);
  const cause = maskCause(error.cause, mask, MOST_CAUSES);
  const isSame = message === error.message && details === error.details && cause === error.cause;
  return isSame ? error : changedError(error, { message, details, cause });
}

/** What a source answered is the cause of many errors, and a program may print it. */
function maskCause(cause: unknown, mask: SecretMask, left: number): unknown {
  if (!(cause instanceof Error)) return maskValue(cause, mask);
  if (left === 0) return undefined;
  const inner = maskCause(cause.cause, mask, left - 1);
  // The errors of libraries keep what they could not read among their members.
  const isSame = inner === cause.cause && !mask.finds(cause.message) && !holds({ ...cause }, mask);
  if (isSame) return cause;
  const masked = new Error(mask.mask(cause.message), { cause: inner });
  masked.stack = mask.mask(cause.stack ?? "");
  return named(masked, cause.name);
}

function named(error: Error, name: string): Error {
  return Object.defineProperty(error, "name", { value: name, writable: true, configurable: true });
}

/** Tells whether there is a secret anywhere in a value. */
function holds(value: unknown, mask: SecretMask): boolean {
  if (mask.values.size === 0) return false;
  if (typeof value === "string") return mask.finds(value);
  if (typeof value === "number" || typeof value === "bigint")
    return isLarge(value) && mask.finds(String(value));
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some((item) => holds(item, mask));
  if (isPlainObject(value)) {
    for (const key of Object.keys(value)) if (mask.finds(key) || holds(value[key], mask)) return true;
    return false;
  }
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return maskBytes(value, mask) !== value;
  if (value instanceof Map || value instanceof Set) return holds([...value], mask);
  return value instanceof Error && mask.finds(value.message);
}

function isLarge(value: number | bigint): boolean {
  return value >= LEAST_NUMBER || value <= -LEAST_NUMBER;
}

/** Takes secrets out of texts and notes where they stood. */
class Masking implements TextRewriter {
  readonly leastNumber = LEAST_NUMBER;
  readonly pointers = new Set<string>();
  readonly #mask: SecretMask;

  constructor(mask: SecretMask) {
    this.#mask = mask;
  }

  text(text: string, at: string): string {
    const masked = this.#mask.mask(text);
    if (masked !== text) this.#name(at);
    return masked;
  }

  key(key: string, at: string): { readonly name: string; readonly shown: string } {
    const name = this.#mask.mask(key);
    if (name !== key) this.#name(joinPointer(at, name));
    return { name, shown: name };
  }

  bytes(bytes: Uint8Array | ArrayBuffer, at: string): Uint8Array | ArrayBuffer {
    const masked = maskBytes(bytes, this.#mask);
    if (masked !== bytes) this.#name(at);
    return masked;
  }

  #name(at: string): void {
    if (this.pointers.size < MOST_NAMED) this.pointers.add(at);
  }
}

/** Secrets in bytes, in every spelling that texts may have and as UTF-8, become as many stars. */
function maskBytes(given: Uint8Array | ArrayBuffer, mask: SecretMask): Uint8Array | ArrayBuffer {
  const bytes = given instanceof Uint8Array ? given : new Uint8Array(given);
  // Each byte is one character in this encoding, so places in the text are places in the bytes.
  const places = [...mask.places(new TextDecoder("windows-1252").decode(bytes))];
  for (const value of mask.values) if (!isAscii(value)) places.push(...placesOf(value, bytes));
  if (places.length === 0) return given;
  const copy = Uint8Array.from(bytes);
  for (const { at, end } of places) copy.fill(STAR, at, end);
  return given instanceof Uint8Array ? copy : copy.buffer;
}

function isAscii(value: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every character of ASCII
  return /^[\u0000-\u007f]*$/.test(value);
}

function* placesOf(value: string, bytes: Uint8Array): Generator<Place> {
  const secret = new TextEncoder().encode(value);
  for (let at = findBytes(bytes, secret, 0); at >= 0; at = findBytes(bytes, secret, at + secret.length))
    yield { at, end: at + secret.length };
}

function findBytes(bytes: Uint8Array, sought: Uint8Array, start: number): number {
  const [first = 0] = sought;
  const last = bytes.length - sought.length;
  for (let at = bytes.indexOf(first, start); at >= 0 && at <= last; at = bytes.indexOf(first, at + 1)) {
    let length = 1;
    while (length < sought.length && bytes[at + length] === sought[length]) length += 1;
    if (length === sought.length) return at;
  }
  return -1;
}
