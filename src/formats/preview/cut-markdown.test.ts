import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { runs } from "../../../test/runs.ts";
import { type CutText, type CutTextOptions, cutText, cutTexts } from "./cut-markdown.ts";
import { estimateTokens } from "./token-budget.ts";

const MARKER = /(?:^|\n)…(?: \([\d,]+ more characters\))?$/;
const CLOSED_MARKDOWN = /(?:^|\n)(?:> | {1,6})*[`~]{3,}$/;

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

function boundariesOf(text: string): Set<number> {
  return new Set([...Array.from(segmenter.segment(text), ({ index }) => index), text.length]);
}

/** Fences at the beginning of lines, without quotes and lists: a plain reading to compare with. */
function hasOpenFence(text: string): boolean {
  let open = "";
  for (const line of text.split("\n")) {
    const [, marker = "", rest = ""] = /^(`{3,}|~{3,})(.*)$/.exec(line) ?? [];
    if (open === "") open = marker.startsWith("`") && rest.includes("`") ? "" : marker;
    else if (marker.startsWith(open) && rest.trim() === "") open = "";
  }
  return open !== "";
}

const prose = fc.string({ unit: "grapheme", maxLength: 300 });
const pieces = ["🇩🇪🇫🇷", "👨‍👩‍👧", "e\u0301", "\r\n", "😀", "word ", "\n", "\ud83d", "각", "👍🏽", "line\n"];
const tricky = fc.array(fc.constantFrom(...pieces), { maxLength: 80 }).map((parts) => parts.join(""));
const fenced = fc
  .array(fc.constantFrom("```js\n", "```\n", "````\n", "~~~\n", "```x``` y\n", "code();\n", "text ", "\n"), {
    maxLength: 60,
  })
  .map((parts) => parts.join(""));
const limit = fc.nat({ max: 400 });

function keptOf(text: string, cut: CutText): string {
  return text.slice(0, text.length - cut.omittedCharacters);
}

describe("cutting text", () => {
  it("TR-6 gives a text within the limit back as it is, at N, and cuts it at N + 1", () => {
    const text = "a".repeat(2_000);
    expect(cutText(text)).toEqual({ text, truncated: false, omittedCharacters: 0 });
    const cut = cutText(`${text}a`);
    expect(cut.truncated).toBe(true);
    expect(cut.text.length).toBeLessThanOrEqual(2_000);
    expect(cut.text.length).toBeGreaterThan(1_990);
    expect(cut.text).toMatch(/^a+\n… \(\d+ more characters\)$/);
  });

  it("TR-6 says how many characters are missing", () => {
    const text = "word ".repeat(2_000);
    const cut = cutText(text);
    expect(cut.text.endsWith(`\n… (${cut.omittedCharacters.toLocaleString("en-US")} more characters)`)).toBe(
      true,
    );
    expect(cut.omittedCharacters).toBeGreaterThan(8_000);
    expect(text.startsWith(keptOf(text, cut))).toBe(true);
  });

  it("TR-6 never exceeds a limit, and keeps a beginning that ends between graphemes", () => {
    fc.assert(
      fc.property(fc.oneof(prose, tricky, fenced), limit, (text, maxCharacters) => {
        const cut = cutText(text, { maxCharacters });
        expect(cut.text.length).toBeLessThanOrEqual(maxCharacters);
        expect(cut.truncated).toBe(text.length > maxCharacters);
        if (!cut.truncated) expect(cut.text).toBe(text);
        else if (cut.text !== "") {
          const kept = keptOf(text, cut);
          expect(cut.text.startsWith(kept)).toBe(true);
          expect(boundariesOf(text)).toContain(kept.length);
          const added = cut.text.slice(kept.length);
          expect(added).toMatch(MARKER);
          expect(added.replace(MARKER, "").trim()).toMatch(/^(?:[`~]{3,})?$/);
        }
      }),
      runs(1_000),
    );
  });

  it("TR-6 never exceeds a limit on tokens", () => {
    fc.assert(
      fc.property(fc.oneof(prose, tricky, fenced), fc.nat({ max: 60 }), (text, maxTokens) => {
        const cut = cutText(text, { maxTokens });
        expect(estimateTokens(cut.text)).toBeLessThanOrEqual(maxTokens);
        expect(cut.truncated).toBe(estimateTokens(text) > maxTokens);
        if (cut.text !== "") expect(cut.text.startsWith(keptOf(text, cut))).toBe(true);
      }),
      runs(500),
    );
  });

  it("TR-6 leaves every fence closed", () => {
    fc.assert(
      fc.property(fenced, limit, (text, maxCharacters) => {
        const cut = cutText(text, { maxCharacters });
        if (cut.truncated) expect(hasOpenFence(cut.text)).toBe(false);
      }),
      runs(2_000),
    );
  });

  it("TR-6 closes a fence with its own marker, within the limit", () => {
    const text = `Intro\n\n~~~~ts\n${"const a = 1;\n".repeat(300)}~~~~\n`;
    const cut = cutText(text);
    expect(cut.text).toMatch(/const a = 1;\n~~~~\n… \([\d,]+ more characters\)$/);
    expect(cut.text.length).toBeLessThanOrEqual(2_000);
    expect(cut.text.length).toBeGreaterThan(1_900);
  });

  it("TR-6 closes a fence inside a quote and a list item", () => {
    const text = `> - \`\`\`\n${">   code\n".repeat(400)}`;
    const [body = ""] = cutText(text).text.split("\n…");
    expect(body).toMatch(CLOSED_MARKDOWN);
    expect(body.endsWith(">   code\n>   ```")).toBe(true);
  });

  it("TR-6 cuts before a fence that has no room to be closed", () => {
    const text = `${"a".repeat(100)}\n${"`".repeat(80)}\n${"code\n".repeat(100)}`;
    expect(cutText(text, { maxCharacters: 240 }).text).toMatch(/^a+\n… \(\d+ more characters\)$/);
  });

  it.each(["😀", "🇩🇪", "e\u0301", "👨‍👩‍👧", "あ"])(
    "TR-6 uses most of a limit on a text of %s alone",
    (unit) => {
      const text = unit.repeat(3_000);
      for (let maxCharacters = 490; maxCharacters < 500; maxCharacters++) {
        expect(cutText(text, { maxCharacters }).text.length).toBeGreaterThan(maxCharacters - unit.length - 2);
      }
    },
  );

  it("TR-6 prefers the end of a line, then that of a word", () => {
    const lines = `${"x".repeat(90)}\n`.repeat(10);
    expect(cutText(lines, { maxCharacters: 500 }).text).toMatch(/^(?:x{90}\n){5}…/);
    const words = "abcdefgh ".repeat(100);
    expect(cutText(words, { maxCharacters: 500 }).text).toMatch(/abcdefgh\n… \(\d+ more characters\)$/);
  });

  it("TR-6 gives nothing but the marker rather than split one long grapheme", () => {
    const text = `e${"\u0301".repeat(5_000)}`;
    expect(cutText(text)).toEqual({
      text: "… (5,001 more characters)",
      truncated: true,
      omittedCharacters: 5_001,
    });
    expect(cutText("👨‍👩‍👧👨‍👩‍👧", { maxCharacters: 5 }).text).toBe("…");
  });

  it.each([
    [0, ""],
    [1, "…"],
    [2, "…"],
    [3, "a\n…"],
    [4, "ab\n…"],
  ])("TR-6 makes do with a limit of %i", (maxCharacters, expected) => {
    expect(cutText("abcdefgh", { maxCharacters }).text).toBe(expected);
  });

  it("TR-6 gives the empty text where there is no room for a token", () => {
    expect(cutText("some words here", { maxTokens: 0 })).toEqual({
      text: "",
      truncated: true,
      omittedCharacters: 15,
    });
  });

  it("TR-6 uses most of a limit on tokens", () => {
    const cut = cutText("Some words, and then some more.\n".repeat(1_000), {
      maxCharacters: Number.POSITIVE_INFINITY,
      maxTokens: 500,
    });
    expect(estimateTokens(cut.text)).toBeGreaterThan(400);
  });

  it.each([{ maxCharacters: -1 }, { maxCharacters: 1.5 }, { maxTokens: Number.NaN }])(
    "TR-6 refuses the limit %o by its name",
    (options: CutTextOptions) => {
      const [name = ""] = Object.keys(options);
      expect(() => cutText("text", options)).toThrow(RangeError);
      expect(() => cutText("text", options)).toThrow(name);
    },
  );

  it.each(["a", "あ", "😀", " ", "\n", "`", "\u0301", "🇩🇪", "```\n", "word "])(
    "TR-6 cuts 10 MB of %j well under a second",
    (unit) => {
      const text = `x${unit.repeat(10_000_000 / unit.length)}`;
      // Repeated text is a rope until it is first read, and turning it into characters is not what is measured.
      text.charCodeAt(text.length - 1);
      const start = cpuMs();
      cutText(text);
      expect(cpuMs() - start).toBeLessThan(500);
    },
  );
});

describe("cutting several texts", () => {
  it("TR-6 spends one limit on all of them, in order", () => {
    const texts = ["a".repeat(60), "b".repeat(60), "c"];
    expect(cutTexts(texts, { maxCharacters: 121 })).toEqual({ texts, truncated: false });
    const cut = cutTexts(texts, { maxCharacters: 119 });
    expect(cut.truncated).toBe(true);
    expect(cut.texts).toEqual([texts[0], expect.stringMatching(/^b+\n…/)]);
    expect(cutTexts(texts, { maxCharacters: 60 })).toEqual({ texts: [texts[0]], truncated: true });
  });

  it("TR-6 leaves blank texts out, and does not count them as cut", () => {
    expect(cutTexts(["  \n", "a", ""], { maxCharacters: 1 })).toEqual({ texts: ["a"], truncated: false });
  });

  it("TR-6 stays within both limits together", () => {
    fc.assert(
      fc.property(
        fc.array(fc.lorem()),
        fc.nat({ max: 200 }),
        fc.nat({ max: 40 }),
        (texts, maxCharacters, maxTokens) => {
          const cut = cutTexts(texts, { maxCharacters, maxTokens });
          expect(cut.texts.join("").length).toBeLessThanOrEqual(maxCharacters);
          expect(cut.texts.reduce((sum, text) => sum + estimateTokens(text), 0)).toBeLessThanOrEqual(
            maxTokens,
          );
          if (!cut.truncated) expect(cut.texts).toEqual(texts);
        },
      ),
    );
  });
});
