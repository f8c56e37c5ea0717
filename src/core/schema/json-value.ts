/** Compares two values as JSON does: numbers by value, objects without regard to order, own properties only. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => isEqual(item, b[i]));
  }
  if (Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  return keys.every((key) => Object.hasOwn(right, key) && isEqual(left[key], right[key]));
}

/** Finds out whether two items of a list are equal, in one pass over scalars and by canonical text over the rest. */
export function hasDuplicates(list: readonly unknown[]): boolean {
  const seen = new Set<unknown>();
  for (const item of list) {
    const key = typeof item === "object" && item !== null ? canonical(item) : scalarKey(item);
    if (seen.has(key)) return true;
    seen.add(key);
  }
  return false;
}

/** Strings are marked so that they cannot meet the canonical text of an object. */
function scalarKey(item: unknown): unknown {
  return typeof item === "string" ? `"${item}` : item;
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? String(value);
  const source = value as Record<string, unknown>;
  const keys = Object.keys(source).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(source[key])}`).join(",")}}`;
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

/** Sets a property even when its name is `__proto__`, which plain assignment would take for the prototype. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== "__proto__") target[key] = value;
  else Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
}

/** Counts code points, which is what JSON Schema means by length. */
export function countCodePoints(text: string): number {
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
export function isMultipleOf(value: number, step: number): boolean {
  const remainder = value % step;
  if (remainder === 0) return true;
  if (Number.isSafeInteger(value) && Number.isSafeInteger(step)) return false;
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
