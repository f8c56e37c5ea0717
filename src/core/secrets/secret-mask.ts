import { encodeBase64 } from "../wire/base64.ts";
import { type Place, placesBefore, unescapeText } from "./escaped-text.ts";
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
    const unescaped = unescapeText(text);
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
