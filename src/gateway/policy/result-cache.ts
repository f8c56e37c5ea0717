import { outcomeOf, type ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { monotonicNow } from "../../core/execution/deadline.ts";
import { decodeEnvelope, encodeEnvelope } from "../../core/wire/wire.ts";

/** How much is kept. */
export interface CacheLimits {
  readonly cacheEntries: number;
  /** Of results written as JSON, and of their keys. */
  readonly cacheCharacters: number;
}

interface Kept {
  readonly text: string;
  readonly at: number;
}

/** Results by key; the one that was asked for longest ago goes first. They are kept as text: whoever gets one may change it. */
export class ResultCache {
  readonly #limits: CacheLimits;
  readonly #kept = new Map<string, Kept>();
  #characters = 0;

  constructor(limits: CacheLimits) {
    this.#limits = limits;
  }

  /** A copy of what is kept, unless it is older than asked for. */
  get(key: string, maxAgeMs: number): ResponseEnvelope | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    this.#drop(key, kept);
    if (monotonicNow() - kept.at >= maxAgeMs) return undefined;
    this.#put(key, kept);
    return decodeEnvelope(kept.text);
  }

  /** Keeps an ok result, where it can be written down and is not too long. */
  set(key: string, envelope: ResponseEnvelope): void {
    const text = outcomeOf(envelope) === "ok" ? writtenOrNone(envelope) : undefined;
    const { cacheEntries, cacheCharacters } = this.#limits;
    const old = this.#kept.get(key);
    if (old !== undefined) this.#drop(key, old);
    if (text === undefined || cacheEntries < 1 || key.length + text.length > cacheCharacters) return;
    this.#put(key, { text, at: monotonicNow() });
    for (const [oldest, kept] of this.#kept) {
      if (this.#kept.size <= cacheEntries && this.#characters <= cacheCharacters) break;
      this.#drop(oldest, kept);
    }
  }

  clear(): void {
    this.#kept.clear();
    this.#characters = 0;
  }

  #put(key: string, kept: Kept): void {
    this.#kept.set(key, kept);
    this.#characters += key.length + kept.text.length;
  }

  #drop(key: string, kept: Kept): void {
    this.#kept.delete(key);
    this.#characters -= key.length + kept.text.length;
  }
}

/** A copy of an envelope, for one more reader; the envelope itself where it holds what cannot be written down. */
export function copyOf(envelope: ResponseEnvelope): ResponseEnvelope {
  const text = writtenOrNone(envelope);
  return text === undefined ? envelope : decodeEnvelope(text);
}

/** Writes an envelope, or gives nothing where it cannot be read back as it is. */
function writtenOrNone(envelope: ResponseEnvelope): string | undefined {
  try {
    return encodeEnvelope(envelope);
  } catch {
    return undefined;
  }
}
