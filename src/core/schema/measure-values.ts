import type { WorkMeter } from "./compare-values.ts";

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
