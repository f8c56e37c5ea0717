import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decodeToolResult, FORMAT_NAMES, transcode } from "../src/formats/index.ts";
import { ROOT } from "./run-node.ts";

/** What public MCP servers answered. */
const RECORDED = join(ROOT, "test/data/recorded-servers");

interface Recording {
  readonly calls: readonly { readonly request: Request; readonly response: { readonly result?: Result } }[];
  readonly modern?: unknown;
}
interface Request {
  readonly params?: { readonly name: string };
}
interface Result {
  readonly content?: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

/** Every tool result of a recording, the ones inside exchanges of later revisions included. */
function resultsIn(value: unknown): Result[] {
  if (typeof value !== "object" || value === null) return [];
  const { result } = value as { result?: Result };
  if (result !== undefined && Array.isArray(result.content)) return [result];
  return Object.values(value).flatMap(resultsIn);
}

const servers = readdirSync(RECORDED);

describe("recorded servers", () => {
  const read = (name: string): Recording => JSON.parse(readFileSync(join(RECORDED, name), "utf8"));

  it("X-2 are there", () => {
    expect(servers.length).toBeGreaterThanOrEqual(10);
    expect(servers.flatMap((name) => resultsIn(read(name))).length).toBeGreaterThan(75);
  });

  it.each(servers)("X-2 %s: every answer is classified, and its data found by presence", (name) => {
    for (const result of resultsIn(read(name))) {
      const decoded = decodeToolResult(result);
      const hasStructured = Object.hasOwn(result, "structuredContent");
      expect(decoded.format).toBe("mcp");
      expect(decoded.isError).toBe(result.isError === true);
      expect(decoded.obtained).toBe(hasStructured ? "structured-content" : "content");
      expect(decoded.data).toEqual(hasStructured ? result.structuredContent : result.content);
      if (decoded.isError) expect(decoded.error?.message.length).toBeGreaterThan(0);
    }
  });

  it.each(servers)("X-3 %s: every answer survives every other format", (name) => {
    for (const result of resultsIn(read(name))) {
      for (const format of FORMAT_NAMES) expect(transcode(transcode(result, format), "mcp")).toEqual(result);
    }
  });

  it("X-2 JSON in text is found where the caller asks for it", () => {
    const recovered = resultsIn(read("mcp-sqlite.json")).map((result) =>
      decodeToolResult(result, { recoverJson: true }),
    );
    expect(recovered.filter(({ obtained }) => obtained === "text-json").length).toBeGreaterThanOrEqual(8);
    expect(recovered.some(({ data }) => JSON.stringify(data) === '[{"name":"users"}]')).toBe(true);
  });

  it("X-2 structured content wins over text of another shape", () => {
    const [created] = resultsIn(read("server-memory.json"));
    const { data, obtained } = decodeToolResult(created, { recoverJson: true });
    expect(obtained).toBe("structured-content");
    expect(data).toHaveProperty("entities");
  });

  it("X-2 a failure reported as success is noticed, not believed", () => {
    const suspects = resultsIn(read("context7-mcp.json")).map((result) => decodeToolResult(result));
    const odd = suspects.filter(({ odd: noticed }) =>
      noticed.some(({ code }) => code === "error_as_success"),
    );
    expect(odd.length).toBeGreaterThanOrEqual(2);
    expect(odd.every(({ isError }) => !isError)).toBe(true);
  });
});

/** The kinds of answer that the recordings show, one of each. */
describe("answers like those of real servers", () => {
  const text = (value: string) => ({ type: "text", text: value });

  it.each([
    ["prose", { content: [text("The sum of 1 and 2 is 3")] }, false, "content"],
    ["an error", { content: [text("Tool not found")], isError: true }, true, "content"],
    [
      "JSON beside structured content of another shape",
      { content: [text("[1]")], structuredContent: { rows: [1] } },
      false,
      "structured-content",
    ],
    [
      "an image",
      { content: [text("Here:"), { type: "image", data: "AAAA", mimeType: "image/png" }] },
      false,
      "content",
    ],
    [
      "a link without a type the reader knows",
      { content: [{ type: "hologram", uri: "demo://1" }] },
      false,
      "content",
    ],
    [
      "annotations",
      { content: [{ ...text("x"), annotations: { audience: ["user"], priority: 1 } }] },
      false,
      "content",
    ],
  ])("X-2 %s", (_, result, isError, obtained) => {
    expect(decodeToolResult(result)).toMatchObject({ format: "mcp", isError, obtained });
    for (const format of FORMAT_NAMES) expect(transcode(transcode(result, format), "mcp")).toEqual(result);
  });
});
