import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { createRpcReader, readAnswerId, readRpcLine, toLostAnswer } from "./rpc-lines.ts";

const read = (text: string) => readRpcLine(Buffer.from(text));
const nested = (levels: number, pad = "") =>
  `{"jsonrpc":"2.0","id":1,"pad":"${pad}","result":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;

describe("readRpcLine", () => {
  it("Mcp: passes a message on as it came, unknown members and hostile names included", () => {
    const text = '{"jsonrpc":"2.0","id":1,"result":{"__proto__":{"x":1}},"constructor":{},"extra":[null]}';
    const { messages, odd } = read(text);
    expect(odd).toBeUndefined();
    expect(JSON.stringify(messages[0])).toBe(text);
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });

  it("Mcp: tolerates a byte order mark, a carriage return and spaces", () => {
    for (const text of ['\ufeff{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0"}\r', ' \t{"jsonrpc":"2.0"} ']) {
      expect(read(text)).toEqual({ messages: [{ jsonrpc: "2.0" }] });
    }
    for (const text of ["\r", "  ", "\ufeff"]) expect(read(text)).toEqual({ messages: [] });
  });

  it("Mcp: takes the messages of an array one by one, and says so when some are none", () => {
    expect(read('[{"jsonrpc":"2.0","id":1},{"jsonrpc":"2.0","id":2}]')).toEqual({
      messages: [
        { jsonrpc: "2.0", id: 1 },
        { jsonrpc: "2.0", id: 2 },
      ],
    });
    expect(read('[{"jsonrpc":"2.0","id":1},7]')).toEqual({
      messages: [{ jsonrpc: "2.0", id: 1 }],
      odd: "is not a JSON-RPC message",
    });
  });

  it.each([0, 100_000])(
    "RE-22 reads a list of tools although one is nested too deeply, and nothing else",
    (pad) => {
      const deep = (levels: number) => `${'{"a":'.repeat(levels)}"]}"${"}".repeat(levels)}`;
      const list = (levels: number, more = "") =>
        `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"bad","inputSchema":${deep(levels)}},{"name":"good"}]${more}},"pad":"${"x".repeat(pad)}"}`;
      for (const levels of [600, 50_000]) {
        const { messages, odd } = read(list(levels));
        expect(odd).toBeUndefined();
        const { result } = messages[0] as unknown as {
          result: { tools: { name: string; inputSchema: object }[] };
        };
        expect(result.tools.map(({ name }) => name)).toEqual(["bad", "good"]);
        // It is still deeper than what is read: the object, the result, the list and the tool are above it.
        expect(JSON.stringify(result.tools[0]?.inputSchema)).toBe(
          `${'{"a":'.repeat(508)}{}${"}".repeat(508)}`,
        );
      }
      for (const more of [',"content":[]', ',"contents":[]', ',"messages":[]', ',"structuredContent":{}']) {
        expect(read(list(600, more))).toEqual({ messages: [], odd: "is nested too deeply" });
      }
      expect(read(list(600).slice(0, -1))).toEqual({ messages: [], odd: "is nested too deeply" });
    },
  );

  it.each(["{}", "[]", "7", "null", '"text"', '{"jsonrpc":"1.0"}', '{"jsonrpc":2}', '[[{"jsonrpc":"2.0"}]]'])(
    "Mcp: %s is no message",
    (text) => {
      expect(read(text)).toEqual({ messages: [], odd: "is not a JSON-RPC message" });
    },
  );

  it("Mcp: reads 512 levels and refuses 513, in short lines and in long ones", () => {
    for (const pad of ["", "x".repeat(70_000)]) {
      expect(read(nested(512, pad)).messages).toHaveLength(1);
      expect(read(nested(513, pad))).toEqual({ messages: [], odd: "is nested too deeply" });
    }
  });

  it("Mcp: refuses millions of levels in no time", () => {
    const start = cpuMs();
    expect(read(`${"[".repeat(8_000_000)}${"]".repeat(8_000_000)}`).odd).toBe("is nested too deeply");
    expect(cpuMs() - start).toBeLessThan(1_000);
  });

  it("Mcp: brackets in strings are no levels", () => {
    const text = JSON.stringify({ jsonrpc: "2.0", result: `"\\${"[{".repeat(50_000)}` });
    expect(read(text).messages).toHaveLength(1);
  });

  it("Mcp: any bytes are read without an exception", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void readRpcLine(Buffer.from(bytes))),
    );
  });
});

describe("readAnswerId", () => {
  const idOf = (text: string) =>
    readAnswerId(Buffer.from(text).subarray(0, 200), Buffer.from(text).subarray(-200));
  const long = JSON.stringify("x".repeat(1_000));

  it.each([
    [`{"jsonrpc":"2.0","id":7,"result":${long}}`, 7],
    [`{"id":-7,"jsonrpc":"2.0","error":${long}}`, -7],
    [`\ufeff { "id" : "a-1" , "result" : ${long}}`, "a-1"],
    [`{"result":${long},"jsonrpc":"2.0","id":7}`, 7],
    [`{"jsonrpc":"2.0","result":${long},"id":"b"}\r`, "b"],
    [`{"error":${long},"id":0,"jsonrpc":"2.0"} `, 0],
  ])("Mcp: finds the id of an answer (%#)", (text, id) => {
    expect(idOf(text)).toBe(id);
  });

  it.each([
    `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":${long}}`,
    `{"jsonrpc":"2.0","method":"notifications/message","params":{"x":${long},"id":7}}`,
    `{"method":"x","params":${long},"id":7}`,
    `{"jsonrpc":"2.0","id":null,"error":${long}}`,
    `{"jsonrpc":"2.0","id":"a\\"b","result":${long}}`,
    `{"jsonrpc":"2.0","id":7.5,"result":${long}}`,
    `{"jsonrpc":"2.0","id":12345678901234567890,"result":${long}}`,
    `{"result":${long},"note":"\\",\\"id\\":7}"}`,
    `noise {"jsonrpc":"2.0","id":7,"result":${long}}`,
  ])("Mcp: takes nothing else for one (%#)", (text) => {
    expect(idOf(text)).toBeUndefined();
  });

  it("Mcp: is linear in what it looks at", () => {
    const start = cpuMs();
    for (const text of [
      `{"result":${",".repeat(190)}`,
      `{"result":${" ".repeat(400)}}`,
      `{"id":"${" ".repeat(400)}`,
    ]) {
      for (let i = 0; i < 1_000; i++) idOf(text);
    }
    expect(cpuMs() - start).toBeLessThan(1_000);
  });
});

describe("toLostAnswer", () => {
  it("Mcp: is an error of the request, with a code of the one table", () => {
    expect(toLostAnswer("a", "Why.", "TOO_LARGE")).toEqual({
      jsonrpc: "2.0",
      id: "a",
      error: { code: -32603, message: "Why.", data: { waybill: "TOO_LARGE" } },
    });
  });
});

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
