import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRpcReader } from "./rpc-reader.ts";

function createHeard(lineBytes: number) {
  const heard: unknown[] = [];
  const reader = createRpcReader({
    lineBytes,
    onMessage: (message) => heard.push(message),
    onOddity: (message) => heard.push(message),
  });
  return { reader, heard };
}

describe("createRpcReader", () => {
  it("Mcp: fails the request of an answer that is too large before the answer has ended", () => {
    const { reader, heard } = createHeard(100);
    reader.push(Buffer.from(`{"jsonrpc":"2.0","id":7,"result":"${"x".repeat(100)}`));
    expect(heard[1]).toMatchObject({ id: 7, error: { code: -32603, data: { waybill: "TOO_LARGE" } } });
    reader.push(Buffer.from('","id":8}\n'));
    reader.end();
    expect(heard).toHaveLength(2);
  });

  it("Mcp: a message of as many bytes as allowed is read, one of a byte more is not", () => {
    const line = '{"jsonrpc":"2.0","id":7,"result":{}}';
    for (const [lineBytes, member] of [
      [line.length, "result"],
      [line.length - 1, "error"],
    ] as const) {
      const { reader, heard } = createHeard(lineBytes);
      reader.push(Buffer.from(`${line}\n`));
      expect(heard.at(-1)).toHaveProperty(member);
    }
  });

  it("Mcp: shows 200 whole characters of an odd line", () => {
    const { reader, heard } = createHeard(10_000);
    reader.push(Buffer.from(`${"😀".repeat(201)}\n`));
    expect(heard).toEqual([`A line on standard output is not JSON: "${"😀".repeat(200)}"`]);
  });

  it("Mcp: messages among any noise are all heard, whatever the chunks and the limit on lines", () => {
    const noise = fc
      .uint8Array({ maxLength: 60 })
      .map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 10)));
    fc.assert(
      fc.property(fc.array(noise), fc.integer({ min: 1, max: 50 }), (lines, size) => {
        const { reader, heard } = createHeard(40);
        const message = Buffer.from('{"jsonrpc":"2.0","id":1}');
        const bytes = Buffer.concat(
          lines.flatMap((line) => [line, Buffer.from("\n"), message, Buffer.from("\n")]),
        );
        for (let i = 0; i < bytes.length; i += size) reader.push(bytes.subarray(i, i + size));
        expect(heard.filter((each) => typeof each === "object")).toHaveLength(lines.length);
      }),
    );
  });
});
