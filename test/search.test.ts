import { beforeAll, expect, it } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import { toMcpServer } from "../src/mcp/index.ts";
import { legacyClient } from "./mcp-server-peers.ts";
import { corpusOperations } from "./search-corpus.ts";
import { HELD_OUT_QUESTIONS, SEARCH_QUESTIONS } from "./search-questions.ts";

let registry: OperationRegistry;
beforeAll(async () => {
  registry = new OperationRegistry(await corpusOperations());
});

const wordsOf = (text: string): readonly string[] =>
  text
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .match(/[a-z]+/g) ?? [];

/** Whether two words are the same, or one begins with the other and that is no accident. */
const isShared = (a: string, b: string): boolean =>
  a === b || (Math.min(a.length, b.length) >= 4 && (a.startsWith(b) || b.startsWith(a)));

it("asks 60 questions about operations that exist, half of them in words that no answer's name has", () => {
  expect(SEARCH_QUESTIONS).toHaveLength(60);
  expect(registry.list()).toHaveLength(1_312);
  const answers = SEARCH_QUESTIONS.flatMap(([, ...ids]) => ids);
  expect(answers.filter((id) => registry.get(id) === undefined)).toEqual([]);
  const inOtherWords = SEARCH_QUESTIONS.filter(([question, ...ids]) => {
    const names = ids.flatMap((id) => wordsOf(id.slice(id.indexOf(".") + 1)));
    return !wordsOf(question).some((word) => names.some((name) => isShared(word, name)));
  });
  expect(inOtherWords.length).toBeGreaterThanOrEqual(30);
});

it.each([
  ["52 of the 60 questions", SEARCH_QUESTIONS, 52],
  ["23 of 30 that it was not made with", HELD_OUT_QUESTIONS, 23],
])("finds the right operation among the first three of a catalogue for %s", async (_, questions, least) => {
  const client = await legacyClient(toMcpServer(registry, { catalogue: true }));
  const missed: string[] = [];
  for (const [question, ...answers] of questions) {
    const args = { query: question, limit: 3 };
    const { structuredContent } = await client.callTool({ name: "search", arguments: args });
    const { operations } = structuredContent as { operations: { id: string }[] };
    if (!operations.some(({ id }) => answers.includes(id))) missed.push(question);
  }
  await client.close();
  expect(questions.length - missed.length, missed.join("\n")).toBeGreaterThanOrEqual(least);
});

it("finds an operation by the plural of what it makes", async () => {
  const client = await legacyClient(toMcpServer(registry, { catalogue: true }));
  const { structuredContent } = await client.callTool({
    name: "search",
    arguments: { query: "issues", limit: 3 },
  });
  await client.close();
  const { operations } = structuredContent as { operations: { id: string }[] };
  expect(operations.map(({ id }) => id)).toContain("github.issues/create");
});
