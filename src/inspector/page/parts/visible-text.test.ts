import { expect, test } from "vitest";
import { truncateText } from "../../../core/text/truncate-text.ts";
import { visibleText } from "./show.ts";

test("characters that hide or reorder text are shown by their number", () => {
  expect(visibleText("a\u202Eb\u0000\u200Bc\u{E0041}")).toBe("a<U+202E>b<U+0000><U+200B>c<U+E0041>");
});

test.each([
  ["\0", "<U+0000>"],
  ["\r", "<U+000D>"],
  ["\u001b", "<U+001B>"],
  ["\u009b", "<U+009B>"],
  ["\u00ad", "<U+00AD>"],
  ["\u200f", "<U+200F>"],
  ["\u2028", "<U+2028>"],
  ["\u2066", "<U+2066>"],
  ["\u3164", "<U+3164>"],
  ["\ufeff", "<U+FEFF>"],
  ["\u{e0100}", "<U+E0100>"],
])("%j is shown", (text, shown) => {
  expect(visibleText(`a${text}b${text}`)).toBe(`a${shown}b${shown}`);
});

test("lines, tabs, emoji and other scripts stay as they are", () => {
  const text = "a\n\tb 👩‍🚀 می‌خواهم é 日本";
  expect(visibleText(text)).toBe(text);
});

test("a long text is cut", () => {
  expect(visibleText("abcdef", 3)).toBe("abc…");
  expect(visibleText("abc", 3)).toBe("abc");
  expect(visibleText("\u202e".repeat(1_000_000), 40).length).toBe(40 * "<U+202E>".length + 1);
  expect(visibleText("ab😀c", 3)).toBe("ab…");
});

test("a cut never falls between the halves of a character", () => {
  expect(truncateText("ab😀c", 3)).toBe("ab");
  expect(truncateText("ab😀c", 4)).toBe("ab😀");
  expect(truncateText("ab", 2)).toBe("ab");
});
