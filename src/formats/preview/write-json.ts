import { CallError } from "../../core/errors/errors.ts";

/** Writes a value as JSON; one that is too large or nested too deeply to be written is refused with `TOO_LARGE`. */
export function writeJson(value: unknown, indent = 0): string {
  try {
    return JSON.stringify(value, null, indent);
  } catch (cause) {
    const message =
      "The result is too large or nested too deeply to be written as JSON; return less, or flatter data.";
    throw new CallError("TOO_LARGE", message, { cause });
  }
}
