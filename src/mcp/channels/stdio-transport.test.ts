import { describe, expect, it } from "vitest";
import { createStderrTail } from "./stdio-transport.ts";

const ESCAPE = String.fromCharCode(27);

function createTail(chars: number) {
  const lines: string[] = [];
  const tail = createStderrTail({ chars, listener: () => (line) => lines.push(line) });
  return { tail, lines };
}

describe("createStderrTail", () => {
  it("Mcp: keeps as many characters as allowed, and not one more", () => {
    const { tail } = createTail(5);
    tail.push(Buffer.from("12345"));
    expect(tail.text).toBe("12345");
    tail.push(Buffer.from("6"));
    expect(tail.text).toBe("23456");
  });

  it("Mcp: never begins with half a character, and joins one that came in two chunks", () => {
    const { tail } = createTail(3);
    const bytes = Buffer.from("ab😀cd");
    tail.push(bytes.subarray(0, 4));
    tail.push(bytes.subarray(4));
    expect(tail.text).toBe("cd");
    const { tail: whole } = createTail(10);
    whole.push(bytes.subarray(0, 4));
    whole.push(bytes.subarray(4));
    expect(whole.text).toBe("ab😀cd");
  });

  it("Mcp: shows no terminal sequence, control character or hidden text", () => {
    const { tail, lines } = createTail(100);
    tail.push(Buffer.from(`${ESCAPE}[31mred${ESCAPE}[0m\u0007\u202e\u{e0041}\r\n[x]\tend`));
    expect(tail.text).toBe("red\n[x]\tend");
    tail.end();
    expect(lines).toEqual(["red", "[x]\tend"]);
  });

  it("Mcp: tells lines that came in pieces once, empty ones too, and long ones in pieces", () => {
    const { tail, lines } = createTail(4);
    for (const text of ["a", "b\n\nc", "\n12345678", "9", "\nabcdefghi\n"]) tail.push(Buffer.from(text));
    tail.end();
    tail.end();
    expect(lines).toEqual(["ab", "", "c", "1234", "5678", "9", "abcd", "efgh", "i"]);
  });
});
