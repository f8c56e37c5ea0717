/** What a text turned out to be: a value, or why it is none. */
export type Parsed = { readonly value: unknown } | { readonly problem: string };

/** What is said where there has to be a value. */
export const NEEDED: Parsed = { problem: "A value is needed here, or remove the item." };

/** Longer ones are no numbers that people type. */
const NUMBER = /^(?=.{1,400}$)[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** Reads a number that somebody typed; one that would become another number is refused, so that nothing changes unseen. An item has to be one. */
export function parseNumber(text: string, isItem = false): Parsed {
  const typed = text.trim();
  if (typed === "") return isItem ? NEEDED : { value: undefined };
  if (!NUMBER.test(typed)) return { problem: "This is not a number. Write one like 12, -0.5 or 1e6." };
  const problem = findChange(typed);
  return problem === undefined ? { value: Number(typed) } : { problem };
}

/** Tells how a number, as written, would change when it is read; nothing for one that stays what it is. */
export function findChange(written: string): string | undefined {
  const value = Number(written);
  const isChanged =
    !Number.isFinite(value) ||
    (value === 0 && /^[^e]*[1-9]/i.test(written)) ||
    (/^[+-]?\d{16,400}$/.test(written) && BigInt(written.replace("+", "")) !== BigInt(value));
  return isChanged
    ? `This number would be sent as ${value}. If a text will do, put it in quotes.`
    : undefined;
}
