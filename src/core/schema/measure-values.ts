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
