import { setOwn } from "../json/json-value.ts";

/** Tells objects that are bags of properties from dates, maps, bytes and their like, which are values. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return Object.prototype.toString.call(value) === "[object Object]";
}

/** The keys of an object that JSON would write: own, enumerable, and not `undefined`. */
export function presentKeys(value: object): string[] {
  return Object.keys(value).filter((key) => (value as Record<string, unknown>)[key] !== undefined);
}

/** What work is counted with: it throws once there was too much. */
export interface WorkMeter {
  step(cost?: number): void;
}

/** What counts the work of comparing objects. */
export interface KeyMeter extends WorkMeter {
  /** The keys of an object that JSON would write, counted as work; those of a large one are listed once. */
  keysOf(value: object): readonly string[];
}

/** Compares two values as JSON does: numbers by value, objects without regard to order, own properties only. */
export function isEqual(a: unknown, b: unknown, meter?: KeyMeter): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    meter?.step(a.length);
    return a.every((item, i) => isEqual(item, b[i], meter));
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = meter?.keysOf(a) ?? presentKeys(a);
  const others = (meter?.keysOf(b) ?? presentKeys(b)).length;
  if (keys.length !== others) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key], meter));
}

/** Finds out whether two items of a list are equal, in time that grows with what they hold and not with how it is shared. */
export function hasDuplicates(list: readonly unknown[], meter?: KeyMeter): boolean {
  const table = new EqualityTable();
  const seen = new Set<number>();
  for (const item of list) {
    const id = table.add(item, meter);
    if (seen.has(id)) return true;
    seen.add(id);
  }
  return false;
}

/** Allowed values, of `enum` or `const`, found in time that does not grow with their number. */
export class AllowedValues {
  readonly #scalars: ReadonlySet<unknown>;
  readonly #table: EqualityTable | undefined;
  readonly #ids = new Set<number>();

  constructor(values: readonly unknown[]) {
    const objects = values.filter((value) => typeof value === "object" && value !== null);
    this.#scalars = new Set(values);
    if (objects.length === 0) return;
    this.#table = new EqualityTable();
    for (const value of objects) this.#ids.add(this.#table.add(value));
  }

  has(value: unknown, meter?: KeyMeter): boolean {
    if (typeof value !== "object" || value === null) return this.#scalars.has(value);
    const id = this.#table?.find(value, meter);
    return id !== undefined && this.#ids.has(id);
  }
}

/** Gives values that are equal as JSON the same number, and others another one. */
class EqualityTable {
  readonly #scalars = new Map<unknown, number>();
  readonly #byText = new Map<string, number>();
  readonly #byObject = new Map<object, number>();
  #numbers = 0;
  /** Items or properties of the largest container that was added, and nesting of the deepest: a value beyond is not in here. */
  #widest = 0;
  #deepest = 0;

  /** The number of a value, which it has from now on. */
  add(value: unknown, meter?: KeyMeter, depth = 0): number {
    if (typeof value !== "object" || value === null) return this.#known(this.#scalars, value);
    const known = this.#byObject.get(value);
    if (known !== undefined) return known;
    this.#deepest = Math.max(this.#deepest, depth);
    const text = textOf(value, meter, Number.POSITIVE_INFINITY, (part) => this.add(part, meter, depth + 1));
    // Objects that are no JSON are equal to themselves alone.
    const id = text === undefined ? this.#numbers++ : this.#known(this.#byText, text);
    this.#byObject.set(value, id);
    this.#widest = Math.max(this.#widest, Array.isArray(value) ? value.length : Object.keys(value).length);
    return id;
  }

  /** The number of a value that is in here; undefined for any other, as soon as one part of it is not. */
  find(value: unknown, meter?: KeyMeter, depth = 0): number | undefined {
    if (typeof value !== "object" || value === null) return this.#scalars.get(value);
    if (depth > this.#deepest) return undefined;
    const text = textOf(value, meter, this.#widest, (part) => this.find(part, meter, depth + 1));
    return text === undefined ? undefined : this.#byText.get(text);
  }

  #known<K>(numbers: Map<K, number>, key: K): number {
    const known = numbers.get(key) ?? this.#numbers++;
    numbers.set(key, known);
    return known;
  }
}

/** A container written with the numbers of its parts; undefined where one has none, for too many, and for what is no JSON. */
function textOf(
  value: object,
  meter: KeyMeter | undefined,
  widest: number,
  numberOf: (part: unknown) => number | undefined,
): string | undefined {
  if (Array.isArray(value)) {
    if (value.length > widest) return undefined;
    meter?.step(value.length + 1);
    let text = "[";
    for (const item of value) {
      const id = numberOf(item);
      if (id === undefined) return undefined;
      text += `${id},`;
    }
    return text;
  }
  if (!isRecord(value)) return undefined;
  const keys = meter?.keysOf(value) ?? presentKeys(value);
  meter?.step(1);
  if (keys.length > widest) return undefined;
  meter?.step(keys.length);
  let text = "{";
  for (const key of [...keys].sort()) {
    const id = numberOf(value[key]);
    if (id === undefined) return undefined;
    text += `${JSON.stringify(key)}:${id},`;
  }
  return text;
}

/** Copies JSON data so that the copy shares nothing with the original. */
export function cloneJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(cloneJson);
  if (typeof value !== "object" || value === null) return value;
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(value))
    setOwn(result, key, cloneJson((value as Record<string, unknown>)[key]));
  return result;
}

/** Characters looked at that count as one step of work. */
const CHARACTERS_PER_STEP = 32;

/** Steps of work that dividing two decimal numbers counts as. */
const DECIMAL_STEPS = 16;

/** Counts code points, which is what JSON Schema means by length. */
export function countCodePoints(text: string, meter?: WorkMeter): number {
  if (text.length >= CHARACTERS_PER_STEP) meter?.step(Math.floor(text.length / CHARACTERS_PER_STEP));
  let count = text.length;
  for (let i = 0; i < text.length - 1; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0xd800 || unit > 0xdbff) continue;
    const next = text.charCodeAt(i + 1);
    if (next >= 0xdc00 && next <= 0xdfff) {
      count--;
      i++;
    }
  }
  return count;
}

/** Tells whether `value` is a whole multiple of `step`, exactly, as decimal numbers are written. */
export function isMultipleOf(value: number, step: number, meter?: WorkMeter): boolean {
  const remainder = value % step;
  if (remainder === 0) return true;
  if (Number.isSafeInteger(value) && Number.isSafeInteger(step)) return false;
  meter?.step(DECIMAL_STEPS);
  const [digits, scale] = toDecimal(value);
  const [stepDigits, stepScale] = toDecimal(step);
  const low = Math.min(scale, stepScale);
  return (digits * 10n ** BigInt(scale - low)) % (stepDigits * 10n ** BigInt(stepScale - low)) === 0n;
}

/** Splits a finite number into digits and a power of ten. */
function toDecimal(value: number): [digits: bigint, scale: number] {
  const [mantissa = "0", exponent = "0"] = value.toString().split("e");
  const [whole = "0", fraction = ""] = mantissa.split(".");
  return [BigInt(whole + fraction), Number(exponent) - fraction.length];
}

/** Parts counted at most; more would let the work of one value go beyond what can be counted. */
const MOST_PARTS = 50_000_000;
/** Characters of text that count as one part. */
const CHARACTERS_PER_PART = 4;

/** Counts the parts of a value: items, names, values and text by length. What is shared is counted once. */
export function countParts(value: unknown, depth: number): number {
  const seen = new Set<object>();
  let parts = 0;
  const text = (length: number) => {
    parts += 1 + Math.floor(length / CHARACTERS_PER_PART);
  };
  const count = (part: unknown, left: number) => {
    if (parts >= MOST_PARTS) return;
    if (typeof part === "string") return text(part.length);
    parts++;
    if (typeof part !== "object" || part === null || left === 0 || seen.has(part)) return;
    seen.add(part);
    if (Array.isArray(part)) {
      for (const item of part) count(item, left - 1);
      return;
    }
    for (const key of Object.keys(part)) {
      text(key.length);
      count((part as Record<string, unknown>)[key], left - 1);
    }
  };
  try {
    count(value, depth);
  } catch {
    // What cannot be read is not counted; checking the value says why.
  }
  return Math.min(parts, MOST_PARTS);
}
