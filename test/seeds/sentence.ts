import { type AnyOperation, OperationRegistry, type RegistryOptions } from "../../src/index.ts";

/**
 * One normative sentence of a published document in words of our own: the requirements it belongs to, what it says, and code that shows
 * it. Where Waybill differs on purpose, the last part is the decision: the number of a page of `docs/decisions`, or words of
 * `docs/requirements.md`; the code then shows what happens instead.
 */
export type Sentence = readonly [ids: string, says: string, run: () => unknown, differs?: string];

/** The sentences of a document by section. */
export type SeedDocument = Readonly<Record<string, readonly Sentence[]>>;

/** A registry with these operations that keeps its warnings to itself. */
export function registryOf(
  operations: readonly AnyOperation[],
  options: RegistryOptions = {},
): OperationRegistry {
  return new OperationRegistry(operations, { onWarning: () => {}, ...options });
}

/** The text of a block; fails where it has none. */
export function textAt(content: readonly unknown[], index: number): string {
  const { text } = (content[index] ?? {}) as { readonly text?: unknown };
  if (typeof text !== "string") throw new Error(`Block ${index} is no text.`);
  return text;
}
