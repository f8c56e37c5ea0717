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

/** Characters of an input that a link carries. */
export const MOST_LINKED = 8_000;

/** Levels of such an input: indented, thousands of brackets are megabytes of spaces in the editor. */
const MOST_LINKED_LEVELS = 100;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}

/** Fills in the input that a link carries, once for each time it is followed; nothing is ever run. What is no JSON is left out, and so is what is too deep. */
export function openFromLink(operation: string, json: string): void {
  const link = `${operation}\n${json}`;
  if (link === followed || json.length > MOST_LINKED) return;
  followed = link;
  try {
    const input: unknown = JSON.parse(json);
    if (!isDeeper(input, MOST_LINKED_LEVELS)) pending = { operation, input, isRun: false };
  } catch {
    // A link that was cut short.
  }
}

let followed: string | undefined;
