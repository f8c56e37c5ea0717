import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLineReader } from "./line-reader.ts";

/** Pushes bytes in chunks of the given sizes, over and over, and returns what was heard. */
function read(bytes: Buffer, sizes: readonly number[], lineBytes = 1_000_000): string[] {
  const heard: string[] = [];
  const reader = createLineReader({
    lineBytes,
    onLine: (line) => heard.push(`line ${line}`),
    onLong: (front) => heard.push(`long ${front}`),
    onLongEnd: (tail) => heard.push(`end ${tail}`),
  });
  for (let from = 0, i = 0; from < bytes.length; i++) {
    const size = sizes[i % sizes.length] as number;
    reader.push(bytes.subarray(from, from + size));
    from += size;
  }
  reader.end();
  return heard;
}

describe("createLineReader", () => {
  it("Mcp: any chunking of any lines gives the same lines", () => {
    const line = fc.string({ unit: "binary", maxLength: 40 }).map((text) => text.replaceAll("\n", ""));
    const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(line), sizes, fc.boolean(), (lines, chunks, hasLast) => {
        const text = lines.join("\n") + (hasLast ? "\n" : "");
        const bytes = Buffer.from(text);
        const expected = text.split("\n").filter((each) => each !== "");
        expect(read(bytes, chunks)).toEqual(expected.map((each) => `line ${Buffer.from(each)}`));
      }),
    );
  });

  it("Mcp: reads a line of as many bytes as allowed, and drops one of a byte more, however it comes", () => {
    for (const sizes of [[1], [7], [100], [4, 90]]) {
      expect(read(Buffer.from(`${"a".repeat(50)}\nb\n`), sizes, 50)).toEqual([
        `line ${"a".repeat(50)}`,
        "line b",
      ]);
      const [long, end, next] = read(Buffer.from(`${"a".repeat(51)}\nb\n`), sizes, 50);
      expect(long).toMatch(/^long a{50,51}$/);
      expect(end).toBe(`end ${"a".repeat(51)}`);
      expect(next).toBe("line b");
    }
  });

  it("Mcp: keeps 200 bytes of either end of a dropped line, and no more", () => {
    const bytes = Buffer.from(`${"f".repeat(200)}${"m".repeat(5_000)}${"t".repeat(200)}\n`);
    for (const sizes of [[6_000], [333], [64]]) {
      expect(read(bytes, sizes, 1_000)).toEqual([`long ${"f".repeat(200)}`, `end ${"t".repeat(200)}`]);
    }
  });

  it("Mcp: tells of a line that is too long before it has ended", () => {
    const heard: string[] = [];
    const reader = createLineReader({
      lineBytes: 10,
      onLine: () => heard.push("line"),
      onLong: () => heard.push("long"),
      onLongEnd: () => heard.push("end"),
    });
    for (let i = 0; i < 100; i++) reader.push(Buffer.from("12345"));
    expect(heard).toEqual(["long"]);
    reader.end();
    expect(heard).toEqual(["long", "end"]);
  });

  it("Mcp: a line that comes byte by byte takes the memory of its bytes", () => {
    const byte = Buffer.from("x");
    let length = 0;
    const reader = createLineReader({
      lineBytes: 4_000_000,
      onLine: (line) => {
        length = line.length;
      },
      onLong: () => {},
      onLongEnd: () => {},
    });
    const before = process.memoryUsage();
    for (let i = 0; i < 3_000_000; i++) reader.push(byte);
    const after = process.memoryUsage();
    expect(after.heapUsed + after.external - before.heapUsed - before.external).toBeLessThan(60_000_000);
    reader.push(Buffer.from("\n"));
    expect(length).toBe(3_000_000);
  });
});
