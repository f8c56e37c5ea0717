/** A part of a text, from `at` up to `end`. */
export interface Place {
  readonly at: number;
  readonly end: number;
}

/** An escape as one number, as texts may hold millions of them: its length times this, and the code point it stands for. */
const LENGTH = 0x200000;
const NO_ESCAPE = -1;
const LAST_CODE = 0x10ffff;
const [PERCENT, BACKSLASH, AMPERSAND] = [0x25, 0x5c, 0x26];
/** Characters that are put together at a time. */
const PIECE = 16_384;

/** Nearly no text holds an escape, and this is asked of every text that is masked. */
export const MAY_BE_ESCAPED = /[%&\\]/;

/** What is escaped by a backslash and one letter or sign. */
const LETTERS: Readonly<Record<string, number>> = {
  b: 8,
  t: 9,
  n: 10,
  f: 12,
  r: 13,
  '"': 0x22,
  "'": 0x27,
  "/": 0x2f,
  "\\": BACKSLASH,
};
/** Named entities of HTML by their first letters. */
const ENTITIES: Readonly<Record<string, readonly [name: string, code: number]>> = {
  am: ["&amp;", 0x26],
  ap: ["&apos;", 0x27],
  gt: ["&gt;", 0x3e],
  lt: ["&lt;", 0x3c],
  qu: ["&quot;", 0x22],
};

/**
 * Reads all escapes of single characters in a text, once: those of addresses (`%2F`), of JSON and code (`\u002f`, `\x2f`, `\/`) and of
 * HTML (`&#47;`, `&amp;`). Gives the same text where there are none.
 */
export function unescapeText(text: string): string {
  const pieces: string[] = [];
  // What is read is never longer than what was written.
  const units = new Uint16Array(Math.min(PIECE, text.length + 2));
  let [from, length] = [0, 0];
  const flush = (): void => {
    pieces.push(String.fromCharCode.apply(undefined, units.subarray(0, length) as unknown as number[]));
    length = 0;
  };
  const marks = escapeStarts();
  while (marks.test(text)) {
    const at = marks.lastIndex - 1;
    const escaped = escapeAt(text, at);
    if (escaped === NO_ESCAPE) continue;
    const code = escaped % LENGTH;
    if (length + at - from + 2 > units.length) {
      flush();
      pieces.push(text.slice(from, at));
    } else for (let copied = from; copied < at; copied += 1) units[length++] = text.charCodeAt(copied);
    if (code > 0xffff) units[length++] = 0xd7c0 + (code >> 10);
    units[length++] = code > 0xffff ? 0xdc00 + (code & 0x3ff) : code;
    from = at + Math.floor(escaped / LENGTH);
    marks.lastIndex = from;
  }
  if (from === 0) return text;
  flush();
  return pieces.join("") + text.slice(from);
}

/** Where places of the unescaped text, in order and apart, stand in the text with its escapes. */
export function placesBefore(text: string, places: readonly Place[]): Place[] {
  const bounds = places.flatMap(({ at, end }) => [at, end]);
  const found: number[] = [];
  let shift = 0;
  const findUpTo = (last: number): void => {
    while ((bounds[found.length] ?? Number.POSITIVE_INFINITY) <= last)
      found.push((bounds[found.length] as number) + shift);
  };
  const marks = escapeStarts();
  while (found.length < bounds.length && marks.test(text)) {
    const at = marks.lastIndex - 1;
    const escaped = escapeAt(text, at);
    if (escaped === NO_ESCAPE) continue;
    const length = Math.floor(escaped / LENGTH);
    findUpTo(at - shift);
    shift += length - (escaped % LENGTH > 0xffff ? 2 : 1);
    marks.lastIndex = at + length;
  }
  findUpTo(Number.MAX_SAFE_INTEGER);
  return places.map((_, index) => ({ at: found[index * 2] as number, end: found[index * 2 + 1] as number }));
}

/** Finds where an escape may begin. */
function escapeStarts(): RegExp {
  return /%(?=[\da-f]{2})|\\(?=[ux"'/\\bfnrt])|&(?=#|(?:amp|apos|gt|lt|quot);)/gi;
}

function escapeAt(text: string, at: number): number {
  switch (text.charCodeAt(at)) {
    case PERCENT:
      return percentAt(text, at);
    case BACKSLASH:
      return backslashAt(text, at);
    case AMPERSAND:
      return text.charAt(at + 1) === "#" ? numberedAt(text, at) : namedAt(text, at);
  }
  return NO_ESCAPE;
}

/** The bytes of one character in UTF-8, each as `%` and two digits. */
function percentAt(text: string, at: number): number {
  const first = hexAt(text, at + 1, 2);
  if (first < 0x80) return first < 0 ? NO_ESCAPE : 3 * LENGTH + first;
  if (first < 0xc2 || first > 0xf4) return NO_ESCAPE;
  const more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  let code = first & (0x3f >> more);
  for (let byte = 1; byte <= more; byte += 1) {
    const next = text.charCodeAt(at + byte * 3) === PERCENT ? hexAt(text, at + byte * 3 + 1, 2) : -1;
    if (next < 0x80 || next > 0xbf) return NO_ESCAPE;
    code = (code << 6) | (next & 0x3f);
  }
  return code > LAST_CODE ? NO_ESCAPE : (3 + more * 3) * LENGTH + code;
}

function backslashAt(text: string, at: number): number {
  const letter = text.charAt(at + 1);
  const digits = letter === "u" ? 4 : letter === "x" ? 2 : 0;
  if (digits > 0) {
    const code = hexAt(text, at + 2, digits);
    return code < 0 ? NO_ESCAPE : (2 + digits) * LENGTH + code;
  }
  const code = LETTERS[letter];
  return code === undefined ? NO_ESCAPE : 2 * LENGTH + code;
}

function namedAt(text: string, at: number): number {
  const entity = ENTITIES[text.slice(at + 1, at + 3)];
  return entity !== undefined && text.startsWith(entity[0], at)
    ? entity[0].length * LENGTH + entity[1]
    : NO_ESCAPE;
}

function numberedAt(text: string, at: number): number {
  const [entity, hex, decimal] = /^&#(?:x([\da-f]{1,6})|(\d{1,7}));/i.exec(text.slice(at, at + 10)) ?? [];
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  return entity === undefined || code > LAST_CODE ? NO_ESCAPE : entity.length * LENGTH + code;
}

/** The number of so many hexadecimal digits, or -1 where something else stands among them. */
function hexAt(text: string, at: number, digits: number): number {
  let value = 0;
  for (let index = at; index < at + digits; index += 1) {
    const unit = text.charCodeAt(index);
    const letter = unit | 0x20;
    const isLetter = letter >= 0x61 && letter <= 0x66;
    const digit = unit >= 0x30 && unit <= 0x39 ? unit - 0x30 : isLetter ? letter - 0x57 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}
