import MiniSearch, { type SearchResult } from "minisearch";
import { isPlainObject, isSameList } from "../json/json-value.ts";
import type { AnyOperation } from "../operation/operation-types.ts";
import { toOperationSchema } from "../schema/any-schema.ts";
import { isMeaning, isVerb, PLAIN_VERBS, queryWords, splitWords, termsOf } from "./search-words.ts";

/** How a search is bounded. */
export interface SearchOptions {
  /** Operations at most. @default all that have the most of the words */
  readonly limit?: number;
}

/** What of an operation is searched, and how much a word counts there. */
const WEIGHTS = {
  name: 6,
  title: 4,
  namespace: 2,
  tags: 2,
  summary: 1.5,
  description: 1,
  parameters: 1,
  about: 0.5,
};
/** Words of each of them that count. */
const MAX_WORDS = {
  name: 40,
  title: 40,
  namespace: 20,
  tags: 60,
  summary: 60,
  description: 300,
  parameters: 150,
  about: 300,
};

type Field = keyof typeof WEIGHTS;
type Document = { readonly [F in Field]: string } & { readonly at: number };

const FIELDS = Object.keys(WEIGHTS) as readonly Field[];
const MAX_FIELD = 4_000;
/** Words of one field of all operations together, and of one operation where there are very many. */
const MAX_ALL_WORDS = 500_000;
const MIN_WORDS = 10;
const MAX_QUERY = 1_000;
const MAX_QUERY_WORDS = 16;
/** Subschemas of an input that are looked at. */
const MAX_NODES = 200;
/** Sets of operations that are kept ready: callers with the same rights share one. */
const MAX_KEPT = 4;
/** Operations that are read without letting others work. */
const CHUNK = 25;
/** What a word that only means the same counts, and one that is spelled alike. */
const ALIKE = { meaning: 0.7, prefix: 0.6, fuzzy: 0.5 };
/** How much more an operation counts whose name and title the words say in full. */
const LABELLED = 2;
/** What counts so little beside the best is left out. */
const WEAK = 0.05;
/** How much more one counts that makes or lists things, where no word says what is to be done. */
const PLAIN = 1.15;

interface Index {
  readonly operations: readonly AnyOperation[];
  readonly ready: Promise<Searchable>;
}

interface Searchable {
  readonly mini: MiniSearch<Document>;
  /** Every term there is. */
  readonly known: ReadonlySet<string>;
  readonly labels: readonly Labels[];
}

/** The words of an operation's name and of its title, each as the terms it is found by. */
interface Labels {
  readonly name: readonly (readonly string[])[];
  readonly title: readonly (readonly string[])[];
}

/**
 * Finds operations by what their ids, titles, tags, descriptions and parameters say. What a caller may not see has no
 * part in it, in the order of results neither: each set of operations that callers see has an index of its own.
 */
export class OperationSearch {
  /** Those used last come last. */
  #kept: readonly Index[] = [];

  /** Finds the operations that fit best, the best first; all of them for an empty query. */
  async find(
    operations: readonly AnyOperation[],
    query: string,
    { limit }: SearchOptions = {},
  ): Promise<readonly AnyOperation[]> {
    const asked = query.slice(0, MAX_QUERY).trim().toLowerCase();
    if (asked === "") return operations.slice(0, limit);
    const words = queryWords(query.slice(0, MAX_QUERY), MAX_QUERY_WORDS);
    const found = words.length === 0 ? [] : rank(await this.#ready(operations), words);
    // What no word finds may be a part of a name, or signs.
    if (found.length === 0) return operations.filter((one) => says(one, asked)).slice(0, limit);
    const most = found.reduce((highest, { matched }) => Math.max(highest, matched), 0);
    const least = (found[0]?.score ?? 0) * WEAK;
    const kept = found.filter(({ matched, score }) =>
      limit === undefined ? matched === most : score >= least,
    );
    const ranked = kept.map(({ at }) => operations[at] as AnyOperation);
    const exact = operations.filter(({ id }) => id.toLowerCase() === asked);
    return [...new Set([...exact, ...ranked])].slice(0, limit);
  }

  #ready(operations: readonly AnyOperation[]): Promise<Searchable> {
    const known = this.#kept.find(({ operations: others }) => isSameList(others, operations));
    const index = known ?? { operations, ready: toSearchable(operations) };
    this.#kept = [...this.#kept.filter((other) => other !== index), index].slice(-MAX_KEPT);
    return index.ready;
  }
}

/** Whether an id or a title has a text in it, letter by letter. */
function says({ id, title = "" }: AnyOperation, text: string): boolean {
  return id.toLowerCase().includes(text) || title.slice(0, MAX_FIELD).toLowerCase().includes(text);
}

async function toSearchable(operations: readonly AnyOperation[]): Promise<Searchable> {
  const terms = new Map<string, readonly string[]>();
  const room = Math.max(MIN_WORDS, Math.floor(MAX_ALL_WORDS / operations.length));
  const mini = new MiniSearch<Document>({
    idField: "at",
    fields: [...FIELDS],
    tokenize: (text, field) => [...splitWords(text, Math.min(room, MAX_WORDS[field as Field]))],
    processTerm: (word) => {
      const known = terms.get(word) ?? termsOf(word);
      terms.set(word, known);
      return [...known];
    },
  });
  for (let at = 0; at < operations.length; at += CHUNK) {
    mini.addAll(operations.slice(at, at + CHUNK).map((operation, i) => toDocument(operation, at + i)));
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  const labels = operations.map(({ name, title = "" }) => ({ name: labelOf(name), title: labelOf(title) }));
  return { mini, known: new Set([...terms.values()].flat()), labels };
}

/** The words of a name or a title, each once. */
function labelOf(text: string): Labels["name"] {
  const words = queryWords(text.slice(0, MAX_FIELD), MAX_WORDS.name).map(termsOf);
  return [...new Map(words.map((terms) => [terms[0], terms])).values()];
}

interface Found {
  readonly at: number;
  readonly score: number;
  /** How many of the words it has. */
  readonly matched: number;
}

/** What of the words is found in one operation. */
interface Match {
  score: number;
  matched: number;
  readonly name: Set<string>;
  readonly title: Set<string>;
}

/**
 * Puts in order what the words find. A word counts by how few operations have it, and by how well this one has it beside
 * the others; then count the share of the words that are there, and how much of the name and the title they say.
 */
function rank({ mini, known, labels }: Searchable, words: readonly string[]): readonly Found[] {
  const matches = new Map<number, Match>();
  for (const word of words) {
    const results = searchWord(mini, known, word);
    const rarity = Math.log(1 + mini.documentCount / (results.length + 1));
    for (const { id, score, match } of results) {
      const found = matches.get(id) ?? { score: 0, matched: 0, name: new Set(), title: new Set() };
      found.score += rarity * Math.sqrt(score / (results[0]?.score ?? 1));
      found.matched += 1;
      for (const [term, fields] of Object.entries(match)) {
        if (fields.includes("name")) found.name.add(term);
        if (fields.includes("title")) found.title.add(term);
      }
      matches.set(id, found);
    }
  }
  const wantsPlain = !words.some(isVerb);
  const ranked = [...matches].map(([at, { score, matched, ...had }]) => {
    const { name, title } = labels[at] as Labels;
    const named = shareOf(name, had.name);
    const said = title.length === 0 ? named : (named + shareOf(title, had.title)) / 2;
    const plain = wantsPlain && name.some(([stem = ""]) => PLAIN_VERBS.has(stem)) ? PLAIN : 1;
    return { at, matched, score: score * (matched / words.length) * (1 + LABELLED * said) * plain };
  });
  return ranked.sort((a, b) => b.score - a.score || a.at - b.at);
}

/** How much of a label is among the terms that were found there, from 0 to 1. */
function shareOf(label: Labels["name"], found: ReadonlySet<string>): number {
  const had = label.filter((terms) => terms.some((term) => found.has(term)));
  return label.length === 0 ? 0 : had.length / label.length;
}

function searchWord(mini: MiniSearch<Document>, known: ReadonlySet<string>, word: string): SearchResult[] {
  const terms = termsOf(word);
  const isUnknown = (term: string): boolean => !isMeaning(term) && !known.has(term) && term.length > 2;
  return mini.search(terms.join(" "), {
    boost: WEIGHTS,
    weights: ALIKE,
    tokenize: (text) => text.split(" "),
    processTerm: (term) => term,
    boostTerm: (term) => (isMeaning(term) ? ALIKE.meaning : 1),
    prefix: isUnknown,
    fuzzy: (term) => (isUnknown(term) && term.length > 3 ? (term.length > 5 ? 2 : 1) : false),
  });
}

function toDocument(operation: AnyOperation, at: number): Document {
  const { namespace, name, title = "", tags = [], description } = operation;
  const { names, texts } = parametersOf(operation);
  const summary = firstSentence(description);
  const fields = { namespace, name, title, tags: tags.slice(0, 50).join("\n"), summary, description };
  const all = { ...fields, parameters: names.join("\n"), about: texts.join("\n") };
  const cut = Object.entries(all).map(([field, text]) => [field, text.slice(0, MAX_FIELD)]);
  return { ...(Object.fromEntries(cut) as { readonly [F in Field]: string }), at };
}

/** The first sentence or paragraph of a description: it says what an operation does, and the rest how. */
function firstSentence(description: string): string {
  const text = description.slice(0, MAX_FIELD);
  const end = text.search(/[.!?](?=\s)|\n\s*\n/);
  return end < 0 ? text : text.slice(0, end);
}

/** The names and descriptions of what an operation takes, as far in as there is room. */
function parametersOf({ inputSchema }: AnyOperation): {
  readonly names: readonly string[];
  readonly texts: readonly string[];
} {
  const names: string[] = [];
  const texts: string[] = [];
  const queue: unknown[] = [];
  try {
    const isStandard = typeof inputSchema === "object" && "~standard" in inputSchema;
    queue.push(isStandard ? toOperationSchema(inputSchema, "input").json : inputSchema);
    for (let at = 0; at < queue.length && at < MAX_NODES; at++) {
      const schema = queue[at];
      if (!isPlainObject(schema)) continue;
      const { properties, items, allOf, anyOf, oneOf } = schema;
      const members = isPlainObject(properties) ? Object.entries(properties).slice(0, MAX_NODES) : [];
      for (const [key, member] of members) {
        names.push(key.slice(0, 200));
        if (isPlainObject(member) && typeof member["description"] === "string") {
          texts.push(member["description"].slice(0, 400));
        }
        queue.push(member);
      }
      queue.push(
        items,
        ...[allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list.slice(0, 20) : [])),
      );
    }
  } catch {
    // An input that cannot be read is not searched.
  }
  return { names, texts };
}
