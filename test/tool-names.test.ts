import { afterEach, expect, it } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import { fromMcp, serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { query } from "./make-operation.ts";
import { githubOperations, recordedOperations } from "./search-corpus.ts";

const LONG = `list-${"very-".repeat(12)}long`;

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

/** Serves operations over HTTP and mounts them under a namespace elsewhere; gives the names on the wire and the next registry. */
async function hop(registry: OperationRegistry, namespace: string) {
  const server = toMcpServer(registry);
  const http = await serveMcpHttp(server);
  const source = await fromMcp(http.url, { namespace });
  open.push(server, http, source);
  const next = new OperationRegistry();
  next.registerAll(source);
  const ids = [...next.operations].map(({ id }) => id);
  return { next, source, names: ids.map((id) => id.slice(namespace.length + 1)).toSorted() };
}

it("X-12 gives a digest to those of GitHub's operations alone whose names are too long", async () => {
  const ids = (await githubOperations()).map(({ id }) => id);
  const { names } = await hop(new OperationRegistry(ids.map((id) => query(id, () => 1))), "all");
  expect(names).toHaveLength(1_223);
  const whole = ids.filter((id) => id.length <= 64).map((id) => id.replace(/[./]/g, "_"));
  const digested = names.filter((name) => !whole.includes(name));
  expect(names.filter((name) => whole.includes(name))).toEqual(whole.toSorted());
  expect(digested).toHaveLength(65);
  for (const name of digested) expect(name).toMatch(/__[a-z2-7]{13}$/);
});

it("X-12 names the tools of recorded servers as they are called, without a digest", async () => {
  const ids = recordedOperations().map(({ id }) => id);
  expect(ids.length).toBeGreaterThan(50);
  const { names, source } = await hop(new OperationRegistry(ids.map((id) => query(id, () => 1))), "all");
  expect(source.unusable).toEqual([]);
  expect(names).toEqual(ids.map((id) => id.replace(".", "_")).toSorted());
});

it("X-12 keeps names over three hops, those with a digest too", async () => {
  const ids = ["parcel.book", "github.issues/list-for-repo", "a.b_c", "a_b.c", `github.${LONG}`];
  const first = await hop(new OperationRegistry(ids.map((id) => query(id, () => id))), "one");
  expect(first.names).toEqual([
    expect.stringMatching(/^a_b_c__[a-z2-7]{13}$/),
    expect.stringMatching(/^a_b_c__[a-z2-7]{13}$/),
    "github_issues_list-for-repo",
    expect.stringMatching(/^github_list-very-[a-z-]*__[a-z2-7]{13}$/),
    "parcel_book",
  ]);
  const second = await hop(first.next, "two");
  const third = await hop(second.next, "three");
  const isShort = (name: string): boolean => !name.includes("list-very");
  const atOnce = first.names.filter(isShort);
  expect(second.names.filter(isShort)).toEqual(atOnce.map((name) => `one_${name}`));
  expect(third.names.filter(isShort)).toEqual(atOnce.map((name) => `two_one_${name}`));
  // What was too long stays too long: it is cut again, and has one digest, not three.
  expect(third.names.find((name) => !isShort(name))).toMatch(/^two_one_github_list-[a-z-]*__[a-z2-7]{13}$/);
  const answers = await Promise.all([...third.next.operations].map(({ id }) => third.next.execute(id, {})));
  expect(answers.map(({ data }) => data).toSorted()).toEqual(ids.toSorted());
});
