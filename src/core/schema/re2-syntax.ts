const ESCAPE =
  /\\(?:([pP])\{([^}]*)\}|u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|c([A-Za-z])|([\s\S]))/y;

const NAMED_GROUP = /^\(\?<[^=!>][^>]*>/;
const MAX_GROUP_NAME = 100;

/** What ECMAScript means by `\s`, which RE2 reads as ASCII only. */
const SPACE =
  "\\t\\n\\x{b}\\f\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";
const NOT_SPACE =
  "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}";
const LINE_END = "\\n\\r\\x{2028}\\x{2029}";
const CONTROL: Readonly<Record<string, string>> = {
  t: "\\t",
  n: "\\n",
  r: "\\r",
  f: "\\f",
  v: "\\x{b}",
  0: "\\x{0}",
};

/** Rewrites an ECMAScript pattern for RE2 with the same meaning; undefined when RE2 has no way to say it. */
export function toRe2Syntax(source: string): string | undefined {
  let result = "";
  let inClass = false;
  for (let at = 0; at < source.length; ) {
    const character = source[at] as string;
    if (character === "\\") {
      ESCAPE.lastIndex = at;
      const match = ESCAPE.exec(source);
      const escaped = match === null ? undefined : rewriteEscape(match, inClass);
      if (escaped === undefined) return undefined;
      result += escaped;
      at = ESCAPE.lastIndex;
      continue;
    }
    if (!inClass && character === "(") {
      const name = NAMED_GROUP.exec(source.slice(at, at + MAX_GROUP_NAME));
      if (name === null && !isPlainGroup(source, at)) return undefined;
      // Nothing refers back to the name, so the group can go without.
      at += name === null ? 0 : name[0].length - 1;
    }
    result += inClass ? rewriteInClass(character) : rewriteOutside(character);
    if (!inClass && character === "[") {
      const rest = source.slice(at + 1);
      // `[]` never matches and `[^]` always does; RE2 has neither.
      if (rest.startsWith("]") || rest.startsWith("^]")) return undefined;
      inClass = true;
      if (rest.startsWith("^")) {
        result += "^";
        at++;
      }
    } else if (character === "]") inClass = false;
    at++;
  }
  return result;
}

function isPlainGroup(source: string, at: number): boolean {
  return source[at + 1] !== "?" || source[at + 2] === ":";
}

function rewriteOutside(character: string): string {
  return character === "." ? `[^${LINE_END}]` : character;
}

/** RE2 reads `[:` inside a class as the start of a named class. */
function rewriteInClass(character: string): string {
  return character === "[" ? "\\[" : character;
}

function rewriteEscape(match: RegExpExecArray, inClass: boolean): string | undefined {
  const [text, property, name, long, short, byte, control, single] = match;
  if (property !== undefined) return text;
  const hex = long ?? short ?? byte;
  if (hex !== undefined) return isSurrogate(hex) ? undefined : `\\x{${hex}}`;
  if (control !== undefined) return `\\x{${(control.charCodeAt(0) % 32).toString(16)}}`;
  if (single === undefined || name !== undefined) return undefined;
  if (single === "s") return inClass ? SPACE : `[${SPACE}]`;
  if (single === "S") return inClass ? NOT_SPACE : `[^${SPACE}]`;
  if ("dDwW".includes(single)) return text;
  if (single === "b" || single === "B") return inClass ? (single === "b" ? "\\x{8}" : undefined) : text;
  if (Object.hasOwn(CONTROL, single)) return CONTROL[single];
  if (/[A-Za-z0-9]/.test(single)) return undefined;
  return single.charCodeAt(0) < 128 ? text : single;
}

function isSurrogate(hex: string): boolean {
  const code = Number.parseInt(hex, 16);
  return code >= 0xd800 && code <= 0xdfff;
}
