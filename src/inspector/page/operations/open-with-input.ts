import { navigate, toHash } from "../router.ts";

/** An operation to be opened, with an input in its editor. */
export interface Opening {
  readonly operation: string;
  readonly input: unknown;
  /** Whether it is run at once. */
  readonly isRun: boolean;
}

let pending: Opening | undefined;

/** Opens an operation with an input in its editor, such as that of a call that is made again. */
export function openWithInput(opening: Opening): void {
  pending = opening;
  navigate(toHash("operations", opening.operation));
}

/** Takes what an operation was opened with; once. */
export function takeOpened(operation: string): Opening | undefined {
  if (pending?.operation !== operation) return undefined;
  const opening = pending;
  pending = undefined;
  return opening;
}
