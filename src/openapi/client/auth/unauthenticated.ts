import { CallError, isCallError, toCallError } from "../../../core/errors/errors.ts";

/** Makes the error of a call for which no credentials could be had; whatever others said stays in `cause`. */
export function unauthenticated(message: string, cause?: unknown, retryable = false): CallError {
  return new CallError("UNAUTHENTICATED", message, {
    ...(cause === undefined ? {} : { cause }),
    retryable,
    stack: false,
  });
}

/** Turns what a credential function threw into a `CallError`. */
export function functionFailure(scheme: string, thrown: unknown): CallError {
  if (isCallError(thrown)) return toCallError(thrown);
  return unauthenticated(`The credential function of ${showScheme(scheme)} failed.`, thrown);
}

/** Names a scheme of a document; a name that is no name in OpenAPI could be any text, and is not shown. */
export function showScheme(name: string): string {
  return /^[\w.-]{1,80}$/.test(name) ? `the security scheme "${name}"` : "a security scheme with an odd name";
}

/** Names several schemes, at most ten. */
export function showNames(names: readonly string[], separator = ", "): string {
  const shown = names
    .slice(0, 10)
    .map((name) => (/^[\w.-]{1,80}$/.test(name) ? `"${name}"` : "(an odd name)"));
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : "";
  return `${shown.join(separator)}${more}`;
}
