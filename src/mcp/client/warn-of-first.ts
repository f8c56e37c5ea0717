/** Warnings about one list of a server; of further ones, how many there are. */
const MOST_WARNINGS = 20;

/** Warns of the first things that are odd in a list, and says how many more there are: a server may list ten thousand. */
export function warnOfFirst(messages: readonly string[], warn: (message: string) => void): void {
  for (const message of messages.slice(0, MOST_WARNINGS)) warn(message);
  const left = messages.length - MOST_WARNINGS;
  if (left <= 0) return;
  const what = left === 1 ? "One more such warning is" : `${left} more such warnings are`;
  warn(`${what} left out; "unusable" and "notes" of the source have all of them.`);
}
