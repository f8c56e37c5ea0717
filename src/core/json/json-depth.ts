/** The deepest nesting that is read: the same in every language that reads these formats. */
export const MAX_JSON_DEPTH = 512;

/** Each level takes an opening and a closing character, so shorter text cannot be too deep. */
const HARMLESS_LENGTH = (MAX_JSON_DEPTH + 1) * 2;

/**
 * Tells whether JSON text is nested too deeply. The text counts and not the value, in which a key that is given twice may hide
 * what it was given first; but where the value has as many objects and arrays as the text has `openings`, looking at the value is
 * enough, and takes a quarter of the time.
 */
export function isTooDeep(text: string, value: unknown, openings: number | undefined): boolean {
  if (text.length < HARMLESS_LENGTH) return false;
  const counted = openings === undefined ? 0 : countContainers(value, MAX_JSON_DEPTH);
  if (counted === TOO_DEEP) return true;
  return counted !== openings && isTextTooDeep(text);
}

/** Tells whether a value is nested more deeply than what is read; only for what JSON has been written of, which has no circle. */
export function isValueTooDeep(value: unknown, writtenLength: number): boolean {
  return writtenLength >= HARMLESS_LENGTH && countContainers(value, MAX_JSON_DEPTH) === TOO_DEEP;
}

const TOO_DEEP = Number.NEGATIVE_INFINITY;

/** Counts the objects and arrays of a value; `TOO_DEEP` when they are nested more than so many levels deep. */
function countContainers(value: unknown, levels: number): number {
  if (typeof value !== "object" || value === null) return 0;
  if (levels === 0) return TOO_DEEP;
  let count = 1;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item = value[i];
      if (typeof item === "object") count += countContainers(item, levels - 1);
    }
    return count;
  }
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    if (typeof member === "object") count += countContainers(member, levels - 1);
  }
  return count;
}

/** Counts `[` and `{`, those in strings too, four bytes at a time; nothing where the bytes do not lie on a word. */
export function countOpenings(bytes: Uint8Array): number | undefined {
  if (bytes.length < HARMLESS_LENGTH || bytes.byteOffset % 4 !== 0) return undefined;
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  let count = 0;
  for (let i = 0; i < words.length; i++) {
    // The two differ in one bit; without it, either becomes zero here, and no other byte does.
    const x = ((words[i] as number) & 0xdfdfdfdf) ^ 0x5b5b5b5b;
    const zeros = ~(((x & 0x7f7f7f7f) + 0x7f7f7f7f) | x | 0x7f7f7f7f);
    if (zeros !== 0) count += Math.imul(zeros >>> 7, 0x01010101) >>> 24;
  }
  for (let i = words.length * 4; i < bytes.length; i++) if (isOpening(bytes[i] as number)) count += 1;
  return count;
}

const QUOTE = 34;
const BACKSLASH = 92;
const CURLY = 32;
const OPENING = 123;
const CLOSING = 125;

function isOpening(code: number): boolean {
  return (code | CURLY) === OPENING;
}

/** Tells whether text opens more objects and arrays than are read, one in another; it need not be JSON. */
export function isTextTooDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      for (i++; i < text.length && text.charCodeAt(i) !== QUOTE; i++) {
        if (text.charCodeAt(i) === BACKSLASH) i++;
      }
    } else if (isOpening(code)) {
      depth += 1;
      if (depth > MAX_JSON_DEPTH) return true;
    } else if ((code | CURLY) === CLOSING) depth -= 1;
  }
  return false;
}
