import { createHash } from "node:crypto";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { toWire } from "../../core/wire/wire.ts";
import { digestOf } from "../../http/caller-digest.ts";

/** Longer texts are told apart by their hash. */
const LONGEST_PLAIN = 100;

const NUMBERS = new WeakMap<AnyOperation, number>();
let lastNumber = 0;

/**
 * Names what a call asks for: this very operation, this caller with all they may do, this input. Nothing where the input cannot be
 * compared. An operation that took the place of another has other keys.
 */
export function callKey(
  operation: AnyOperation,
  context: OperationContext,
  input: unknown,
): string | undefined {
  const text = inputText(input);
  return text && `${numberOf(operation)} ${digestOf(context.identity)} ${text}`;
}

/** Writes an input so that equal ones are written the same, whatever the order of their members; nothing where that cannot be done. */
export function inputText(input: unknown): string | undefined {
  try {
    const text = canonical(toWire(input));
    return text.length <= LONGEST_PLAIN ? text : createHash("sha256").update(text).digest("base64");
  } catch {
    return undefined;
  }
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isPlainObject(value)) return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join()}}`;
}

function numberOf(operation: AnyOperation): number {
  const known = NUMBERS.get(operation);
  if (known !== undefined) return known;
  NUMBERS.set(operation, ++lastNumber);
  return lastNumber;
}
