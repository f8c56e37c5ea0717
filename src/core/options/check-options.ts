import { LONGEST_DELAY } from "../execution/cancellation.ts";
import { didYouMean, nearestName } from "../text/nearest-name.ts";

/** Throws a `TypeError` that names an option and what it takes, unless it is left out or right. */
export function checkOption(name: string, value: unknown, wanted: string, isRight: boolean): void {
  if (value === undefined || isRight) return;
  throw new TypeError(`${name} must be ${wanted}; it is ${describeValue(value)}.`);
}

/** Throws a `TypeError` unless an option is left out or a number of milliseconds. */
export function checkDelay(name: string, value: unknown): void {
  const wanted = "a number of milliseconds";
  if (typeof value !== "number") checkOption(name, value, wanted, false);
  else checkOption(name, value, `${wanted}, 0 or more`, value >= 0);
}

/** Throws a `TypeError` for a name that is not known, and says which one may be meant. */
export function checkNames(given: object, known: readonly string[], prefix = ""): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined) throw unknownName(unknown, known, prefix);
}

/**
 * Throws a `TypeError` for one name that is not known, as `checkNames` does: for options that are read in the path of every call, where the
 * names are looked at without making anything. What a prototype offers, and a name whose value is undefined, are let through.
 */
export function refuseName(given: object, name: string, known: readonly string[]): void {
  const isGiven = Object.hasOwn(given, name) && (given as Record<string, unknown>)[name] !== undefined;
  if (isGiven) throw unknownName(name, known, "");
}

function unknownName(name: string, known: readonly string[], prefix: string): TypeError {
  const shown = JSON.stringify(`${prefix}${name.slice(0, 80)}`);
  const near = nearestName(name, known);
  return new TypeError(`There is no option ${shown}${didYouMean(near && `${prefix}${near}`)}`);
}

/**
 * Reads bounds: what is left out has its default, and anything but a whole number from 1 on is a `TypeError`. Times, whose names end in `Ms`, are
 * no longer than a timer takes.
 */
export function readBounds<Name extends string>(
  given: { readonly [name in Name]?: number | undefined } = {},
  defaults: Readonly<Record<Name, number>>,
): Readonly<Record<Name, number>> {
  const bounds: Record<Name, number> = { ...defaults };
  for (const name of Object.keys(defaults) as Name[]) {
    const value: unknown = given[name] ?? defaults[name];
    const most = name.endsWith("Ms") ? LONGEST_DELAY : Number.MAX_SAFE_INTEGER;
    const isRight = Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= most;
    checkOption(`limits.${name}`, value, `a whole number from 1 to ${most}`, isRight);
    bounds[name] = Number(value);
  }
  return bounds;
}

/** Throws a `TypeError` unless options are an object with no names but these. */
export function checkOptionsObject(options: unknown, known: readonly string[], prefix = ""): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const what = prefix === "" ? "The options" : prefix.slice(0, -1);
    throw new TypeError(`${what} must be an object with any of: ${known.join(", ")}.`);
  }
  checkNames(options, known, prefix);
}

/** Says what a value is without showing a text, which may be a secret. */
export function describeValue(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return Array.isArray(value) ? "a list" : `of type ${typeof value}`;
}

/**
 * Completes limits with their defaults; for one that is no whole number above 0 it throws a `TypeError` with what `wrong` says, after the
 * name of the limit.
 */
export function completeLimits<T extends { readonly [Name in keyof T]: number }>(
  defaults: T,
  given: { readonly [Name in keyof T]?: number | undefined } | undefined,
  wrong: (value: unknown) => string,
): { readonly [Name in keyof T]: number } {
  const limits: { [Name in keyof T]: number } = { ...defaults };
  for (const name of Object.keys(defaults) as (keyof T & string)[]) {
    const value: number = given?.[name] ?? defaults[name];
    if (!Number.isSafeInteger(value) || value < 1) throw new TypeError(`limits.${name} ${wrong(value)}.`);
    limits[name] = value;
  }
  return limits;
}
