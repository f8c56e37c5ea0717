import type { JsonSchemaView } from "../../protocol.ts";
import { type KeptInput, withoutSecrets } from "./without-secrets.ts";

/** An input that was run before. */
export interface PastInput {
  /** Unix epoch milliseconds of the last run with it. */
  readonly at: number;
  /** The input as JSON. */
  readonly text: string;
  /** Whether secrets were left out. */
  readonly isPartial: boolean;
}

/** What of the stores of browsers is used. */
export type TextStore = Pick<Storage, "getItem" | "setItem">;

/** An input with the caller at a gateway and the operation it belongs to. */
type Kept = PastInput & { readonly of: string };

const KEY = "waybill.inputs";
const MOST_INPUTS = 20;
const MOST_KEPT = 500;
const MOST_EACH = 65_536;
/** Browsers count two bytes for a character: a megabyte in all. */
const MOST_CHARACTERS = 500_000;

/** Inputs kept by the browser: those of one caller at one gateway, without secrets, the oldest let go. */
export class InputHistory {
  readonly #store: TextStore | undefined;
  readonly #scope: string;

  constructor(store: TextStore | undefined, scope: string) {
    this.#store = store;
    this.#scope = scope;
  }

  /** The inputs of an operation, the last one first. */
  inputs(operation: string): readonly PastInput[] {
    const of = this.#nameOf(operation);
    return this.#read().filter((kept) => kept.of === of);
  }

  /** The last input of an operation; nothing where there is none, or what others wrote is no JSON. */
  last(operation: string): KeptInput | undefined {
    const [past] = this.inputs(operation);
    try {
      return past && { value: JSON.parse(past.text), isPartial: past.isPartial };
    } catch {
      return undefined;
    }
  }

  /** Keeps an input, unless it is too long or secret as a whole. */
  add(operation: string, input: unknown, schema?: JsonSchemaView): void {
    const kept = withoutSecrets(schema, input);
    const text = kept && JSON.stringify(kept.value);
    if (kept === undefined || text === undefined || text.length > MOST_EACH) return;
    const earlier = this.inputs(operation).filter((past) => past.text !== text);
    const of = this.#nameOf(operation);
    this.forget(operation, [
      { of, at: Date.now(), text, isPartial: kept.isPartial },
      ...earlier.slice(0, MOST_INPUTS - 1).map((past) => ({ ...past, of })),
    ]);
  }

  /** Forgets the inputs of an operation, or puts others in their place. */
  forget(operation: string, instead: readonly Kept[] = []): void {
    const of = this.#nameOf(operation);
    let left = [...instead, ...this.#read().filter((kept) => kept.of !== of)].slice(0, MOST_KEPT);
    // A full store is tried again with half as much.
    while (!this.#write(left) && left.length > 0) left = left.slice(0, left.length / 2);
  }

  #nameOf(operation: string): string {
    return JSON.stringify([this.#scope, operation]);
  }

  #read(): readonly Kept[] {
    try {
      const found: unknown = JSON.parse(this.#store?.getItem(KEY) ?? "");
      return Array.isArray(found) ? found.filter(isKept) : [];
    } catch {
      return [];
    }
  }

  #write(left: readonly Kept[]): boolean {
    try {
      const text = JSON.stringify(left);
      if (text.length > MOST_CHARACTERS) return false;
      this.#store?.setItem(KEY, text);
      return true;
    } catch {
      return false;
    }
  }
}

/** A store of the browser, where it lets the page have one. */
export function browserStore(name: "localStorage" | "sessionStorage"): TextStore | undefined {
  try {
    return window[name];
  } catch {
    return undefined;
  }
}

/** Others may have written to the store: what does not look like ours is passed over. */
function isKept(found: Partial<Kept> | null): found is Kept {
  return typeof found?.of === "string" && typeof found.at === "number" && typeof found.text === "string";
}
