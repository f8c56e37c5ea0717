import type { KeptReason } from "../protocol.ts";
import type { WrittenJson } from "./written-json.ts";

/** JSON text that is remembered for as long as there is room, or why there is none. */
export class KeptText {
  /** Absent once it is forgotten, or where it never was. */
  text: string | undefined;
  reason: KeptReason = "forgotten";
  earlier: KeptText | undefined;
  later: KeptText | undefined;

  constructor(text?: string) {
    this.text = text;
  }
}

/** Remembers texts, all of them together within a budget; the oldest are forgotten first. */
export class KeptTexts {
  readonly #most: number;
  #oldest: KeptText | undefined;
  #latest: KeptText | undefined;
  #characters = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Characters that are remembered now. */
  get characters(): number {
    return this.#characters;
  }

  /** Remembers what was written. */
  keep(written: WrittenJson): KeptText {
    if (!("text" in written)) return omitted(written.omitted);
    const kept = new KeptText(written.text);
    kept.earlier = this.#latest;
    if (this.#latest === undefined) this.#oldest = kept;
    else this.#latest.later = kept;
    this.#latest = kept;
    this.#characters += written.text.length;
    while (this.#characters > this.#most && this.#oldest !== undefined) this.forget(this.#oldest);
    return kept;
  }

  /** Lets go of a text. */
  forget(kept: KeptText): void {
    const { text, earlier, later } = kept;
    if (text === undefined) return;
    this.#characters -= text.length;
    kept.text = undefined;
    if (earlier === undefined) this.#oldest = later;
    else earlier.later = later;
    if (later === undefined) this.#latest = earlier;
    else later.earlier = earlier;
    kept.earlier = undefined;
    kept.later = undefined;
  }
}

/** Stands for a text that there never was. */
export function omitted(reason: KeptReason): KeptText {
  const kept = new KeptText();
  kept.reason = reason;
  return kept;
}

/** Reads a text that is remembered, or says why it is not. */
export function readKept<T>(
  kept: KeptText,
  read: (value: unknown) => T,
): T | { readonly omitted: KeptReason } {
  return kept.text === undefined ? { omitted: kept.reason } : read(JSON.parse(kept.text));
}
