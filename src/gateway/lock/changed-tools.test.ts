import { describe, expect, it } from "vitest";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import type { DefinitionChange } from "../../mcp/client/lock/tool-lock.ts";
import { CHANGED_TOOL_LIMITS, ChangedTools } from "./changed-tools.ts";

const changed = (before: unknown, after: unknown): DefinitionChange => ({
  tool: "send",
  kind: "changed",
  diff: [{ path: "/description", before, after }],
});

const write = (refused: readonly DefinitionChange[], mask = (text: string) => text) =>
  new ChangedTools(mask).write(refused);

describe("changed tools", () => {
  it("are told with both sides, and with what hides made visible", () => {
    expect(write([changed("Sends.", "Sends.\u200b")])).toEqual([
      {
        tool: "send",
        kind: "changed",
        diff: [{ path: "/description", before: "Sends.", after: "Sends.\\u{200b}" }],
      },
    ]);
  });

  it("are told field by field where they are new", () => {
    const definition = { name: "send", description: "Sends.", inputSchema: { type: "object" } };
    const [tool] = write([{ tool: "send", kind: "new", diff: [{ path: "", after: definition }] }]);
    expect(tool?.diff).toEqual([
      { path: "/description", after: "Sends." },
      { path: "/inputSchema", after: '{"type":"object"}' },
    ]);
  });

  it("hold no secret, also where something hides in the middle of it", () => {
    const secrets = new SecretMask();
    secrets.add("hunter2-hunter2");
    const written = write([changed("hunter2-hunter2", "hunter2-\u200bhunter2 x")], (text) =>
      secrets.mask(text),
    );
    expect(JSON.stringify(written)).not.toContain("hunter2-hunter2");
  });

  it("are bounded in number, differences and length", () => {
    const { tools, differences, characters } = CHANGED_TOOL_LIMITS;
    const long = Array.from({ length: differences + 9 }, (_, at) => ({
      path: `/${at}`,
      before: "\u200b".repeat(characters),
      after: "😀".repeat(characters),
    }));
    const refused = Array.from({ length: tools + 2 }, (_, at) => ({
      tool: `tool-${at}`,
      kind: "changed" as const,
      diff: at === 0 ? long : [{ path: "/title", after: "x" }],
    }));
    const written = write(refused);
    expect(written).toHaveLength(tools + 2);
    expect(written[0]?.diff).toHaveLength(differences);
    for (const { before = "", after = "" } of written[0]?.diff ?? []) {
      expect(Math.max(before.length, after.length)).toBeLessThanOrEqual(characters);
      expect(() => encodeURIComponent(after)).not.toThrow();
    }
    expect(written.slice(tools).map(({ diff }) => diff)).toEqual([[], []]);
  });

  it("are not written anew while they are the same", () => {
    const tools = new ChangedTools((text) => text);
    const [first] = tools.write([changed("a", "b")]);
    const [again] = tools.write([changed("a", "b")]);
    const [other] = tools.write([changed("a", "c")]);
    expect(again?.diff).toBe(first?.diff);
    expect(other?.diff).not.toBe(first?.diff);
  });

  it("keep names that are those of prototypes", () => {
    const [tool] = write([{ tool: "__proto__", kind: "new", diff: [{ path: "/__proto__", after: 1 }] }]);
    expect(tool).toEqual({ tool: "__proto__", kind: "new", diff: [{ path: "/__proto__", after: "1" }] });
  });
});
