import { joinPointer } from "../../../core/json/json-pointer.ts";
import type { SchemaIssue } from "../../../core/schema/schema-issue.ts";

const MOST_FOUND = 20;
const LONGEST_SHOWN = 100;
/** Integers that are changed have sixteen digits at least, and what becomes endless a large exponent. */
const SUSPECT = /[0-9]{16}|[0-9][eE]\+?[0-9]{3}/;

/** A list or an object that is being read, and where. */
interface Level {
  readonly isList: boolean;
  /** How many items of a list came before. */
  index: number;
  /** The last name in an object, as it is written there. */
  name: string;
}

/** Finds the numbers of valid JSON text that no JavaScript number can be: integers past 2^53 and what is past any. In linear time. */
export function findInexactNumbers(text: string): readonly SchemaIssue[] {
  return SUSPECT.test(text) ? scan(text) : [];
}

const TOKEN = /["{}[\],:]|-?[0-9][-+.0-9eE]*/g;

function scan(text: string): readonly SchemaIssue[] {
  const found: SchemaIssue[] = [];
  const levels: Level[] = [];
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match !== null && found.length < MOST_FOUND; match = TOKEN.exec(text)) {
    const [token] = match;
    const level = levels.at(-1);
    switch (token) {
      case '"': {
        const end = stringEnd(text, match.index);
        if (level !== undefined) level.name = text.slice(match.index, end);
        TOKEN.lastIndex = end;
        break;
      }
      case "{":
      case "[":
        levels.push({ isList: token === "[", index: 0, name: '""' });
        break;
      case "}":
      case "]":
        levels.pop();
        break;
      case ",":
        if (level !== undefined) level.index += 1;
        break;
      case ":":
        break;
      default:
        if (isInexact(token)) found.push(toIssue(token, levels));
    }
  }
  return found;
}

/** Where a string that begins at a quote is over. */
function stringEnd(text: string, start: number): number {
  let at = start;
  for (;;) {
    at = text.indexOf('"', at + 1);
    if (at === -1) return text.length;
    let before = at;
    while (text[before - 1] === "\\") before -= 1;
    if ((at - before) % 2 === 0) return at + 1;
  }
}

/** Fractions are never exact, and nobody expects it of them. */
function isInexact(token: string): boolean {
  const value = Number(token);
  if (!Number.isFinite(value)) return true;
  return token.length >= 16 && /^-?[0-9]+$/.test(token) && BigInt(value) !== BigInt(token);
}

function toIssue(token: string, levels: readonly Level[]): SchemaIssue {
  const pointer = levels.reduce(
    (above, { isList, index, name }) => joinPointer(above, isList ? index : shownName(name)),
    "",
  );
  const found = token.length > LONGEST_SHOWN ? `${token.slice(0, LONGEST_SHOWN)}…` : token;
  return { pointer, expected: "a number that can be kept exactly", found };
}

/** A name may be as long as the body, and be needed for every number in it. */
function shownName(written: string): string {
  if (written.length <= LONGEST_SHOWN) return String(JSON.parse(written));
  return `${written.slice(1, LONGEST_SHOWN)}…`;
}
