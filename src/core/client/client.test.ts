import { Type } from "typebox";
import { describe, expect, it, vi } from "vitest";
import { collect, query, rejection, stream } from "../../../test/make-operation.ts";
import { localEnvelope, mcpEnvelope, toolError, withFacts } from "../envelope/envelope.ts";
import { defineOperation } from "../operation/operation.ts";
import type { AnyOperation } from "../operation/operation-types.ts";
import { OperationRegistry } from "../registry/registry.ts";
import { createClient } from "./client.ts";
import { ToolResultError } from "./tool-result-error.ts";

const clientOf = (...operations: AnyOperation[]) => createClient(new OperationRegistry(operations));

describe("the namespaces of a client", () => {
  it("RE-27 call operations by name, whatever the name, with the defaults of the client", async () => {
    const seen: unknown[] = [];
    const echo = query("a.echo", (input, { deadline }) => {
      seen.push(deadline === undefined);
      return input;
    });
    const deep = query("a.repos/get.all", () => 7);
    const client = createClient(new OperationRegistry([echo, deep]), { timeoutMs: 5_000 });
    const open = client as unknown as Readonly<
      Record<string, Record<string, (...all: unknown[]) => unknown>>
    >;
    expect(await open["a"]?.["echo"]?.({ n: 1 })).toEqual({ n: 1 });
    expect(await open["a"]?.["repos/get.all"]?.()).toBe(7);
    expect(seen).toEqual([false]);
    expect(await rejection(open["a"]?.["none"]?.() as Promise<unknown>)).toMatchObject({
      code: "OPERATION_NOT_FOUND",
    });
    expect(await rejection(open["a"]?.["echo"]?.(1, { timeout: 1 }) as Promise<unknown>)).toBeInstanceOf(
      TypeError,
    );
  });

  it("RE-27 read a subscription, and know operations that are registered later", async () => {
    const registry = new OperationRegistry([]);
    const open = createClient(registry) as unknown as Record<string, Record<string, () => never>>;
    registry.register(
      stream("late.ticks", async function* () {
        yield 1;
        yield 2;
      }),
    );
    expect(await collect(open["late"]?.["ticks"]?.() as never)).toEqual([1, 2]);
  });

  it("RE-27 leave names alone that the client has itself or that JavaScript looks for", async () => {
    const names = ["call", "pages", "subscribe", "then", "toJSON", "constructor", "__proto__", "toString"];
    let ran = 0;
    const run = () => ++ran;
    const operations = names.flatMap((name) => [query(`${name}.x`, run), query(`a.${name}`, run)]);
    const client = createClient(new OperationRegistry(operations as never)) as never as Record<
      string,
      Record<string, unknown>
    >;
    for (const name of names.slice(0, 3)) expect(typeof client[name]).toBe("function");
    for (const name of names.slice(3))
      expect([client[name], client["a"]?.[name]]).toEqual([undefined, undefined]);
    expect([
      client["not a namespace"],
      client["a.b"],
      client["-x"],
      client["a"]?.[Symbol.iterator as never],
    ]).toEqual([undefined, undefined, undefined, undefined]);
    expect(await client).toBe(client);
    expect(await client["a"]).toBeDefined();
    expect(JSON.stringify({ client, a: client["a"] })).toContain("{");
    expect(() => Object.assign(client, { call: 1 })).toThrow(TypeError);
    expect(ran).toBe(0);
    const open = createClient(new OperationRegistry(operations as never));
    expect(await open.call("then.x" as string)).toBe(1);
  });
});

describe("client.call", () => {
  it("RE-27 resolves with the data alone", async () => {
    const echo = query("a.echo", (input) => input);
    expect(await clientOf(echo).call(echo, { n: 1 })).toEqual({ n: 1 });
    expect(await clientOf(echo).call("a.echo", null)).toBeNull();
  });

  it("RE-27 throws on a tool error, with the whole envelope attached", async () => {
    const envelope = toolError(
      { left: 0 },
      { code: "SOLD_OUT", message: "Nothing left.", details: { since: "May" }, operationId: "a.b" },
    );
    const error = await rejection(clientOf(query("a.b", () => envelope)).call("a.b"));
    expect(error).toBeInstanceOf(ToolResultError);
    expect(error).toBeInstanceOf(Error);
    expect((error as ToolResultError).envelope).toBe(envelope);
    expect(error).toMatchObject({
      name: "ToolResultError",
      code: "SOLD_OUT",
      operationId: "a.b",
      details: { since: "May" },
      message: '"a.b" answered with an error (SOLD_OUT): Nothing left.',
    });
  });

  it.each([
    [toolError("plain text"), '"a.b" answered with an error: plain text'],
    [toolError({ any: 1 }), '"a.b" answered with an error'],
    [toolError("x".repeat(1000)), `"a.b" answered with an error: ${"x".repeat(500)}`],
    [
      mcpEnvelope([], {
        isError: true,
        content: [
          { type: "image", data: "", mimeType: "image/png" },
          { type: "text", text: "no such file" },
        ],
      }),
      '"a.b" answered with an error: no such file',
    ],
    [mcpEnvelope([], { isError: true, content: [] }), '"a.b" answered with an error'],
  ])("RE-27 says in the message what the answer says in text", async (envelope, message) => {
    const error = await rejection(clientOf(query("a.b", () => envelope)).call("a.b"));
    expect(error).toMatchObject({ message, code: undefined });
  });

  it("RE-27 passes call errors on as they are", async () => {
    expect(await rejection(clientOf().call("a.none"))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
  });

  it("RE-27 sends its defaults along, unless a call says otherwise", async () => {
    const who = query("a.who", (_, { identity, metadata }) => [identity?.subject, metadata]);
    const defaults = { identity: { subject: "ada" }, metadata: { from: "client" } };
    const client = createClient(new OperationRegistry([who]), defaults);
    defaults.identity = { subject: "root" };
    expect(await client.call(who)).toEqual(["ada", { from: "client" }]);
    const own = { identity: { subject: "bob" } };
    expect(await client.call(who, {}, own)).toEqual(["bob", { from: "client" }]);
  });
});

describe("options of a client that there are not", () => {
  const echo = query("a.echo", (input) => input);
  const message = 'There is no option "timeout"; did you mean "timeoutMs"?';
  const wrong = { timeout: 5 } as never;

  it("RE-27 are refused in calls, pages and subscriptions, and among the defaults", async () => {
    const client = clientOf(
      echo,
      stream("a.s", async function* () {}),
    );
    expect(await rejection(client.call(echo, {}, wrong))).toEqual(new TypeError(message));
    expect(await rejection(collect(client.pages(echo, {}, wrong)))).toEqual(new TypeError(message));
    expect(await rejection(collect(client.subscribe("a.s", {}, wrong)))).toEqual(new TypeError(message));
    const other = createClient(new OperationRegistry([echo]), wrong);
    expect(await rejection(other.call(echo))).toEqual(new TypeError(message));
  });

  it("RE-27 may be slips of maxPages, or no options at all", async () => {
    const pages = clientOf(echo).pages(echo, {}, { maxPage: 3 } as never);
    expect(await rejection(collect(pages))).toEqual(
      new TypeError('There is no option "maxPage"; did you mean "maxPages"?'),
    );
    expect(await rejection(clientOf(echo).call(echo, {}, 5_000 as never))).toBeInstanceOf(TypeError);
    expect(await rejection(clientOf(echo).call(echo, {}, { maxPages: 3 } as never))).toBeInstanceOf(
      TypeError,
    );
  });
});

describe("client.pages", () => {
  const List = Type.Object({ after: Type.Optional(Type.Integer()) });
  const list = defineOperation({
    namespace: "a",
    name: "list",
    version: "1.0.0",
    type: "query",
    description: "Lists numbers, two at a time.",
    inputSchema: List,
    outputSchema: Type.Object({ items: Type.Array(Type.Integer()), last: Type.Boolean() }),
    pager: {
      next: ({ data }, input) => (data.last ? undefined : { ...input, after: data.items[1] ?? 0 }),
    },
    handler: ({ after = 0 }) => ({ items: [after + 1, after + 2], last: after >= 4 }),
  });

  it("RE-27 follows the operation's own pager until there is no next page", async () => {
    const pages = await collect(clientOf(list).pages(list, {}));
    expect(pages.map(({ items }) => items)).toEqual([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    expect(await collect(clientOf(list).pages("a.list", { after: 4 }))).toHaveLength(1);
  });

  it("RE-27 follows meta.waybill.page with the cursor in the input", async () => {
    const inputs: unknown[] = [];
    const paged = query("a.paged", (input) => {
      inputs.push(input);
      const { cursor = "0" } = (input ?? {}) as { cursor?: string };
      const envelope = localEnvelope(cursor, "a.paged");
      return cursor === "2" ? envelope : withFacts(envelope, { page: { next: String(Number(cursor) + 1) } });
    });
    expect(await collect(clientOf(paged).pages(paged, { filter: "x" }))).toEqual(["0", "1", "2"]);
    expect(inputs).toEqual([{ filter: "x" }, { filter: "x", cursor: "1" }, { filter: "x", cursor: "2" }]);
    expect(await collect(clientOf(paged).pages("a.paged"))).toEqual(["0", "1", "2"]);
    inputs.length = 0;
    expect(await collect(clientOf(paged).pages(paged, "text"))).toEqual(["0", "1", "2"]);
    expect(inputs).toEqual(["text", { cursor: "1" }, { cursor: "2" }]);
  });

  it("RE-27 ends with a result that says nothing of pages", async () => {
    const timed = createClient(new OperationRegistry([query("a.b", () => 1)], { timing: true }));
    expect(await collect(timed.pages("a.b"))).toEqual([1]);
  });

  it("RE-27 follows the pager of the operation it was given where the executor's has none", async () => {
    const bare = query("a.bare", (input) => input);
    const paged = { ...bare, pager: { next: (_: unknown, n: unknown) => (n === 1 ? 2 : undefined) } };
    expect(await collect(clientOf(bare).pages(paged, 1))).toEqual([1, 2]);
    expect(await collect(clientOf(bare).pages("a.bare", 1))).toEqual([1]);
    expect(await rejection(collect(clientOf().pages(paged, 1)))).toMatchObject({
      code: "OPERATION_NOT_FOUND",
    });
  });

  it("RE-27 asks for a page when it is wanted, and for no more", async () => {
    const handler = vi.fn(list.handler);
    const lazy = { ...list, handler } as unknown as AnyOperation;
    for await (const _ of clientOf(lazy).pages(lazy, {})) break;
    expect(handler).toHaveBeenCalledTimes(1);
  });

  it("RE-27 takes a page that was read before for an error", async () => {
    const inputs = [{ n: 1 }, { n: 2 }, { n: 1 }];
    const circle = query("a.circle", (input) => input, { pager: { next: () => inputs.shift() } });
    const seen: unknown[] = [];
    const read = async () => {
      for await (const data of clientOf(circle).pages(circle, { n: 0 })) seen.push(data);
    };
    expect(await rejection(read())).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      retryable: false,
      message: '"a.circle" names a next page that was read already.',
    });
    expect(seen).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);
    const runs: unknown[] = [];
    const same = query("a.same", (input) => runs.push(input), {
      pager: { next: (_, input) => ({ ...Object(input) }) },
    });
    expect(await rejection(collect(clientOf(same).pages(same, { n: 1 })))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
    });
    expect(runs).toEqual([{ n: 1 }]);
  });

  it("RE-27 gives up with an error after so many pages", async () => {
    const endless = query("a.endless", (input) => input, { pager: { next: (_, n) => (n as number) + 1 } });
    const read = (options?: object) => collect(clientOf(endless).pages(endless, 0, options as never));
    const pages = clientOf(endless).pages(endless, 0, { maxPages: 2 })[Symbol.asyncIterator]();
    expect([await pages.next(), await pages.next()].map(({ value }) => value)).toEqual([0, 1]);
    expect(await rejection(pages.next())).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect(await rejection(read({ maxPages: 3 }))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message: '"a.endless" has more than 3 pages; raise maxPages to read on.',
    });
    expect(await rejection(read())).toMatchObject({ message: expect.stringContaining("1000 pages") });
    const three = query("a.three", (input) => input, {
      pager: { next: (_, n) => ((n as number) < 2 ? (n as number) + 1 : undefined) },
    });
    expect(await collect(clientOf(three).pages(three, 0, { maxPages: 3 }))).toEqual([0, 1, 2]);
  });

  it("RE-27 compares inputs that JSON cannot hold by identity", async () => {
    const inputs = [{ n: 1n }, { n: 1n }];
    const big = query("a.big", () => 1, { pager: { next: () => inputs.shift() } });
    expect(await collect(clientOf(big).pages(big, { n: 1n }))).toHaveLength(3);
  });

  it("RE-27 throws a page that is a tool error", async () => {
    const failing = query("a.f", (n) => (n === 2 ? toolError("no") : n), {
      pager: { next: (_, n) => (n as number) + 1 },
    });
    const seen: unknown[] = [];
    const read = async () => {
      for await (const data of clientOf(failing).pages(failing, 1)) seen.push(data);
    };
    expect(await rejection(read())).toBeInstanceOf(ToolResultError);
    expect(seen).toEqual([1]);
  });

  it("RE-27 sends the same options with every page", async () => {
    const subjects: unknown[] = [];
    const who = query(
      "a.who",
      (n, { identity }) => {
        subjects.push(identity?.subject);
        return n;
      },
      { pager: { next: (_, n) => ((n as number) < 2 ? (n as number) + 1 : undefined) } },
    );
    const client = createClient(new OperationRegistry([who]), { identity: { subject: "ada" } });
    await collect(client.pages(who, 1));
    await collect(client.pages(who, 2, { identity: { subject: "bob" } }));
    expect(subjects).toEqual(["ada", "ada", "bob"]);
  });
});

describe("client.subscribe", () => {
  it("RE-27 yields the data of each value and throws tool errors", async () => {
    const mixed = stream("a.s", async function* (_, { identity }) {
      yield identity?.subject;
      yield 2;
      yield toolError("no");
    });
    const client = createClient(new OperationRegistry([mixed]), { identity: { subject: "ada" } });
    const seen: unknown[] = [];
    const read = async () => {
      for await (const data of client.subscribe(mixed)) seen.push(data);
    };
    expect(await rejection(read())).toBeInstanceOf(ToolResultError);
    expect(seen).toEqual(["ada", 2]);
  });

  it("RE-27 stops the handler when the loop is left", async () => {
    const stopped = vi.fn();
    const ticks = stream("a.t", async function* () {
      try {
        for (;;) yield 1;
      } finally {
        stopped();
      }
    });
    for await (const _ of clientOf(ticks).subscribe(ticks)) break;
    expect(stopped).toHaveBeenCalledTimes(1);
  });
});
