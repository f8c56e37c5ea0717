import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import { type Block, beginningOf, type Inline, readInline, readMarkdown } from "./markdown-text.tsx";

const words = (parts: readonly Inline[]): string =>
  parts
    .map((part) => {
      if ("text" in part) return part.kind === "code" ? `\`${part.text}\`` : part.text;
      return part.kind === "link"
        ? `[${words(part.parts)}](${part.address})`
        : `<${part.kind}>${words(part.parts)}</>`;
    })
    .join("");

const shown = (block: Block): string => {
  if (block.kind === "code") return `code: ${block.text}`;
  if (block.kind === "list") return `${block.isOrdered ? "ol" : "ul"}: ${block.items.map(words).join(" | ")}`;
  return `${block.kind}: ${words(block.parts)}`;
};

describe("Markdown of descriptions", () => {
  it("is read as blocks", () => {
    const text =
      "# Title\n\nOne\nparagraph.\n\n- a\n- b\n1. c\n\n> quoted\n\n```json\n{ *x* }\n```\n---\nend";
    expect(readMarkdown(text).map(shown)).toEqual([
      "heading: Title",
      "paragraph: One\nparagraph.",
      "ul: a | b | c",
      "quote: quoted",
      "code: { *x* }",
      "paragraph: end",
    ]);
  });

  it.each([
    ["**bold** and *slanted*", "<strong>bold</> and <em>slanted</>"],
    ["`code *is* code`", "`code *is* code`"],
    ["[docs](https://example.com/a_b)", "[docs](https://example.com/a_b)"],
    ['[docs](<https://example.com> "title")', "[docs](https://example.com)"],
    ["snake_case_name and __init__", "snake_case_name and <strong>init</>"],
    ["2 * 3 * 4", "2 * 3 * 4"],
    ["\\*not\\* this", "*not* this"],
    ["**never closed", "**never closed"],
    ["[!NOTE] see [docs](https://example.com)", "[!NOTE] see [docs](https://example.com)"],
  ])("%j", (text, expected) => {
    expect(words(readInline(text))).toBe(expected);
  });

  it.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "![tracker](https://evil.example/pixel.png)",
    "&lt;b&gt;",
    "[x]: https://evil.example",
    "| a | b |",
  ])("HTML, images and the rest stay the text they are: %j", (text) => {
    expect(readMarkdown(text)).toEqual([{ kind: "paragraph", parts: [{ kind: "text", text }] }]);
  });

  it("addresses of links are told as they are, to be checked by whoever draws them", () => {
    const [link] = readInline("[x](javascript:alert(1))");
    // What holds a bracket is no address here, so it is no link at all.
    expect(link?.kind).toBe("text");
    expect(readInline("[x](data:text/html,hi)")[0]).toMatchObject({
      kind: "link",
      address: "data:text/html,hi",
    });
  });

  it.each(["*", "_", "`", "[", "](", "**_`[", "> ", "- ", "\\", "[x](", "``` "])(
    "a text of nothing but %j takes no longer than its length",
    (piece) => {
      const short = piece.repeat(20_000 / piece.length);
      const long = piece.repeat(80_000 / piece.length);
      const took = (text: string): number => {
        const before = cpuMs();
        readMarkdown(text);
        return cpuMs() - before;
      };
      took(short);
      expect(took(long)).toBeLessThan(12 * Math.max(took(short), 8));
    },
  );

  it.each([
    ["# x", " ", "x"],
    ["# x", " #", "x"],
    ["- ", " ", "x"],
    ["", "- ", "x"],
    ["```", " ", "x"],
    ["[x](", " ", "x"],
  ])("a line of %j, %j over and over, and %j takes no longer than its length", (start, piece, end) => {
    const took = (times: number): number => {
      const before = cpuMs();
      readMarkdown(start + piece.repeat(times / piece.length) + end);
      return cpuMs() - before;
    };
    took(500);
    expect(took(1_000)).toBeLessThan(100);
    expect(took(20_000)).toBeLessThan(100);
  });

  it("the number signs that close a heading are none of it", () => {
    const [first, second, third] = readMarkdown("# one ##  \n# two#\n# C #x#");
    expect([first, second, third].map((block) => block && shown(block))).toEqual([
      "heading: one",
      "heading: two#",
      "heading: C #x#",
    ]);
  });

  it("lines and levels have an end", () => {
    expect(readMarkdown("a\n\n".repeat(5_000)).length).toBeLessThanOrEqual(1_001);
    expect(JSON.stringify(readInline(`${"*_".repeat(200)}x${"_*".repeat(200)}`)).length).toBeLessThan(20_000);
  });
});

describe("the beginning of a long text", () => {
  it.each([
    ["of a paragraph", "One. Two.\n\nThree four five", 16, "One. Two."],
    ["of a sentence", "One two. Three four five", 14, "One two. …"],
    ["of a word", "One two three four five", 15, "One two three …"],
    ["before a link", "One two [three four](https://five.example)", 16, "One two …"],
    ["behind a link", "One [two](https://three.example) four five", 36, "One [two](https://three.example) …"],
    ["anywhere, where there is no end", "x".repeat(40), 10, `${"x".repeat(10)} …`],
  ])("ends at the end %s", (_, text, most, shown) => {
    expect(beginningOf(text, most)).toBe(shown);
  });
});
