/** Anything JSON text can hold. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/**
 * Any value at all, written so that the compiler keeps the literals in what is asked for by it: `{ status: "open" }` stays that, and does
 * not become `{ status: string }`. It does so wherever a literal could be wanted, and these types have one everywhere.
 */
export type KeepLiterals =
  | ("" | 0 | 0n | true)
  | { readonly [key: string]: KeepLiterals }
  | readonly KeepLiterals[]
  | []
  | NonNullable<unknown>
  | null
  | undefined;

/** True for object literals, `Object.create(null)` and what `JSON.parse` makes, of any realm; false for arrays and instances. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Sets an own property whatever its name: plain assignment would lose `__proto__`. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== "__proto__") target[key] = value;
  else Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}
