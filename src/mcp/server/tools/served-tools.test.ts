import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { query } from "../../../../test/make-operation.ts";
import { errorOf, modern } from "../../../../test/mcp-requests.ts";
import { runs } from "../../../../test/runs.ts";
import type { AnyOperation } from "../../../core/operation/operation-types.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { createMcpHandler } from "../http/mcp-endpoint.ts";
import type { ToolNaming } from "../mcp-server-options.ts";
import { toMcpServer } from "../to-mcp-server.ts";
import {
  assignToolNames,
  FORMAT_META_KEY,
  MAX_TOOL_NAME,
  nameBesides,
  readServerLimits,
  type ServedExecutor,
  ToolTable,
} from "./served-tools.ts";

async function askFor(format: unknown): Promise<{ code: number; message: string }> {
  const handler = createMcpHandler(toMcpServer(new OperationRegistry([query("a.b", () => 1)])));
  const template = modern("tools/list");
  const body = (await template.json()) as { params: { _meta: Record<string, unknown> } };
  body.params._meta[FORMAT_META_KEY] = format;
  const { headers } = template;
  headers.delete("content-length");
  const request = new Request(template.url, { method: "POST", headers, body: JSON.stringify(body) });
  const response = await handler.fetch(request);
  const { message } = ((await response.clone().json()) as { error: { message: string } }).error;
  return { code: (await errorOf(response)).code, message };
}

describe("serveTools", () => {
  it("Mcp: says which formats there are to a client that asks for another", async () => {
    expect(await askFor("odd")).toEqual({ code: -32_602, message: expect.stringContaining('"odd"') });
    expect((await askFor("odd")).message).toContain("plain");
  });

  it.each<[unknown]>([[5], [null], [["plain"]], [{ toString: 1 }], [{ toString: 1, valueOf: 1 }]])(
    "X-6 says the same of a format that is not even a name: %j",
    async (format) => {
      expect(await askFor(format)).toEqual({ code: -32_602, message: expect.stringContaining("plain") });
    },
  );
});

describe("readLimits", () => {
  it("Mcp: takes every bound from its least on, and nothing below", () => {
    expect(readServerLimits({ pageSize: 1, waitingCalls: 0 })).toMatchObject({
      pageSize: 1,
      waitingCalls: 0,
    });
    for (const limits of [
      { pageSize: 0 },
      { waitingCalls: -1 },
      { waitingMs: 2 ** 31 },
      { streamItems: 0.5 },
    ]) {
      expect(() => readServerLimits(limits)).toThrow(TypeError);
    }
  });
});

const ADMIN = { subject: "root", scopes: ["admin"] };
const hidden = { access: { scopes: { allOf: ["admin"] } } } as const;

/** An executor that shows no more than what each caller may see. */
function discreet(operations: readonly AnyOperation[]): ServedExecutor {
  const registry = new OperationRegistry(operations);
  return {
    execute: registry.execute.bind(registry),
    subscribe: registry.subscribe.bind(registry),
    list: registry.list.bind(registry),
    get: registry.get.bind(registry),
    onChange: registry.onChange.bind(registry),
  } as ServedExecutor;
}

describe("ToolTable", () => {
  it("Mcp: gives an operation that only some may see no name that another has", () => {
    const [open, secret] = [query("x.a_b", () => 1), query("a.b", () => 2, hidden)];
    const table = new ToolTable(discreet([open, secret]), { prefix: false });
    expect(table.nameOf(open)).toBe("a_b");
    expect(table.nameOf(secret)).toMatch(/^a_b__[a-z2-7]{13}$/);
    expect(table.find("a_b", ADMIN)?.id).toBe("x.a_b");
    expect(table.find(table.nameOf(secret), ADMIN)?.id).toBe("a.b");
    expect(table.find(table.nameOf(secret), undefined)).toBeUndefined();
  });

  it("Mcp: finds every operation by its name, whoever may see which", () => {
    const name = fc.stringMatching(/^[ab](_[ab]){0,2}$/);
    const id = fc.tuple(fc.constantFrom("a", "b", "a_b"), name).map((parts) => parts.join("."));
    const entry = fc.record({ id, open: fc.boolean() });
    const entries = fc.uniqueArray(entry, { selector: ({ id }) => id, maxLength: 12 });
    const naming = fc.record({ prefix: fc.boolean(), dots: fc.boolean() });
    fc.assert(
      fc.property(entries, naming, (list, names) => {
        const operations = list.map(({ id, open }) => query(id, () => 1, open ? {} : hidden));
        const table = new ToolTable(discreet(operations), names);
        const named = new Set(operations.map((operation) => table.nameOf(operation)));
        expect(named.size).toBe(operations.length);
        for (const operation of operations) {
          expect(table.find(table.nameOf(operation), ADMIN)?.id).toBe(operation.id);
        }
      }),
    );
  });
});

const part = (alphabet: string, max: number) =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength: 1, maxLength: max });
const id = fc
  .oneof(
    fc.tuple(part("ab_-Z9", 12), part("ab_-./Z9", 80)),
    fc.tuple(fc.constantFrom("a", "b", "a_b"), part("ab_./", 4)),
  )
  .map(([namespace, name]) => `${namespace}.${name}`);
const ids = fc.uniqueArray(id, { maxLength: 30 });
const NAMINGS: readonly ToolNaming[] = [{}, { dots: true }, { prefix: false }, { prefix: false, dots: true }];
const VALID = { false: /^[A-Za-z0-9_-]{1,64}$/, true: /^[A-Za-z0-9_.-]{1,64}$/ };

const namesOf = (list: readonly string[], naming?: ToolNaming) =>
  Object.fromEntries(assignToolNames(list, naming).byId);

describe("assignToolNames", () => {
  it("X-12 RE-30 names a tool as its id, made legal", () => {
    expect(namesOf(["math.add", "github.issues/list-for-repo", "two_words.x", "a.b.c"])).toEqual({
      "math.add": "math_add",
      "github.issues/list-for-repo": "github_issues_list-for-repo",
      "two_words.x": "two_words_x",
      "a.b.c": "a_b_c",
    });
    expect(namesOf(["math.add.two"], { dots: true })).toEqual({ "math.add.two": "math.add.two" });
  });

  it("X-12 RE-30 gives a digest to every id of those that would share a name, and the name to none", () => {
    const names = namesOf(["a.b_c", "a_b.c", "a.b/c", "a.d"]);
    expect(names["a.d"]).toBe("a_d");
    for (const each of ["a.b_c", "a_b.c", "a.b/c"]) expect(names[each]).toMatch(/^a_b_c__[a-z2-7]{13}$/);
    expect(new Set(Object.values(names)).size).toBe(4);
  });

  it("X-12 RE-30 takes 64 characters and gives a digest to the 65th", () => {
    expect(namesOf([`a.${"b".repeat(62)}`])).toEqual({ [`a.${"b".repeat(62)}`]: `a_${"b".repeat(62)}` });
    const [long = ""] = Object.values(namesOf([`a.${"b".repeat(63)}`]));
    expect(long).toHaveLength(MAX_TOOL_NAME);
    expect(long).toMatch(/__[a-z2-7]{13}$/);
  });

  it("X-12 RE-30 gives an id that imitates the digest of another no name the other has", () => {
    const [long, first] = [`a.${"b".repeat(70)}`, namesOf([`a.${"b".repeat(70)}`])];
    const taken = first[long] ?? "";
    const forged = `a.${taken.slice(2)}`;
    expect(namesOf([forged])[forged]).toBe(taken);
    const both = namesOf([forged, long]);
    expect(Object.values(both)).not.toContain(taken);
    expect(both[forged]).not.toBe(both[long]);
  });

  it.each(NAMINGS)(
    "X-12 RE-30 names any ids differently, validly and in any order alike with %o",
    (naming) => {
      const shuffled = ids.chain((list) =>
        fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
      );
      fc.assert(
        fc.property(shuffled, ([list, other]) => {
          const names = namesOf(list, naming);
          expect(new Set(Object.values(names)).size).toBe(list.length);
          for (const name of Object.values(names)) expect(name).toMatch(VALID[`${naming.dots ?? false}`]);
          expect(namesOf(other, naming)).toEqual(names);
        }),
        runs(300),
      );
    },
  );

  it.each(NAMINGS)("X-12 RE-30 gives an id that is added no name that another had with %o", (naming) => {
    fc.assert(
      fc.property(ids, id, (list, added) => {
        const before = list.filter((each) => each !== added);
        const had = new Set(Object.values(namesOf(before, naming)));
        expect(had).not.toContain(namesOf([...before, added], naming)[added]);
      }),
      runs(500),
    );
  });

  it("X-12 RE-30 leaves prefixes out except where names clash, then for all of them", () => {
    expect(namesOf(["a.x", "b.x", "c.y"], { prefix: false })).toEqual({
      "a.x": "a_x",
      "b.x": "b_x",
      "c.y": "y",
    });
  });

  it("X-12 RE-30 gives a prefixed name that is another's bare one to neither", () => {
    const names = namesOf(["a.x", "b.x", "c.a_x"], { prefix: false });
    expect(names).toMatchObject({ "b.x": "b_x", "c.a_x": "c_a_x" });
    expect(names["a.x"]).toMatch(/^a_x__[a-z2-7]{13}$/);
  });
});

describe("nameBesides", () => {
  it.each(NAMINGS)("RE-30 names ids outside the set differently from all others with %o", (naming) => {
    fc.assert(
      fc.property(ids, ids, (list, more) => {
        const { byId, taken } = assignToolNames(list, naming);
        const others = more.filter((each) => !byId.has(each)).map((each) => nameBesides(each, taken, naming));
        expect(new Set([...byId.values(), ...others]).size).toBe(byId.size + others.length);
        for (const name of others) expect(name).toMatch(VALID[`${naming.dots ?? false}`]);
      }),
      runs(300),
    );
  });
});
