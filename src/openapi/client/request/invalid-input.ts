import { CallError } from "../../../core/errors/errors.ts";
import { joinPointer } from "../../../core/json/json-pointer.ts";

/** Longest name or pointer that a message shows: both are somebody else's text. */
const SHOWN = 80;

/** Says what is wrong with one input; `pointer` leads to the place inside of it. */
export function invalidInput(key: string, why: string, pointer = ""): CallError {
  const place = pointer === "" ? "" : ` at ${shown(pointer)}`;
  return new CallError("VALIDATION_ERROR", `The input ${shown(key)}${place} ${why}.`, {
    details: { pointer: `${joinPointer("", key)}${pointer}`.slice(0, 4 * SHOWN) },
    stack: false,
  });
}

/** Refuses what holds bytes that cannot be read at once; as JSON it would be an empty object. */
export function refuseBlob(value: unknown, key: string, pointer = ""): void {
  if (!(value instanceof Blob)) return;
  const forms = 'a Uint8Array, text, or { base64: "…" }';
  throw invalidInput(key, `is a Blob, which cannot be read at once; give its bytes: ${forms}`, pointer);
}

/** Says why an operation cannot be called as its document describes it. */
export function notCallable(message: string): CallError {
  return new CallError("NOT_IMPLEMENTED", message, { stack: false });
}

/** A name between quotes, cut where it is long. */
export function shown(name: string): string {
  return JSON.stringify(name.length > SHOWN ? `${name.slice(0, SHOWN)}…` : name);
}
