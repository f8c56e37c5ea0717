import { describe, expect, it } from "vitest";
import type { ToolImport } from "./import-tool.ts";
import { importTools } from "./import-tools.ts";

const importing: ToolImport = {
  options: { namespace: "many" },
  limits: { definitionBytes: 100_000 } as ToolImport["limits"],
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
