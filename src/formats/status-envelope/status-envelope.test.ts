import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  buildStructuredResponse,
  buildToolResponse,
  composeToolPayload,
  decodeToolResult,
  FORMATS,
  type ToolResponseMeta,
} from "../index.ts";

const LINK = {
  type: "resource_link",
  uri: "docs://match/1",
  name: "Full excerpt",
  annotations: { priority: 1 },
} as const;
const texts = ({ content }: { content: readonly unknown[] }) =>
  content.map((block) => (block as { text?: string }).text ?? (block as { type: string }).type);

describe("composeToolPayload", () => {
  const meta: ToolResponseMeta = {
    status: "ok",
    summary: "3 matches",
    details: ["in two files", " ", "- **verbatim**\n"],
    nextSteps: ["Open the first", "Narrow the search"],
  };

  it("TR-1 TR-2 writes headline, details, texts, next steps and links in order, blanks left out", () => {
    const payload = composeToolPayload({
      meta,
      data: { hits: 3 },
      additionalText: ["preview", "", "\n\t", "  indented "],
      resourceLinks: [LINK],
    });
    expect(texts(payload)).toEqual([
      "✅ 3 matches",
      "in two files",
      "- **verbatim**\n",
      "preview",
      "  indented ",
      "Next steps:\n- Open the first\n- Narrow the search",
      "resource_link",
    ]);
    expect(payload.content.at(-1)).toBe(LINK);
    expect(payload.structuredContent).toEqual({ meta, data: { hits: 3 } });
    expect(Object.keys(payload)).toEqual(["content", "structuredContent", "isError"]);
  });

  it.each([
    ["ok", "✅ done", false],
    ["error", "❌ done", true],
    ["info", "ℹ️ done", false],
    ["warn", "⚠️ done", false],
  ] as const)("TR-2 TR-3 heads %s with its emoji and follows it in isError", (status, text, isError) => {
    const payload = composeToolPayload({ meta: { status, summary: "done" }, data: null });
    expect(texts(payload)).toEqual([text]);
    expect(payload.isError).toBe(isError);
  });

  it("TR-3 lets the caller decide about isError", () => {
    const ok = { status: "ok", summary: "s" } as const;
    const failed = { status: "error", summary: "s" } as const;
    expect(composeToolPayload({ meta: ok, data: 1, isError: true }).isError).toBe(true);
    expect(composeToolPayload({ meta: failed, data: 1, isError: false }).isError).toBe(false);
  });

  it("TR-2 keeps the details out of the text when asked, and in meta", () => {
    const payload = composeToolPayload({ meta, data: 1, omitMetaDetails: true });
    expect(texts(payload)).toEqual(["✅ 3 matches", "Next steps:\n- Open the first\n- Narrow the search"]);
    expect(payload.structuredContent.meta.details).toEqual(meta.details);
  });

  it("TR-7 shows next steps to hosts that show nothing but text", () => {
    const failed = { status: "error", summary: "No such file", nextSteps: ["Check the path"] } as const;
    const payload = composeToolPayload({ meta: failed, data: { errorCode: "ENOENT" } });
    expect(texts(payload).join("\n")).toContain("- Check the path");
    expect(decodeToolResult(payload)).toMatchObject({
      isError: true,
      error: { code: "ENOENT", message: "No such file" },
    });
  });

  it("TR-1 leaves optional fields out instead of writing undefined", () => {
    const given = { status: "ok", summary: "s", details: undefined, truncated: undefined } as never;
    expect(Object.keys(composeToolPayload({ meta: given, data: 1 }).structuredContent.meta)).toEqual([
      "status",
      "summary",
    ]);
  });

  it("TR-1 warns of a summary over 80 characters or with a line break, at one over", () => {
    const heard = (summary: string) => {
      const onWarning = vi.fn();
      composeToolPayload({ meta: { status: "ok", summary }, data: 1, onWarning });
      return onWarning.mock.calls.length;
    };
    expect(heard("x".repeat(80))).toBe(0);
    expect(heard("😀".repeat(80))).toBe(0);
    expect(heard("x".repeat(81))).toBe(1);
    expect(heard("a\nb")).toBe(1);
    expect(heard("a\rb")).toBe(1);
  });

  it("TR-1 warns on the console unless told where", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    onTestFinished(() => warn.mockRestore());
    composeToolPayload({ meta: { status: "ok", summary: "x".repeat(81) }, data: 1 });
    expect(warn).toHaveBeenCalledOnce();
  });
});

describe("the convenience builders", () => {
  it("TR-5 build a summary of title and status message, with data of their own type", () => {
    const payload = buildStructuredResponse({
      status: "success",
      title: "Search",
      statusMessage: "3 matches",
      textSections: ["one", "two"],
      nextSteps: ["open"],
      tokenUsage: { inline: 1 },
      rateLimit: { remaining: 2 },
      truncated: false,
      resourceLinks: [LINK],
      data: { hits: 3 },
    });
    expect(payload.structuredContent).toEqual({
      meta: {
        status: "ok",
        summary: "Search: 3 matches",
        details: ["one", "two"],
        nextSteps: ["open"],
        truncated: false,
        tokenUsage: { inline: 1 },
        rateLimit: { remaining: 2 },
      },
      data: { hits: 3 },
    });
    expect(texts(payload)).toEqual([
      "✅ Search: 3 matches",
      "one",
      "two",
      "Next steps:\n- open",
      "resource_link",
    ]);
  });

  it.each([
    ["success", "ok"],
    ["ok", "ok"],
    ["error", "error"],
    ["info", "info"],
    ["warn", "warn"],
    ["splendid", "info"],
    ["toString", "info"],
  ])("TR-5 reads the legacy status %s as %s", (status, wanted) => {
    expect(buildToolResponse({ status, title: "t" }).structuredContent.meta.status).toBe(wanted);
  });

  it("TR-5 give the deprecated builder its default data", () => {
    const options = { status: "ok", title: "t", statusMessage: "m", textSections: ["s"], jsonData: { a: 1 } };
    expect(buildToolResponse(options).structuredContent.data).toEqual({
      title: "t",
      statusMessage: "m",
      sections: ["s"],
      jsonData: { a: 1 },
    });
    expect(buildToolResponse({ status: "ok", title: "t" }).structuredContent).toEqual({
      meta: { status: "ok", summary: "t" },
      data: { title: "t" },
    });
  });

  it("TR-5 TR-6 preview JSON up to a limit, say when they cut, and keep the data whole", () => {
    const jsonData = { rows: Array.from({ length: 500 }, (_, i) => i) };
    const payload = buildToolResponse({
      status: "ok",
      title: "t",
      jsonData,
      jsonPreviewLimit: 100,
      omitMetaDetails: true,
    });
    const shown = texts(payload)[1] ?? "";
    expect(shown.startsWith("```json\n{")).toBe(true);
    expect(shown.endsWith("\n```")).toBe(true);
    expect(shown.length).toBeLessThanOrEqual(100 + "```json\n\n```".length);
    expect(payload.structuredContent).toMatchObject({
      meta: { truncated: true },
      data: { truncated: true, jsonData },
    });
    const whole = buildToolResponse({ status: "ok", title: "t", jsonData: { a: 1 } });
    expect(texts(whole)[1]).toBe('```json\n{\n  "a": 1\n}\n```');
    expect(whole.structuredContent.meta).not.toHaveProperty("truncated");
  });
});

describe("the codec", () => {
  it("TR-7 gives an error without data a code to branch on, and its suggestion as the next step", () => {
    const { content, structuredContent } = FORMATS["status-envelope"].encode({
      isError: true,
      error: { message: "Gone", code: "NOT_FOUND", suggestedAction: "List first.", nextTool: "list" },
    });
    expect(structuredContent).toEqual({
      meta: { status: "error", summary: "Gone", nextSteps: ["List first.", "Call list."] },
      data: { errorCode: "NOT_FOUND" },
    });
    expect(texts({ content })).toEqual(["❌ Gone", "Next steps:\n- List first.\n- Call list."]);
  });

  it("TR-1 notices a flag that contradicts the status, and a long summary", () => {
    const structuredContent = { meta: { status: "error", summary: "x".repeat(81) }, data: 1 };
    const { odd, isError } = decodeToolResult({ content: [], structuredContent, isError: false });
    expect(odd.map(({ code }) => code)).toEqual(["flag_mismatch", "long_summary"]);
    expect(isError).toBe(false);
  });
});
