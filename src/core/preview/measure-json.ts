import { joinPointer } from "../json/json-pointer.ts";
import { isPlainObject } from "../json/json-value.ts";

/** What a value would be as JSON text. */
export interface JsonMeasure {
  /** Length of `JSON.stringify(value)`, counted without writing it. */
  readonly characters: number;
  /** Nested arrays and objects; a scalar has none. */
  readonly depth: number;
}

/** The measure of an array or object, and what it is at most made of. */
export interface PartMeasure extends JsonMeasure {
  /** Items of the longest array in it. */
  readonly items: number;
  /** UTF-16 units of the longest string in it. */
  readonly text: number;
  /** Whether JSON leaves nothing of it out: no property in it is undefined. */
  readonly isComplete: boolean;
}

/** A value measured, with the measure of each array and object in it. */
export interface MeasuredJson extends JsonMeasure {
  readonly parts: ReadonlyMap<object, PartMeasure>;
  /** How many values it is made of, those in shared parts counted once. */
  readonly values: number;
}

/** What JSON may have to escape; a surrogate only where it stands alone. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;

/** Longer texts are written rather than looked through first. */
const LOOKED_THROUGH = 1_000;

/** The length of a text as JSON, quotes included. */
export function jsonLength(text: string): number {
  const isPlain = text.length <= LOOKED_THROUGH && !ESCAPED.test(text);
  return isPlain ? text.length + 2 : JSON.stringify(text).length;
}

/** Measures a value as `measureParts` does, for callers that only want to know how much there is. */
export function measureJson(value: unknown): JsonMeasure {
  const { characters, depth } = measureParts(value);
  return { characters, depth };
}

/**
 * Measures a value as JSON, in one pass without recursion, and each object once however often it is shared; throws a
 * `TypeError` that names the place of anything JSON cannot hold. Properties that are `undefined` count as absent.
 */
export function measureParts(value: unknown): MeasuredJson {
  const walk = new Walk();
  if (typeof value !== "object" || value === null) {
    return { characters: walk.measureScalar(value), depth: 0, parts: walk.parts, values: 1 };
  }
  walk.enter(value);
  for (;;) {
    const whole = walk.step();
    if (whole === undefined) continue;
    const { parts, values } = walk;
    return { characters: whole.characters, depth: whole.depth, parts, values };
  }
}

interface Frame {
  readonly value: object;
  readonly keys: readonly string[] | undefined;
  readonly length: number;
  at: number;
  written: number;
  characters: number;
  depth: number;
  items: number;
  text: number;
  isComplete: boolean;
}

class Walk {
  readonly parts = new Map<object, PartMeasure>();
  values = 1;
  readonly #frames: Frame[] = [];
  /** Those not measured yet are the ones around the current place. */
  readonly #entered = new Set<object>();

  /** Goes on with the innermost open object; gives the measure of the whole when that is complete. */
  step(): PartMeasure | undefined {
    const frame = this.#frames.at(-1) as Frame;
    const { keys, value } = frame;
    for (; frame.at < frame.length; frame.at++) {
      const member: unknown =
        keys === undefined
          ? (value as readonly unknown[])[frame.at]
          : (value as Record<string, unknown>)[keys[frame.at] as string];
      if (typeof member === "object" && member !== null) {
        const known = this.parts.get(member);
        if (known === undefined) {
          this.enter(member);
          return undefined;
        }
        addPart(frame, known);
      } else if (member === undefined && keys !== undefined) frame.isComplete = false;
      else {
        addCharacters(frame, this.measureScalar(member));
        if (typeof member === "string" && member.length > frame.text) frame.text = member.length;
      }
    }
    this.#frames.pop();
    const { characters, depth, items, text, isComplete } = frame;
    const done: PartMeasure = { characters, depth, items, text, isComplete };
    this.parts.set(value, done);
    const outer = this.#frames.at(-1);
    if (outer === undefined) return done;
    addPart(outer, done);
    outer.at++;
    return undefined;
  }

  /** Opens an array or a plain object. */
  enter(value: object): void {
    if (this.#entered.has(value)) throw this.#refuse("a reference to something that contains it");
    const isArray = Array.isArray(value);
    if (!isArray && !isPlainObject(value)) throw this.#refuse("an instance, which is not plain data");
    const keys = isArray ? undefined : Object.keys(value);
    const length = isArray ? value.length : (keys as string[]).length;
    this.values += length;
    this.#entered.add(value);
    this.#frames.push({
      value,
      keys,
      length,
      at: 0,
      written: 0,
      characters: 2,
      depth: 1,
      items: isArray ? length : 0,
      text: 0,
      isComplete: true,
    });
  }

  measureScalar(value: unknown): number {
    if (typeof value === "string") return jsonLength(value);
    if (typeof value === "number" && Number.isFinite(value)) return String(value).length;
    if (typeof value === "boolean") return value ? 4 : 5;
    if (value === null) return 4;
    throw this.#refuse(typeof value === "number" ? String(value) : `a value of type ${typeof value}`);
  }

  #refuse(what: string): TypeError {
    const pointer = this.#frames.reduce(
      (place, { keys, at }) => joinPointer(place, keys === undefined ? at : (keys[at] as string)),
      "",
    );
    return new TypeError(`JSON cannot hold what is at "${pointer}": ${what}.`);
  }
}

function addPart(frame: Frame, part: PartMeasure): void {
  addCharacters(frame, part.characters);
  frame.depth = Math.max(frame.depth, part.depth + 1);
  frame.items = Math.max(frame.items, part.items);
  frame.text = Math.max(frame.text, part.text);
  frame.isComplete &&= part.isComplete;
}

/** Counts one more member, with its name and the comma before it. */
function addCharacters(frame: Frame, characters: number): void {
  const key = frame.keys?.[frame.at];
  const label = key === undefined ? 0 : jsonLength(key) + 1;
  frame.characters += characters + label + (frame.written > 0 ? 1 : 0);
  frame.written++;
}
