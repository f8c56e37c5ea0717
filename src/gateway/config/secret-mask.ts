/** Shorter values would mask what is no secret. */
const LEAST_LENGTH = 4;

/** Knows the values that must not be shown, and takes them out of texts. */
export class SecretMask {
  readonly #values = new Set<string>();

  /** Makes a value a secret from now on; very short ones cannot be told from other text and are left out. */
  add(value: string): void {
    if (value.length >= LEAST_LENGTH) this.#values.add(value);
  }

  /** The text with every secret in it replaced by `***`. */
  mask(text: string): string {
    let masked = text;
    const longestFirst = [...this.#values].sort((a, b) => b.length - a.length);
    for (const value of longestFirst) masked = masked.replaceAll(value, "***");
    return masked;
  }
}
