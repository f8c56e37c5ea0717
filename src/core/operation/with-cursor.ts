import type { KeepLiterals } from "../json/json-value.ts";

/** A value yielded by a subscription together with where the subscription can be taken up again. */
export class CursoredValue<T = unknown> {
  readonly value: T;
  readonly cursor: string;

  constructor(value: T, cursor: string) {
    if (typeof cursor !== "string") throw new TypeError("A cursor must be a string.");
    this.value = value;
    this.cursor = cursor;
    Object.freeze(this);
  }
}

/** Attaches a cursor to a value a subscription yields; it travels in `meta.waybill.cursor`. */
export function withCursor<T extends KeepLiterals>(value: T, cursor: string): CursoredValue<T> {
  return new CursoredValue(value, cursor);
}
