import * as json from "../core/json/json-text.ts";
import { FormatError } from "./format-error.ts";

/** Reads JSON text; anything else, or anything nested too deeply, is a `bad_json` error. */
export function parseJsonText(text: string, openings?: number): unknown {
  return asFormatError(() => json.parseJsonText(text, openings));
}

/** Writes a value as compact JSON; what JSON cannot hold, or nobody would read, is a `not_json` error. */
export function toJsonText(value: unknown): string {
  return asFormatError(() => json.toJsonText(value));
}

/** The same for a piece of a value whose depth is looked at as a whole. */
export function toJsonPiece(value: unknown): string {
  return asFormatError(() => json.toJsonPiece(value));
}

function asFormatError<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof json.JsonTextError)) throw error;
    throw new FormatError(error.code, error.message, "cause" in error ? { cause: error.cause } : {});
  }
}
