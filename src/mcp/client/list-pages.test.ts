import { afterEach, describe, expect, it, vi } from "vitest";
import { CallError } from "../../core/errors/errors.ts";
import { listPages, MAX_CURSOR_LENGTH, type OversizedEntry } from "./list-pages.ts";

afterEach(() => void vi.useRealTimers());

const LIMITS = { tools: 10, pages: 5, definitionBytes: 1_000, listBytes: 10_000 };

/** A server whose pages are made by number. */
function walk(page: (index: number, cursor: unknown) => unknown, given: Partial<typeof LIMITS> = {}) {
  const limits = { ...LIMITS, ...given };
  const warnings: string[] = [];
  let asked = 0;
  const connection = {
    request: async (_: string, params: Readonly<Record<string, unknown>> | undefined) =>
      page(asked++, params?.["cursor"]) as Readonly<Record<string, unknown>>,
  };
  const found = listPages(connection, {
    method: "tools/list",
    field: "tools",
    limits,
    warn: (message) => warnings.push(message),
  });
  return found.then((entries) => ({ entries, warnings, asked }));
}

describe("listPages", () => {
  it("RE-22 walks all pages, an empty cursor included", async () => {
    const cursors: unknown[] = [];
    const result = await walk((index, cursor) => {
      cursors.push(cursor);
      return index === 2 ? { tools: [3] } : { tools: [index + 1], nextCursor: index === 0 ? "" : "b" };
    });
    expect(result).toEqual({ entries: [1, 2, 3], warnings: [], asked: 3 });
    expect(cursors).toEqual([undefined, "", "b"]);
  });

  it("Mcp: ends where a cursor comes again", async () => {
    const { entries, warnings, asked } = await walk(() => ({ tools: [1], nextCursor: "a" }));
    expect([entries, asked]).toEqual([[1, 1], 2]);
    expect(warnings).toEqual(["tools/list gives the same cursor twice; the list ends there."]);
  });

  it("Mcp: reads as many pages as allowed, and not one more", async () => {
    const of = (pages: number) => (index: number) => ({
      tools: [],
      ...(index < pages - 1 && { nextCursor: String(index) }),
    });
    expect(await walk(of(5))).toEqual({ entries: [], warnings: [], asked: 5 });
    const { warnings, asked } = await walk(of(6));
    expect([warnings, asked]).toEqual([["tools/list has more than 5 pages; the rest is left out."], 5]);
  });

  it("Mcp: takes as many entries as allowed, and not one more", async () => {
    const list = (length: number) => () => ({ tools: Array.from({ length }, (_, i) => i) });
    expect(await walk(list(10))).toMatchObject({ warnings: [], entries: { length: 10 } });
    expect(await walk(list(11))).toMatchObject({
      warnings: ["tools/list has more than 10 entries; the rest is left out."],
      entries: { length: 10 },
    });
  });

  it.each([null, [], "x", {}, { tools: "x" }, { tools: { length: 3 } }])(
    "Mcp: says so where a page is no page: %j",
    async (page) => {
      const { entries, warnings } = await walk(() => page);
      expect(entries).toEqual([]);
      expect(warnings).toEqual(["Page 1 of tools/list holds no list of tools."]);
    },
  );

  it("X-6 takes as many bytes as allowed over all pages, and not one more", async () => {
    const entry = (length: number) => "x".repeat(length - 2);
    const pages = (last: number) => (index: number) =>
      index === 0 ? { tools: [entry(60)], nextCursor: "b" } : { tools: [entry(last), entry(2)] };
    expect(await walk(pages(38), { listBytes: 100 })).toMatchObject({ warnings: [], entries: { length: 3 } });
    expect(await walk(pages(39), { listBytes: 100 })).toMatchObject({
      warnings: ["tools/list has more than 100 bytes; the rest is left out."],
      entries: { length: 2 },
    });
  });

  it("X-6 leaves out an entry that is too large, says so once, and takes the others", async () => {
    const tool = (bytes: number) => ({ name: "t", x: "é".repeat((bytes - 19) / 2) });
    const sized = [tool(101), tool(99), tool(101), tool(103)];
    expect(sized.map((each) => Buffer.byteLength(JSON.stringify(each)))).toEqual([101, 99, 101, 103]);
    const { entries, warnings } = await walk(() => ({ tools: sized }), { definitionBytes: 101 });
    expect(entries).toEqual(sized.slice(0, 3));
    expect(warnings).toEqual(["tools/list has entries of more than 101 bytes, which are left out."]);
    const none = await walk(() => ({ tools: sized }), { definitionBytes: 98 });
    expect([none.entries, none.warnings.length]).toEqual([[], 1]);
  });

  it("X-6 keeps the front of the name and the reason of an entry that is too large, for whoever asks", async () => {
    const heard: OversizedEntry[] = [];
    const tools = [{ name: `\u202e${"n".repeat(2_000)}` }, "x".repeat(2_000)];
    const found = await listPages(
      { request: async () => ({ tools }) },
      {
        method: "tools/list",
        field: "tools",
        limits: LIMITS,
        warn: () => expect.unreachable(),
        onOversized: (entry) => heard.push(entry),
      },
    );
    expect(found).toEqual([]);
    const reason = "Its definition is larger than 1000 bytes.";
    expect(heard).toEqual([
      { name: `${"n".repeat(200)}…`, reason },
      { name: "", reason },
    ]);
  });

  it("X-6 sends a cursor back that is as long as allowed, and none that is longer", async () => {
    const of = (length: number) => (index: number) => ({
      tools: [index],
      ...(index === 0 && { nextCursor: "c".repeat(length) }),
    });
    expect(await walk(of(MAX_CURSOR_LENGTH))).toMatchObject({ entries: [0, 1], warnings: [] });
    expect(await walk(of(MAX_CURSOR_LENGTH + 1))).toMatchObject({
      entries: [0],
      warnings: [
        `tools/list gives a cursor of more than ${MAX_CURSOR_LENGTH} characters; the list ends there.`,
      ],
    });
  });

  it("X-6 ends with what was read where all pages together take five times as long as one may", async () => {
    vi.useFakeTimers();
    const warnings: string[] = [];
    const given: number[] = [];
    const slow = (ms: number) => ({
      request: async (_: string, params: unknown, options: { timeoutMs?: number } = {}) => {
        const { timeoutMs = 0 } = options;
        given.push(timeoutMs);
        await new Promise((resolve) => setTimeout(resolve, Math.min(ms, timeoutMs)));
        if (timeoutMs < ms) throw new CallError("TIMEOUT", "late");
        return { tools: [1], nextCursor: JSON.stringify(params).slice(0, 4_000) };
      },
    });
    const walking = async (ms: number) => {
      const [walked] = await Promise.allSettled([
        listPages(slow(ms), {
          method: "tools/list",
          field: "tools",
          limits: { ...LIMITS, pages: 1_000 },
          request: { timeoutMs: 100 },
          warn: (message) => warnings.push(message),
        }),
        vi.advanceTimersByTimeAsync(500),
      ]);
      return walked;
    };
    // Seven take 490 ms.
    expect(await walking(70)).toEqual({ status: "fulfilled", value: Array(7).fill(1) });
    expect(warnings).toEqual(["tools/list takes longer than 500 ms; the rest is left out."]);
    expect(given[0]).toBe(100);
    expect(await walking(150)).toMatchObject({ status: "rejected", reason: { code: "TIMEOUT" } });
  });
});
