/** What may hide in a text: what terminals act on, what nobody sees, and what makes text read as something else. */
export type HiddenKind =
  | "control"
  | "escape"
  | "zero-width"
  | "bidi"
  | "tag"
  | "variation"
  | "private-use"
  | "surrogate"
  | "noncharacter";

/** How often one kind was found. */
export interface TextFinding {
  readonly kind: HiddenKind;
  readonly count: number;
}

/** A text fit to be shown, and what was taken out of it. */
export interface CleanText {
  readonly text: string;
  /** Empty when nothing was hidden. */
  readonly findings: readonly TextFinding[];
}

const NOTHING: readonly TextFinding[] = Object.freeze([]);

/** Characters that hide by themselves, besides those that Unicode says may be ignored. */
const HIDING = [
  "[\\u0000-\\u0008\\u000B-\\u001F\\u007F-\\u009F\\u2028\\u2029]",
  // Blank or without a form of their own, though Unicode does not count them as ignorable.
  "[\\u2800\\uFFF9-\\uFFFB\\u{13430}-\\u{1343F}\\u{16FE4}\\u{1D159}]",
  "[\\uE000-\\uF8FF\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}]",
  "\\p{Noncharacter_Code_Point}",
  "[\\uD800-\\uDFFF]",
];

/**
 * Everything that has to be looked at, longest first. Each alternative ends where the next escape begins and none can fail half
 * way, so that the time is linear. The flags of England, Scotland and Wales are the tag sequences that people use.
 */
const SUSPECT = new RegExp(
  [
    "\\u{1F3F4}\\u{E0067}\\u{E0062}(?:\\u{E0065}\\u{E006E}\\u{E0067}|\\u{E0073}\\u{E0063}\\u{E0074}|\\u{E0077}\\u{E006C}\\u{E0073})\\u{E007F}",
    "\\r\\n",
    "(?:\\u001B\\[|\\u009B)[0-?]*[ -/]*[@-~]?",
    "(?:\\u001B[\\]PX^_]|[\\u0090\\u0098\\u009D-\\u009F])[^\\u0007\\u001B\\u009C\\n]*(?:\\u0007|\\u001B\\\\|\\u009C)?",
    "\\u001B[ -/]*[0-~]?",
    // Joiners and the two selectors of emoji are judged afterwards, by what is then left beside them.
    "(?![\\u200C\\u200D\\uFE0E\\uFE0F])\\p{Default_Ignorable_Code_Point}",
    ...HIDING,
  ].join("|"),
  "gu",
);

const HIDDEN = new RegExp(["\\p{Default_Ignorable_Code_Point}", ...HIDING].join("|"), "gu");

const CONDITIONAL = /\u200C|\u200D|\uFE0E|\uFE0F/g;
const JOINED_BEFORE = /^(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\uFE0F)$/u;
const JOINED_AFTER = /^\p{Extended_Pictographic}$/u;
/** Letters of the scripts in which joiners change how words are spelt. */
const JOINING_LETTER =
  /^(?:\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Mongolian}|\p{Script=Devanagari}|\p{Script=Bengali}|\p{Script=Gurmukhi}|\p{Script=Gujarati}|\p{Script=Oriya}|\p{Script=Tamil}|\p{Script=Telugu}|\p{Script=Kannada}|\p{Script=Malayalam}|\p{Script=Sinhala}|\p{Script=Khmer})$/u;
const EMOJI = /^(?:\p{Emoji}|\p{Extended_Pictographic})$/u;

/**
 * Takes out of a text what people would not see or terminals would act on. Joiners stay inside emoji and inside words of scripts
 * that need them, U+FE0E and U+FE0F right after an emoji; a line break stays a line break. What is left has nothing to take out.
 */
export function cleanText(text: string): CleanText {
  const counts: Counts = new Map();
  const cleaned = judgeConditional(takeOut(text, counts), counts);
  if (counts.size === 0) return { text: cleaned, findings: NOTHING };
  return { text: cleaned, findings: Array.from(counts, ([kind, count]) => ({ kind, count })) };
}

/**
 * Writes what `cleanText` would take out of JSON text as `\uXXXX`: the text shows all that is in it, and means the same. Joiners and
 * selectors stay where they stay there.
 */
export function escapeHidden(json: string): string {
  return json.replace(HIDDEN, (found, offset: number) => {
    const isConditional = /^(?:\u200C|\u200D|\uFE0E|\uFE0F)$/.test(found);
    if (isConditional && belongs(found, characterBefore(json, offset), characterAt(json, offset + 1)))
      return found;
    return escapeUnits(found);
  });
}

/** Writes every UTF-16 unit of a text as `\uXXXX`. */
export function escapeUnits(text: string): string {
  let escaped = "";
  for (let i = 0; i < text.length; i++) escaped += `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return escaped;
}

type Counts = Map<HiddenKind, number>;

function count(counts: Counts, kind: HiddenKind): void {
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
}

/** Takes out what has no place in any text. */
function takeOut(text: string, counts: Counts): string {
  return text.replace(SUSPECT, (found) => {
    if (found === "\r\n") return "\n";
    if (found.startsWith("\u{1F3F4}")) return found;
    const kind = kindOf(found);
    count(counts, kind);
    return kind === "surrogate" ? "\uFFFD" : found === "\u2028" || found === "\u2029" ? "\n" : "";
  });
}

/** Takes out joiners and selectors that have nothing to join or select; one taken out is no neighbour of the next. */
function judgeConditional(text: string, counts: Counts): string {
  let end = -1;
  let last = "";
  return text.replace(CONDITIONAL, (found, offset: number) => {
    const before = offset === end ? last : characterBefore(text, offset);
    const isKept = belongs(found, before, characterAt(text, offset + 1));
    end = offset + 1;
    last = isKept ? found : before;
    if (!isKept) count(counts, kindOf(found));
    return isKept ? found : "";
  });
}

function belongs(found: string, before: string, after: string): boolean {
  if (found === "\uFE0E" || found === "\uFE0F") return EMOJI.test(before);
  const isEmoji = found === "\u200D" && JOINED_BEFORE.test(before) && JOINED_AFTER.test(after);
  return isEmoji || (JOINING_LETTER.test(before) && JOINING_LETTER.test(after));
}

function characterAt(text: string, offset: number): string {
  const code = text.codePointAt(offset);
  return code === undefined ? "" : String.fromCodePoint(code);
}

function characterBefore(text: string, offset: number): string {
  const isPair = offset >= 2 && /[\uDC00-\uDFFF]/.test(text.charAt(offset - 1));
  return offset === 0 ? "" : characterAt(text, offset - (isPair ? 2 : 1));
}

/** By the first code point of each kind, in the order of Unicode within the alternatives above. */
function kindOf(found: string): HiddenKind {
  const code = found.codePointAt(0) as number;
  if (code === 0x1b || isOpeningC1(code)) return "escape";
  if (code < 0xa0 || code === 0x2028 || code === 0x2029) return "control";
  if (code === 0x061c || code === 0x200e || code === 0x200f) return "bidi";
  if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) return "bidi";
  if (code >= 0xd800 && code <= 0xdfff) return "surrogate";
  if ((code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) === 0xfffe) return "noncharacter";
  if ((code >= 0xe000 && code <= 0xf8ff) || code >= 0xf0000) return "private-use";
  if ((code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xe0100 && code <= 0xe01ef)) return "variation";
  // The rest of that block is shown by nothing, and hides as well.
  if (code >= 0xe0000) return "tag";
  return "zero-width";
}

/** The one-character forms of what an escape sequence begins with. */
function isOpeningC1(code: number): boolean {
  return code === 0x90 || code === 0x98 || code === 0x9b || (code >= 0x9d && code <= 0x9f);
}

/** Says what was found, for a warning. */
export function describeFindings(findings: readonly TextFinding[]): string {
  return findings.map(({ kind, count }) => `${count} ${kind}`).join(", ");
}

/** What must not be left, whatever the cleaning missed: C0 but tab and line feed, DEL, C1, lone surrogates, bidi controls. */
const ACTED_ON =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Takes out of a text all that a terminal acts on or people do not see; several lines stay several lines. */
export function safeText(text: string): string {
  return cleanText(text).text.replace(ACTED_ON, "");
}

/** The same in one line, cut to a number of characters. */
export function safeLine(text: string, most = 500): string {
  // Cut before it is cleaned as well: a text of megabytes is not read for one line.
  const line = safeText(text.slice(0, most * 4))
    .replace(/\s+/g, " ")
    .trim();
  const characters = line.length > most ? [...line] : [];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : line;
}

/** A text as it can stand anywhere in a page of HTML, within an attribute too. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (found) => ENTITIES[found] as string);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** A text as one word of bash, zsh and fish. What a terminal acts on is taken out before it is quoted: afterwards it would take quotes along. */
export function shellWord(text: string): string {
  return quotedWord(safeText(text));
}

/** The same for a text that holds nothing that a terminal acts on. */
export function quotedWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  // Within quotes, fish takes a backslash for itself where a quote or another one follows.
  return `'${text.replace(/\\(?=[\\']|$)|'/g, (found) => `'\\${found}'`)}'`;
}

/** Finds what hides in the strings and keys of JSON, however deep; in time linear in its size. */
export function findHidden(json: unknown): readonly TextFinding[] {
  const counts = new Map<HiddenKind, number>();
  const look = (text: string): void => {
    for (const { kind, count } of cleanText(text).findings) counts.set(kind, (counts.get(kind) ?? 0) + count);
  };
  const waiting: unknown[] = [json];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === "string") look(value);
    if (typeof value !== "object" || value === null) continue;
    if (!Array.isArray(value)) for (const key of Object.keys(value)) look(key);
    for (const member of Object.values(value)) waiting.push(member);
  }
  return counts.size === 0 ? NOTHING : Array.from(counts, ([kind, count]) => ({ kind, count }));
}
