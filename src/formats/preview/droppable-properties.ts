import { joinPointer } from "../../core/json/json-pointer.ts";

interface Property {
  readonly pointer: string;
  /** Length of the property in JSON with its name, and without the comma that may go too. */
  readonly characters: number;
}

/**
 * Chooses properties to leave out so that JSON gets short enough: the smallest that suffices alone, else the largest
 * ones together; undefined where all of them would not do. `isKept` is asked about places, with `*` for indices.
 */
export function chooseDrops(
  data: unknown,
  maxCharacters: number,
  isKept: (place: string) => boolean,
): ReadonlySet<string> | undefined {
  const properties: Property[] = [];
  const characters = collect(data, "", "", isKept, properties);
  const excess = characters - maxCharacters;
  if (excess <= 0) return new Set();
  properties.sort((a, b) => b.characters - a.characters);
  const alone = properties.findLast((property) => property.characters >= excess);
  return alone === undefined ? chooseSeveral(properties, excess) : new Set([alone.pointer]);
}

function chooseSeveral(properties: readonly Property[], excess: number): ReadonlySet<string> | undefined {
  const chosen = new Set<string>();
  const touched = new Set<string>();
  let left = excess;
  for (const { pointer, characters } of properties) {
    if (left <= 0) break;
    if (isWithin(pointer, chosen)) continue;
    const parent = pointer.slice(0, pointer.lastIndexOf("/"));
    // An object has one comma less than properties.
    left -= characters + (touched.has(parent) ? 1 : 0);
    chosen.add(pointer);
    touched.add(parent);
  }
  return left <= 0 ? chosen : undefined;
}

/** A property within one that goes already frees nothing more. */
function isWithin(pointer: string, chosen: ReadonlySet<string>): boolean {
  for (let end = pointer.lastIndexOf("/"); end > 0; end = pointer.lastIndexOf("/", end - 1)) {
    if (chosen.has(pointer.slice(0, end))) return true;
  }
  return false;
}

/** Gathers the properties that may go, and gives the length of all as JSON. */
function collect(
  value: unknown,
  pointer: string,
  place: string,
  isKept: (place: string) => boolean,
  into: Property[],
): number {
  if (typeof value !== "object" || value === null) return JSON.stringify(value).length;
  const isArray = Array.isArray(value);
  let characters = 2;
  for (const [key, member] of Object.entries(value)) {
    const at = joinPointer(pointer, key);
    const memberPlace = joinPointer(place, isArray ? "*" : key);
    const own =
      collect(member, at, memberPlace, isKept, into) + 1 + (isArray ? 0 : JSON.stringify(key).length + 1);
    if (!isArray && !isKept(memberPlace)) into.push({ pointer: at, characters: own - 1 });
    characters += own;
  }
  return characters - (characters > 2 ? 1 : 0);
}
