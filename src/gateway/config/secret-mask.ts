import { isTooCommon } from "./secret-names.ts";

/** All spellings have at least this many characters; texts are looked through by that many. */
const START_LENGTH = 4;
/** A line of a secret with several is a secret of its own from this length on. */
const LEAST_LINE = 16;
/** A secret is known within longer text in base64 from this many bytes on; less would be found in what is none. */
const LEAST_WITHIN_BASE64 = 8;
/** A long secret is looked for by this many characters first: text that only begins like it must not take longer. */
const HEAD_LENGTH = 64;
const STARS = "***";

/**
 * Knows the values that must not be shown, and takes them out of texts: as they are, and as they are written in addresses, in JSON
 * and in base64, alone or within longer text. Takes one look at each character of a text, however many values there are.
 */
export class SecretMask {
  readonly #values = new Set<string>();
  readonly #spellings = new Set<string>();
  /** How long spellings begin. */
  readonly #heads = new Set<string>();
  /** The lengths of spellings by how they begin, longest first. */
  readonly #lengths = new Map<string, readonly number[]>();
  /** The first characters of spellings. */
  readonly #firsts = new Set<number>();

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

  /** The text with every secret in it replaced by `***`. */
  mask(text: string): string {
    if (this.#spellings.size === 0) return text;
    let masked = "";
    let from = 0;
    let end = -1;
    for (let at = 0; at <= text.length; at++) {
      const length = at < text.length ? this.#lengthAt(text, at) : 0;
      // Secrets that overlap are taken out as one: of none may a part be left.
      if (end >= 0 && at >= end && length === 0) {
        masked += STARS;
        from = end;
        end = -1;
      }
      if (length === 0) continue;
      if (end < 0) masked += text.slice(from, at);
      end = Math.max(end, at + length);
    }
    return masked + text.slice(from);
  }

  /** The length of the longest secret that begins here. */
  #lengthAt(text: string, at: number): number {
    if (!this.#firsts.has(text.charCodeAt(at))) return 0;
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
    if (spelling.length > HEAD_LENGTH) this.#heads.add(spelling.slice(0, HEAD_LENGTH));
    this.#firsts.add(spelling.charCodeAt(0));
    if (!others.includes(spelling.length)) {
      this.#lengths.set(
        start,
        [...others, spelling.length].sort((a, b) => b - a),
      );
    }
  }
}

/** How a value may be written in other texts. */
function spellingsOf(value: string): Set<string> {
  const bytes = Buffer.from(value);
  const encoded = encodeForAddress(value);
  const escaped = JSON.stringify(value).slice(1, -1);
  const spellings = [
    value,
    escaped,
    escaped.replaceAll("/", "\\/"),
    encoded,
    encoded.replaceAll("%20", "+"),
    encoded.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    bytes.toString("base64").replace(/=+$/, ""),
    bytes.toString("base64url"),
    ...withinBase64(bytes),
  ];
  return new Set(spellings.filter((spelling) => spelling.length >= START_LENGTH));
}

/**
 * What base64 of a longer text has of these bytes: each three of its bytes are four characters, so what it is depends on how many bytes
 * stand before. The characters at both ends that depend on their neighbours too are left out.
 */
function withinBase64(bytes: Buffer): string[] {
  if (bytes.length < LEAST_WITHIN_BASE64) return [];
  return [0, 1, 2].flatMap((before) => {
    const placed = Buffer.concat([Buffer.alloc(before), bytes]);
    const [from, to] = [Math.ceil((before * 8) / 6), Math.floor((placed.length * 8) / 6)];
    return [placed.toString("base64").slice(from, to), placed.toString("base64url").slice(from, to)];
  });
}

/** Half a surrogate pair has no spelling in an address. */
function encodeForAddress(value: string): string {
  return encodeURIComponent(Buffer.from(value).toString());
}
