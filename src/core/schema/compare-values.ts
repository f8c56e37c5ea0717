import { setOwn } from "../json/json-value.ts";

/** Tells objects that are bags of properties from dates, maps, bytes and their like, which are values. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return Object.prototype.toString.call(value) === "[object Object]";
}

/** The keys of an object that JSON would write: own, enumerable, and not `undefined`. */
export function presentKeys(value: object): string[] {
  return Object.keys(value).filter((key) => (value as Record<string, unknown>)[key] !== undefined);
}

/** Compares two values as JSON does: numbers by value, objects without regard to order, own properties only. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => isEqual(item, b[i]));
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = presentKeys(a);
  if (keys.length !== presentKeys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key]));
}

/** Finds out whether two items of a list are equal, in time that grows with what they hold and not with how it is shared. */
export function hasDuplicates(list: readonly unknown[]): boolean {
  const seen = new Set<unknown>();
  const names = new EqualityNames();
  for (const item of list) {
    const name = names.of(item);
    if (seen.has(name)) return true;
    seen.add(name);
  }
  return false;
}

/** Gives values that are equal as JSON the same name, and others another one. */
class EqualityNames {
  readonly #byText = new Map<string, string>();
  readonly #byObject = new Map<object, string>();

  of(value: unknown): string {
    if (typeof value === "string") return JSON.stringify(value);
    if (typeof value !== "object" || value === null) return `${typeof value} ${String(value)}`;
    let name = this.#byObject.get(value);
    if (name === undefined) {
      name = this.#nameOf(value);
      this.#byObject.set(value, name);
    }
    return name;
  }

  /** Objects that are no JSON are equal to themselves alone. */
  #nameOf(value: object): string {
    if (Array.isArray(value)) return this.#named(`[${value.map((item) => this.of(item)).join(",")}]`);
    if (!isRecord(value)) return `special ${this.#byObject.size}`;
    const parts = presentKeys(value).sort();
    return this.#named(`{${parts.map((key) => `${JSON.stringify(key)}:${this.of(value[key])}`).join(",")}}`);
  }

  #named(text: string): string {
    const name = this.#byText.get(text) ?? `#${this.#byText.size}`;
    this.#byText.set(text, name);
    return name;
  }
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
