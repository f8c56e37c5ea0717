import { navigate, toHash } from "../router.ts";

let pending: { readonly operation: string; readonly input: unknown } | undefined;

/** Opens an operation with an input in its editor, such as that of a call that is made again. */
export function openWithInput(operation: string, input: unknown): void {
  pending = { operation, input };
  navigate(toHash("operations", operation));
}

/** Takes the input that an operation was opened with; once. */
export function takeOpened(operation: string): { readonly input: unknown } | undefined {
  if (pending?.operation !== operation) return undefined;
  const { input } = pending;
  pending = undefined;
  return { input };
}
