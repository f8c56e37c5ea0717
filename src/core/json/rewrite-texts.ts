import { joinPointer } from "./json-pointer.ts";
import { isPlainObject, setOwn } from "./json-value.ts";

/** What becomes of the texts in a value. */
export interface TextRewriter {
  /** Gives what takes the place of a text; `key` is the name of the member it stands in, where it stands in one. */
  text(text: string, at: string, key?: string): string;
  /** Gives what takes the place of the name of a member, and the name that pointers show it by. */
  key(name: string, at: string): { readonly name: string; readonly shown: string };
  /** Gives what takes the place of bytes. @default they stay */
  bytes?(bytes: Uint8Array | ArrayBuffer, at: string): Uint8Array | ArrayBuffer;
  /** Numbers of at least this size, with either sign, are taken for texts of digits. */
  readonly leastNumber: number;
}

/**
 * Rewrites every text in a value: in lists, plain objects, maps, sets, and messages of errors. A value in which nothing changes is given
 * back as it is; two places that held the same object still do.
 */
export function rewriteTexts(value: unknown, at: string, rewriter: TextRewriter): unknown {
  return new Rewriting(rewriter).value(value, at, undefined);
}

class Rewriting {
  readonly #rewriter: TextRewriter;
  readonly #replaced = new Map<object, unknown>();

  constructor(rewriter: TextRewriter) {
    this.#rewriter = rewriter;
  }

  value(value: unknown, at: string, key: string | undefined): unknown {
    if (typeof value === "string") return this.#rewriter.text(value, at, key);
    if (typeof value === "number" || typeof value === "bigint") return this.#number(value, at, key);
    if (typeof value !== "object" || value === null) return value;
    const rewritten = this.#object(value, at);
    if (rewritten === value) return value;
    const known = this.#replaced.get(value) ?? rewritten;
    this.#replaced.set(value, known);
    return known;
  }

  #number(value: number | bigint, at: string, key: string | undefined): unknown {
    const { leastNumber } = this.#rewriter;
    if (value < leastNumber && value > -leastNumber) return value;
    const text = String(value);
    const rewritten = this.#rewriter.text(text, at, key);
    return rewritten === text ? value : rewritten;
  }

  #object(value: object, at: string): unknown {
    if (Array.isArray(value)) return this.#items(value, at);
    if (isPlainObject(value)) return this.#members(value, at);
    if (value instanceof Uint8Array || value instanceof ArrayBuffer)
      return this.#rewriter.bytes?.(value, at) ?? value;
    if (value instanceof Map) return new Map(this.#items([...value], at) as [unknown, unknown][]);
    if (value instanceof Set) return new Set(this.#items([...value], at));
    if (!(value instanceof Error)) return value;
    const message = this.#rewriter.text(value.message, at);
    if (message === value.message) return value;
    return Object.defineProperty(new Error(message), "name", {
      value: value.name,
      writable: true,
      configurable: true,
    });
  }

  #items(items: readonly unknown[], at: string): readonly unknown[] {
    const rewritten = items.map((item, index) => this.value(item, joinPointer(at, index), undefined));
    return rewritten.some((item, index) => item !== items[index]) ? rewritten : items;
  }

  #members(members: Readonly<Record<string, unknown>>, at: string): object {
    const rewritten: Record<string, unknown> = {};
    const times = new Map<string, number>();
    let isChanged = false;
    for (const [key, member] of Object.entries(members)) {
      const given = this.#rewriter.key(key, at);
      let { name, shown } = given;
      // Names that are no longer told apart are numbered, so that no member takes the place of another.
      while (Object.hasOwn(rewritten, name)) {
        const count = (times.get(given.name) ?? 1) + 1;
        times.set(given.name, count);
        [name, shown] = [`${given.name} (${count})`, `${given.shown} (${count})`];
      }
      const value = this.value(member, joinPointer(at, shown), key);
      isChanged ||= name !== key || value !== member;
      setOwn(rewritten, name, value);
    }
    return isChanged ? rewritten : members;
  }
}
