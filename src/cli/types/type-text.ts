/** A TypeScript type as text, with what is needed to put it into another one. */
export interface TypeText {
  /** Each can stand in a union as it is. */
  readonly members: readonly string[];
  /** Whether the only member is an intersection, which binds less than `[]`. */
  readonly isIntersection: boolean;
  /** How many types a union has once the names in it are looked through. */
  readonly width: number;
}

/** Beyond this, a union of the line is written below each other. */
const LINE = 100;

/** The most types of a union that intersections make; the compiler gives up at 100,000. */
const MAX_WIDTH = 1_000;

/** Makes a type of text that binds as a name or a pair of brackets does. */
export function atom(text: string, width = 1): TypeText {
  return { members: [text], isIntersection: false, width };
}

/** Any value at all. */
export const UNKNOWN: TypeText = atom("unknown");

/** No value. */
export const NEVER: TypeText = { members: [], isIntersection: false, width: 0 };

/** Writes a type. */
export function toText({ members }: TypeText): string {
  if (members.length === 0) return "never";
  const line = members.join(" | ");
  if (members.length === 1 || (line.length <= LINE && !line.includes("\n"))) return line;
  return members.map((member) => `\n  | ${indent(member)}`).join("");
}

/** Moves all lines but the first to the right; no text in a type spans lines. */
export function indent(text: string): string {
  return text.includes("\n") ? text.replace(/\n/g, "\n  ") : text;
}

/** A type that any of these fits. */
export function unionOf(types: readonly TypeText[]): TypeText {
  const members = new Set(types.flatMap((type) => type.members));
  if (members.has("unknown")) return UNKNOWN;
  const [only] = types.filter((type) => type.members.length > 0);
  const width = types.reduce((sum, type) => sum + type.width, 0);
  if (members.size === 1 && only !== undefined) return only;
  return { members: [...members], isIntersection: false, width };
}

/** A type that fits all of these; where that would be too much for the compiler, the widest are left out. */
export function intersectionOf(types: readonly TypeText[]): TypeText {
  if (types.some((type) => type.members.length === 0)) return NEVER;
  const byText = new Map<string, TypeText>();
  for (const type of types) if (type !== UNKNOWN) byText.set(toText(type), type);
  const kept: TypeText[] = [];
  let width = 1;
  for (const type of [...byText.values()].sort((a, b) => a.width - b.width)) {
    if (kept.length > 0 && width * type.width > MAX_WIDTH) break;
    kept.push(type);
    width *= type.width;
  }
  const [first] = kept;
  if (first === undefined) return UNKNOWN;
  if (kept.length === 1) return first;
  const inOrder = [...byText.values()].filter((type) => kept.includes(type));
  return { members: [inOrder.map(inIntersection).join(" & ")], isIntersection: true, width };
}

function inIntersection(type: TypeText): string {
  return type.members.length > 1 ? `(${toText(type)})` : toText(type);
}

/** A list of such items. */
export function arrayOf(item: TypeText): TypeText {
  const text = toText(item);
  return atom(item.members.length > 1 || item.isIntersection ? `(${text})[]` : `${text}[]`);
}
