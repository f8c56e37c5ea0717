import { adoptEnvelope } from "../envelope/envelope.ts";
import type { ResponseEnvelope, ResponseMeta } from "../envelope/response-meta.ts";
import { type CallError, changedError, isCallError } from "../errors/errors.ts";
import { joinPointer } from "../json/json-pointer.ts";
import { isPlainObject, setOwn } from "../json/json-value.ts";
import type { Place } from "./escaped-text.ts";
import type { SecretMask } from "./secret-mask.ts";

/** Values of one result that are named as masked; further ones are masked as well. */
const MOST_NAMED = 100;

/** Numbers below it are no secrets: those are looked for in whole numbers of 16 digits. */
const LEAST_NUMBER = 1e15;
const STAR = 0x2a;
/** Causes of causes that are looked at; those beyond are left out. */
const MOST_CAUSES = 5;

/** The value with every secret in it replaced: in texts, in keys, in bytes. Gives the same value where there is none. */
export function maskValue<T>(value: T, mask: SecretMask): T {
  return holds(value, mask) ? (new Masking(mask).value(value, "") as T) : value;
}

/** The envelope with every secret in its data and its meta replaced, each named by JSON pointer in `meta.waybill.masked`. */
export function maskEnvelope(envelope: ResponseEnvelope, mask: SecretMask): ResponseEnvelope {
  const { data, meta } = envelope;
  // Looked for first: most results hold none, and naming places costs more than looking.
  if (!holds(data, mask) && !holds(meta, mask)) return envelope;
  const masking = new Masking(mask);
  const masked = masking.value(data, "/data");
  const shown = masking.value(meta, "/meta") as ResponseMeta;
  const named = new Set([...(meta.waybill?.masked ?? []), ...masking.pointers]);
  const waybill = { ...shown.waybill, masked: [...named].slice(0, MOST_NAMED) };
  return adoptEnvelope({ data: masked, meta: { ...shown, waybill } as ResponseMeta });
}

/** The error with every secret in it replaced, its causes included; gives back what is no `CallError` as it is. */
export function maskError(thrown: unknown, mask: SecretMask): unknown {
  if (!isCallError(thrown) || mask.values.size === 0) return thrown;
  const error: CallError = thrown;
  const message = mask.mask(error.message);
  const details = maskValue(error.details, mask);
  const cause = maskCause(error.cause, mask, MOST_CAUSES);
  const isSame = message === error.message && details === error.details && cause === error.cause;
  return isSame ? error : changedError(error, { message, details, cause });
}

/** What a source answered is the cause of many errors, and a program may print it. */
function maskCause(cause: unknown, mask: SecretMask, left: number): unknown {
  if (!(cause instanceof Error)) return maskValue(cause, mask);
  if (left === 0) return undefined;
  const inner = maskCause(cause.cause, mask, left - 1);
  // The errors of libraries keep what they could not read among their members.
  const isSame = inner === cause.cause && !mask.finds(cause.message) && !holds({ ...cause }, mask);
  if (isSame) return cause;
  const masked = new Error(mask.mask(cause.message), { cause: inner });
  masked.stack = mask.mask(cause.stack ?? "");
  return named(masked, cause.name);
}

function named(error: Error, name: string): Error {
  return Object.defineProperty(error, "name", { value: name, writable: true, configurable: true });
}

/** Tells whether there is a secret anywhere in a value. */
function holds(value: unknown, mask: SecretMask): boolean {
  if (mask.values.size === 0) return false;
  if (typeof value === "string") return mask.finds(value);
  if (typeof value === "number" || typeof value === "bigint")
    return isLarge(value) && mask.finds(String(value));
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some((item) => holds(item, mask));
  if (isPlainObject(value)) {
    for (const key of Object.keys(value)) if (mask.finds(key) || holds(value[key], mask)) return true;
    return false;
  }
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return maskBytes(value, mask) !== value;
  if (value instanceof Map || value instanceof Set) return holds([...value], mask);
  return value instanceof Error && mask.finds(value.message);
}

function isLarge(value: number | bigint): boolean {
  return value >= LEAST_NUMBER || value <= -LEAST_NUMBER;
}

/** One walk through a value that holds a secret; what holds none is not copied. */
class Masking {
  readonly pointers = new Set<string>();
  readonly #mask: SecretMask;
  /** What objects were replaced by: two places that held the same one still do. */
  readonly #replaced = new Map<object, unknown>();

  constructor(mask: SecretMask) {
    this.#mask = mask;
  }

  value(value: unknown, at: string): unknown {
    if (typeof value === "string") return this.#text(value, at);
    if (typeof value === "number" || typeof value === "bigint") {
      const text = String(value);
      return isLarge(value) && this.#text(text, at) !== text ? this.#mask.mask(text) : value;
    }
    if (typeof value !== "object" || value === null) return value;
    const masked = this.#object(value, at);
    if (masked === value) return value;
    const known = this.#replaced.get(value) ?? masked;
    this.#replaced.set(value, known);
    return known;
  }

  #text(text: string, at: string): string {
    const masked = this.#mask.mask(text);
    if (masked !== text) this.#name(at);
    return masked;
  }

  #object(value: object, at: string): unknown {
    if (Array.isArray(value)) return this.#items(value, at);
    if (isPlainObject(value)) return this.#members(value, at);
    if (value instanceof Uint8Array || value instanceof ArrayBuffer) {
      const masked = maskBytes(value, this.#mask);
      if (masked !== value) this.#name(at);
      return masked;
    }
    if (value instanceof Map) return new Map(this.#items([...value], at) as [unknown, unknown][]);
    if (value instanceof Set) return new Set(this.#items([...value], at));
    if (!(value instanceof Error)) return value;
    const message = this.#text(value.message, at);
    return message === value.message ? value : named(new Error(message), value.name);
  }

  #items(items: readonly unknown[], at: string): readonly unknown[] {
    const masked = items.map((item, index) => this.value(item, joinPointer(at, index)));
    return masked.some((item, index) => item !== items[index]) ? masked : items;
  }

  #members(members: Readonly<Record<string, unknown>>, at: string): object {
    const masked: Record<string, unknown> = {};
    let isChanged = false;
    for (const [key, member] of Object.entries(members)) {
      const name = this.#mask.mask(key);
      const here = joinPointer(at, name);
      if (name !== key) this.#name(here);
      const value = this.value(member, here);
      isChanged ||= name !== key || value !== member;
      setOwn(masked, name, value);
    }
    return isChanged ? masked : members;
  }

  #name(at: string): void {
    if (this.pointers.size < MOST_NAMED) this.pointers.add(at);
  }
}

/** Secrets in bytes, in every spelling that texts may have and as UTF-8, become as many stars. */
function maskBytes(given: Uint8Array | ArrayBuffer, mask: SecretMask): Uint8Array | ArrayBuffer {
  const bytes = given instanceof Uint8Array ? given : new Uint8Array(given);
  // Each byte is one character in this encoding, so places in the text are places in the bytes.
  const places = [...mask.places(new TextDecoder("windows-1252").decode(bytes))];
  for (const value of mask.values) if (!isAscii(value)) places.push(...placesOf(value, bytes));
  if (places.length === 0) return given;
  const copy = Uint8Array.from(bytes);
  for (const { at, end } of places) copy.fill(STAR, at, end);
  return given instanceof Uint8Array ? copy : copy.buffer;
}

function isAscii(value: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every character of ASCII
  return /^[\u0000-\u007f]*$/.test(value);
}

function* placesOf(value: string, bytes: Uint8Array): Generator<Place> {
  const secret = new TextEncoder().encode(value);
  for (let at = findBytes(bytes, secret, 0); at >= 0; at = findBytes(bytes, secret, at + secret.length))
    yield { at, end: at + secret.length };
}

function findBytes(bytes: Uint8Array, sought: Uint8Array, start: number): number {
  const [first = 0] = sought;
  const last = bytes.length - sought.length;
  for (let at = bytes.indexOf(first, start); at >= 0 && at <= last; at = bytes.indexOf(first, at + 1)) {
    let length = 1;
    while (length < sought.length && bytes[at + length] === sought[length]) length += 1;
    if (length === sought.length) return at;
  }
  return -1;
}
