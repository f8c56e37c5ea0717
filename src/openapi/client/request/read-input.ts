/** Reads an own property; inherited ones are nobody's input. */
export function readInput(input: object, key: string): unknown {
  return Object.hasOwn(input, key) ? (input as Record<string, unknown>)[key] : undefined;
}
