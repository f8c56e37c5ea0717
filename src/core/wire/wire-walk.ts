import type { ErrorCode } from "../errors/error-codes.ts";
import { CallError, isCallError } from "../errors/errors.ts";
import { joinPointer } from "../json/json-pointer.ts";
import { setOwn } from "../json/json-value.ts";

/** The one key that marks what JSON cannot hold: `{"$waybill": [kind, payload]}`. */
export const WIRE_KEY = "$waybill";

/** Bounds on what crosses a wire, the same in both directions. */
export const WIRE_LIMITS = {
  /** Nested objects, arrays, maps and sets, unless the caller says otherwise. */
  depth: 512,
  /** The most a caller may ask for: beyond it the stack is at risk. */
  maxDepth: 1_000,
  /** Digits of one bigint, which are slow to read in great numbers. */
  bigintDigits: 10_000,
  /** Characters of the name or code of an error; what is longer is cut. */
  errorName: 200,
  /** Characters of the message of an error, likewise. */
  errorMessage: 8_192,
} as const;

/** How a value is written for a wire and read back. */
export interface WireOptions {
  /** Nested objects, arrays, maps and sets; from 0 to 1,000. @default 512 */
  readonly maxDepth?: number;
  /** The code of the error for what cannot cross. @default "VALIDATION_ERROR" */
  readonly code?: ErrorCode;
  /** Whether errors among the data are written, with their name and message, or refused. @default true */
  readonly errors?: boolean;
}

/** Where a conversion is, and what it is inside of. */
export interface WireWalk {
  readonly maxDepth: number;
  readonly code: ErrorCode;
  readonly errors: boolean;
  /** The key taken at each depth; entries past the current depth are stale. */
  readonly path: (string | number)[];
  /** The container open at each depth, likewise. */
  readonly open: object[];
}

/** Converts one value; `depth` counts the containers around it. */
export type Convert = (value: unknown, depth: number, walk: WireWalk) => unknown;

/** Longest pointer an error shows: keys are the sender's text. */
const SHOWN_POINTER = 200;

/** Runs a conversion; whatever goes wrong comes out as a `CallError`. */
export function runWalk(convert: Convert, value: unknown, options: WireOptions): unknown {
  const { maxDepth = WIRE_LIMITS.depth, code = "VALIDATION_ERROR", errors = true } = options;
  if (!Number.isInteger(maxDepth) || maxDepth < 0 || maxDepth > WIRE_LIMITS.maxDepth) {
    throw new TypeError(`maxDepth must be an integer from 0 to ${WIRE_LIMITS.maxDepth}.`);
  }
  try {
    return convert(value, 0, { maxDepth, code, errors, path: [], open: [] });
  } catch (thrown) {
    if (isCallError(thrown)) throw thrown;
    throw new CallError(code, "A value could not be read while it was being converted for a wire.", {
      cause: thrown,
    });
  }
}

/** Throws the error for a value that cannot cross, naming its place, what it is, and the fix. */
export function refuse(walk: WireWalk, depth: number, what: string): never {
  const pointer = walk.path.slice(0, depth).reduce<string>(joinPointer, "");
  const shown = pointer.length > SHOWN_POINTER ? `${pointer.slice(0, SHOWN_POINTER)}…` : pointer;
  throw new CallError(walk.code, `The value at "${shown}" cannot cross a wire: ${what}.`, {
    details: { pointer: shown },
  });
}

/** Opens a container, unless it is too deep or inside itself. */
export function enter(container: object, depth: number, walk: WireWalk): void {
  for (let i = 0; i < depth; i++) {
    if (walk.open[i] === container) refuse(walk, depth, "it contains itself; send ids instead of references");
  }
  if (depth >= walk.maxDepth) {
    refuse(walk, depth, `it is nested deeper than ${walk.maxDepth} levels; flatten it`);
  }
  walk.open[depth] = container;
}

/** Converts every item; the same array back when none changes, unless a copy is asked for. */
export function mapItems(
  items: readonly unknown[],
  depth: number,
  walk: WireWalk,
  convert: Convert,
  always = false,
): unknown[] {
  let copy: unknown[] | undefined = always ? [] : undefined;
  for (let i = 0; i < items.length; i++) {
    walk.path[depth] = i;
    const item = items[i];
    const converted = convert(item, depth + 1, walk);
    if (copy === undefined && converted !== item) copy = Array.from({ length: i }, (_, at) => items[at]);
    copy?.push(converted);
  }
  return copy ?? (items as unknown[]);
}

/** Converts every own enumerable member; the same object back when none changes, unless a copy is asked for. */
export function mapMembers(
  source: Record<string, unknown>,
  depth: number,
  walk: WireWalk,
  convert: Convert,
  always = false,
): Record<string, unknown> {
  const keys = Object.keys(source);
  let copy: Record<string, unknown> | undefined = always ? {} : undefined;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    walk.path[depth] = key;
    const member = source[key];
    const converted = convert(member, depth + 1, walk);
    if (copy === undefined && converted !== member) {
      copy = {};
      for (const earlier of keys.slice(0, i)) setOwn(copy, earlier, source[earlier]);
    }
    if (copy !== undefined) setOwn(copy, key, converted);
  }
  return copy ?? source;
}
