import type { AnyOperation } from "../../core/operation/operation-types.ts";

interface Words {
  readonly id: string;
  readonly title: string;
  readonly tags: string;
  readonly description: string;
}

/** Words of a query that count. */
const MAX_TERMS = 16;
const MAX_QUERY = 1_000;

const prepared = new WeakMap<AnyOperation, Words>();

/** The operations that fit a query best, whatever its case; each of its words counts where it is found. */
export function searchOperations(
  operations: readonly AnyOperation[],
  query: string,
  limit: number,
): readonly AnyOperation[] {
  const terms = query.slice(0, MAX_QUERY).toLowerCase().split(/\s+/).filter(Boolean).slice(0, MAX_TERMS);
  if (terms.length === 0) return operations.slice(0, limit);
  const found: { readonly operation: AnyOperation; readonly score: number }[] = [];
  for (const operation of operations) {
    const score = scoreOf(wordsOf(operation), terms);
    if (score > 0) found.push({ operation, score });
  }
  // Sorting keeps the order of equals, which is that of their ids.
  found.sort((a, b) => b.score - a.score);
  return found.slice(0, limit).map(({ operation }) => operation);
}

function scoreOf({ id, title, tags, description }: Words, terms: readonly string[]): number {
  let score = 0;
  let hits = 0;
  for (const term of terms) {
    let own = 0;
    if (id === term) own += 100;
    else if (id.includes(term)) own += 10;
    if (tags.includes(term)) own += 8;
    if (title.includes(term)) own += 6;
    if (description.includes(term)) own += 2;
    if (own > 0) hits += 1;
    score += own;
  }
  return score * hits;
}

function wordsOf(operation: AnyOperation): Words {
  const { id, title = "", tags = [], description } = operation;
  const known = prepared.get(operation) ?? {
    id: id.toLowerCase(),
    title: title.toLowerCase(),
    tags: tags.join("\n").toLowerCase(),
    description: description.toLowerCase(),
  };
  prepared.set(operation, known);
  return known;
}
