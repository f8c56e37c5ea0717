import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { fenceSeam } from "./cut-markdown.ts";

const closingOf = (text: string): string | undefined => fenceSeam(text, text.length).open?.closing;

describe("open fences", () => {
  it.each([
    ["backticks", "```\ncode\n", "```"],
    ["more backticks", "`````\ncode\n```\n", "`````"],
    ["tildes with an info string that has backticks", "~~~ a `b`\ncode\n", "~~~"],
    ["an info string", "```ts title=x\ncode", "```"],
    ["an indented fence", "   ```\ncode\n", "```"],
    ["a closing marker with text behind it", "```\n``` no\n", "```"],
    ["a closing marker indented too far", "```\n    ```\n", "```"],
    ["the other marker", "```\n~~~\n", "```"],
    ["a fence in a quote", "> ```\n> code\n", "> ```"],
    ["a fence in a quote within a quote", "> > ~~~\n> > code", "> > ~~~"],
    ["a fence in a list item", "- ```js\n  code\n", "  ```"],
    ["a fence in a numbered item", "10. text\n\n    ```js\n    code\n", "    ```"],
    ["a fence in an item of an item", "- a\n  - b\n\n    ```\n    code\n\n    more", "    ```"],
    ["a fence in an item within a quote", "> - ```\n>   code\n", ">   ```"],
    ["a fence behind a lazy line of an item", "- a\nb\n  ```\n  code\n", "  ```"],
    ["a fence behind a tab", "-\t```\n\tcode\n", "    ```"],
    ["a fence that interrupts a paragraph", "text\n```\ncode\n", "```"],
    ["a second fence", "```\na\n```\n\n~~~\nb\n", "~~~"],
    ["a fence after a line end of one return", "text\r```\rcode\r", "```"],
    ["a fence after line ends of two characters", "text\r\n```\r\ncode\r\n", "```"],
    ["a fence behind a break that looks like a list", "* * *\n```\ncode", "```"],
    ["a fence behind a heading", "# h\n```\ncode", "```"],
  ])("TR-6 sees that %s is open", (_, text, closing) => {
    expect(closingOf(text)).toBe(closing);
  });

  it.each([
    ["a closed block", "```\ncode\n```\n"],
    ["a block closed by a longer marker and spaces", "```\ncode\n`````  \n"],
    ["a block closed with less indentation", "   ```\ncode\n```"],
    ["inline code of three backticks", "```x``` text\n"],
    ["two backticks", "``\ncode\n"],
    ["indented code", "    ```\n    code\n"],
    ["a quote that ended", "> ```\n> code\ntext\n"],
    ["a list item that ended", "- ```\n  code\ntext\n"],
    ["a paragraph with a number in it", "text\n2. ```\n"],
    ["an indented line of a paragraph", "text\n    ```\n"],
    ["a marker in the middle of a line", "text ```\n"],
  ])("TR-6 sees that nothing is open after %s", (_, text) => {
    expect(closingOf(text)).toBeUndefined();
  });

  it.each([
    ["an opening line", "text\n```type\ncode\n```\n", 7, 5],
    ["an opening line behind its marker", "text\n```type\ncode\n```\n", 10, 5],
    ["a closing line", "````\ncode\n````\n", 12, 10],
    ["inline code that would look like an opening line", "text\n```x``` more\n", 9, 5],
    ["a line of code that would look like a closing line", "```\n``` more\n```\n", 7, 4],
    ["the line of a list item that opens", "- ```js\n  code\n", 6, 0],
  ])("TR-6 moves a cut inside %s before it", (_, text, place, expected) => {
    expect(fenceSeam(text, place).place).toBe(expected);
  });

  it("TR-6 leaves other places alone, and knows where a block began", () => {
    const text = "text\n```js\nlong line of code\n```\n";
    expect(fenceSeam(text, 3)).toEqual({ place: 3, open: undefined });
    expect(fenceSeam(text, 16)).toMatchObject({ place: 16, open: { start: 5, contentStart: 11 } });
  });

  it("TR-6 follows 32 quotes into each other and no more", () => {
    expect(closingOf(`${">".repeat(32)} \`\`\`\n`)).toBe(`${"> ".repeat(32)}\`\`\``);
    expect(closingOf(`${">".repeat(33)} \`\`\`\n`)).toBeUndefined();
  });

  it.each([
    ["nested items and blank lines", `${"- ".repeat(100_000)}\n${"\n".repeat(100_000)}`],
    ["one long marker", "`".repeat(1_000_000)],
    ["one long break", "* ".repeat(500_000)],
    ["spaces", " ".repeat(1_000_000)],
    ["quotes", ">".repeat(1_000_000)],
  ])("TR-6 reads a long text of %s in linear time", (_, text) => {
    const start = cpuMs();
    fenceSeam(text, text.length);
    expect(cpuMs() - start).toBeLessThan(2_000);
  });
});
