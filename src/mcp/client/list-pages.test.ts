import { describe, expect, it } from "vitest";
import { listPages } from "./list-pages.ts";

/** A server whose pages are made by number. */
function walk(page: (index: number, cursor: unknown) => unknown, limits = { tools: 10, pages: 5 }) {
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
});
