import { joinPointer } from "../../core/json/json-pointer.ts";
import { isPlainObject } from "../../core/json/json-value.ts";

/** What a value would be as JSON text. */
export interface JsonMeasure {
  /** Length of `JSON.stringify(value)`, counted without writing it. */
  readonly characters: number;
  /** Nested arrays and objects; a scalar has none. */
  readonly depth: number;
}

interface Frame {
  readonly value: object;
  readonly keys: readonly string[] | undefined;
  readonly length: number;
  at: number;
  written: number;
  characters: number;
  depth: number;
}

/**
 * Measures a value as JSON, in one pass without recursion, and each object once however often it is shared; throws a
 * `TypeError` that names the place of anything JSON cannot hold. Properties that are `undefined` count as absent.
 */
export function measureJson(value: unknown): JsonMeasure {
  const walk = new Walk();
  const whole = walk.visit(value);
  if (whole !== undefined) return whole;
  for (;;) {
    const done = walk.step();
    if (done !== undefined) return done;
  }
}

class Walk {
  readonly #frames: Frame[] = [];
  /** Those not done yet are the ones around the current place. */
  readonly #entered = new Set<object>();
  readonly #done = new Map<object, JsonMeasure>();

  /** Measures a scalar or a known object at once; opens a frame for any other. */
  visit(value: unknown): JsonMeasure | undefined {
    if (typeof value === "object" && value !== null) return this.#done.get(value) ?? this.#enter(value);
    if (typeof value === "string") return { characters: JSON.stringify(value).length, depth: 0 };
    if (value === null) return { characters: 4, depth: 0 };
    if (typeof value === "boolean") return { characters: value ? 4 : 5, depth: 0 };
    if (typeof value === "number" && Number.isFinite(value)) {
      return { characters: JSON.stringify(value).length, depth: 0 };
    }
    throw this.#refuse(typeof value === "number" ? String(value) : `a value of type ${typeof value}`);
  }

  /** Goes on with the innermost open object; gives the measure of the whole when that is complete. */
  step(): JsonMeasure | undefined {
    const frame = this.#frames.at(-1) as Frame;
    if (frame.at < frame.length) {
      const member = this.#member(frame);
      const measured = frame.keys !== undefined && member === undefined ? undefined : this.visit(member);
      if (measured !== undefined) add(frame, measured);
      else if (member === undefined) frame.at++;
      return undefined;
    }
    this.#frames.pop();
    const { characters, depth } = frame;
    this.#done.set(frame.value, { characters, depth });
    const outer = this.#frames.at(-1);
    if (outer === undefined) return { characters, depth };
    add(outer, { characters, depth });
    return undefined;
  }

  #member({ keys, value, at }: Frame): unknown {
    return keys === undefined
      ? (value as readonly unknown[])[at]
      : (value as Record<string, unknown>)[keys[at] as string];
  }

  #enter(value: object): undefined {
    if (this.#entered.has(value)) throw this.#refuse("a reference to something that contains it");
    const isArray = Array.isArray(value);
    if (!isArray && !isPlainObject(value)) throw this.#refuse("an instance, which is not plain data");
    const keys = isArray ? undefined : Object.keys(value);
    const length = isArray ? value.length : (keys as string[]).length;
    this.#entered.add(value);
    this.#frames.push({ value, keys, length, at: 0, written: 0, characters: 2, depth: 1 });
  }

  #refuse(what: string): TypeError {
    const pointer = this.#frames.reduce(
      (place, { keys, at }) => joinPointer(place, keys === undefined ? at : (keys[at] as string)),
      "",
    );
    return new TypeError(`JSON cannot hold what is at "${pointer}": ${what}.`);
  }
}

function add(frame: Frame, member: JsonMeasure): void {
  const key = frame.keys?.[frame.at];
  const label = key === undefined ? 0 : JSON.stringify(key).length + 1;
  frame.characters += member.characters + label + (frame.written > 0 ? 1 : 0);
  frame.depth = Math.max(frame.depth, member.depth + 1);
  frame.written++;
  frame.at++;
}
