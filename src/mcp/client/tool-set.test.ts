import { afterEach, describe, expect, it, vi } from "vitest";
import type { ToolImport } from "./import-tool.ts";
import { guardCallback, importTools, warnOfFirst } from "./tool-set.ts";

const importing: ToolImport = {
  options: { namespace: "many" },
  limits: { definitionBytes: 100_000, listObjects: 100_000 } as ToolImport["limits"],
  version: "1.0.0",
  handlerFor: () => () => 1,
};

const listed = (length: number): readonly unknown[] =>
  Array.from({ length }, (_, i) => ({
    name: `tool${i}`,
    inputSchema: { type: "object", properties: { mode: { enum: ["a", `b${i}`] }, n: { type: "integer" } } },
  }));

describe("importTools", () => {
  it("Mcp: lets others have their turn while thousands of tools are imported", async () => {
    let turns = 0;
    const others = setInterval(() => turns++, 1);
    const { tools } = await importTools(listed(4_000), importing);
    clearInterval(others);
    expect(tools.size).toBe(4_000);
    expect(turns).toBeGreaterThan(3);
  });

  it("Mcp: stops between two tools when the signal says so", async () => {
    const stopping = new AbortController();
    let imported = 0;
    const handlerFor = () => {
      imported += 1;
      if (imported === 3) stopping.abort(new Error("Enough."));
      return () => 1;
    };
    const { signal } = stopping;
    await expect(importTools(listed(100), { ...importing, signal, handlerFor })).rejects.toThrow("Enough.");
    expect(imported).toBe(3);
  });

  it("Mcp: is left when others say so in their turn, however many tools there are", async () => {
    const stopping = new AbortController();
    setImmediate(() => stopping.abort(new Error("Enough.")));
    const { signal } = stopping;
    await expect(importTools(listed(4_000), { ...importing, signal })).rejects.toThrow("Enough.");
  });

  it("Mcp: takes as many objects as allowed in all definitions, and leaves out tools with which there would be more", async () => {
    // Each of these has six: itself, its schema, its properties, two of them, and a list.
    const within = async (listObjects: number, count: number) => {
      const limits = { ...importing.limits, listObjects };
      const small = { name: "small", inputSchema: { type: "object" } };
      return await importTools([...listed(count), small], { ...importing, limits });
    };
    expect((await within(20, 3)).tools.size).toBe(4);
    const { tools, unusable } = await within(19, 3);
    expect([...tools.keys()]).toEqual(["tool0", "tool1", "tool2"]);
    expect(unusable).toEqual([{ tool: "small", reason: expect.stringContaining("more than 19 objects") }]);
    expect([...(await within(17, 3)).tools.keys()]).toEqual(["tool0", "tool1", "small"]);
  });

  it("Mcp: keeps a tool that is the same as before, and imports one that is not anew", async () => {
    const { tools: known } = await importTools(listed(2), importing);
    const [first, second] = listed(2) as Record<string, unknown>[];
    const { tools } = await importTools([first, { ...second, title: "New" }], { ...importing, known });
    expect(tools.get("tool0")).toBe(known.get("tool0"));
    expect(tools.get("tool1")).not.toBe(known.get("tool1"));
    expect(tools.get("tool1")?.operation.title).toBe("New");
    const later = await importTools(listed(2), { ...importing, known, version: "2.0.0" });
    expect(later.tools.get("tool0")?.operation.version).toBe("2.0.0");
  });
});

afterEach(() => void vi.restoreAllMocks());

describe("guardCallback", () => {
  it("X-4 passes everything on, and tells once of what is thrown, now or later", async () => {
    const said = vi.spyOn(console, "warn").mockImplementation(() => {});
    const heard: unknown[] = [];
    const fine = guardCallback("onIt", (a: number, b: string) => void heard.push(a, b));
    fine(1, "b");
    expect(heard).toEqual([1, "b"]);
    const sync = guardCallback("onWarning", () => {
      throw new Error("a bug");
    });
    sync();
    sync();
    const late = guardCallback("onLater", async () => {
      throw null;
    });
    late();
    await new Promise((resolve) => setImmediate(resolve));
    expect(said.mock.calls).toEqual([
      ["[waybill] onWarning threw, which is told once: a bug"],
      ["[waybill] onLater threw, which is told once."],
    ]);
  });
});

function warned(count: number): string[] {
  const told: string[] = [];
  warnOfFirst(
    Array.from({ length: count }, (_, at) => `odd ${at}`),
    (message) => told.push(message),
  );
  return told;
}

describe("warnings about a list", () => {
  it("are told one by one up to twenty", () => {
    expect(warned(0)).toEqual([]);
    expect(warned(20)).toHaveLength(20);
    expect(warned(20).at(-1)).toBe("odd 19");
  });

  it("are counted from the twenty-first on", () => {
    expect(warned(21)).toHaveLength(21);
    expect(warned(21).at(-1)).toMatch(/^One more such warning is left out/);
    expect(warned(10_000)).toHaveLength(21);
    expect(warned(10_000).slice(-2)).toEqual(["odd 19", expect.stringMatching(/^9980 more such warnings/)]);
  });
});
