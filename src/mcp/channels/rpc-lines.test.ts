import { Writable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import {
  createLineReader,
  createLineWriter,
  createRpcReader,
  readAnswerId,
  readRpcLine,
  toLostAnswer,
} from "./rpc-lines.ts";

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

/** Pushes bytes in chunks of the given sizes, over and over, and returns what was heard. */
function readLines(bytes: Buffer, sizes: readonly number[], lineBytes = 1_000_000): string[] {
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
        expect(readLines(bytes, chunks)).toEqual(expected.map((each) => `line ${Buffer.from(each)}`));
      }),
    );
  });

  it("Mcp: reads a line of as many bytes as allowed, and drops one of a byte more, however it comes", () => {
    for (const sizes of [[1], [7], [100], [4, 90]]) {
      expect(readLines(Buffer.from(`${"a".repeat(50)}\nb\n`), sizes, 50)).toEqual([
        `line ${"a".repeat(50)}`,
        "line b",
      ]);
      const [long, end, next] = readLines(Buffer.from(`${"a".repeat(51)}\nb\n`), sizes, 50);
      expect(long).toMatch(/^long a{50,51}$/);
      expect(end).toBe(`end ${"a".repeat(51)}`);
      expect(next).toBe("line b");
    }
  });

  it("Mcp: keeps 200 bytes of either end of a dropped line, and no more", () => {
    const bytes = Buffer.from(`${"f".repeat(200)}${"m".repeat(5_000)}${"t".repeat(200)}\n`);
    for (const sizes of [[6_000], [333], [64]]) {
      expect(readLines(bytes, sizes, 1_000)).toEqual([`long ${"f".repeat(200)}`, `end ${"t".repeat(200)}`]);
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

/** A stream that takes each write only when told to. */
function createSlowStream(highWaterMark = 16_384) {
  const written: string[] = [];
  const taken: (() => void)[] = [];
  const stream = new Writable({
    highWaterMark,
    write(chunk, _encoding, done) {
      written.push(String(chunk));
      taken.push(done);
    },
  });
  stream.on("error", () => {});
  return { stream, written, take: () => taken.shift()?.() };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("createLineWriter", () => {
  it("Mcp: joins what is sent in one turn into one write, that of later microtasks too", async () => {
    const { stream, written } = createSlowStream();
    const writer = createLineWriter(stream, 1_000);
    const first = [writer.write("a"), writer.write("b")];
    await Promise.resolve();
    await Promise.all([...first, writer.write("c")]);
    await writer.write("d");
    expect(written).toEqual(["a\nb\nc\n"]);
    expect(stream.writableLength).toBe("a\nb\nc\nd\n".length);
  });

  it("Mcp: joins what is sent in all ticks of one turn of the event loop", async () => {
    const { stream, written } = createSlowStream();
    const writer = createLineWriter(stream, 1_000);
    const first = writer.write("a");
    const second = new Promise((resolve) => process.nextTick(() => resolve(writer.write("b"))));
    await Promise.all([first, second]);
    expect(written).toEqual(["a\nb\n"]);
  });

  it("Mcp: waits for a stream that is full, and joins what comes meanwhile", async () => {
    const { stream, written, take } = createSlowStream(4);
    const writer = createLineWriter(stream, 1_000);
    const done: string[] = [];
    void writer.write("first").then(() => done.push("first"));
    await settled();
    void writer.write("second").then(() => done.push("second"));
    await settled();
    void writer.write("third").then(() => done.push("third"));
    await settled();
    expect([written, done]).toEqual([["first\n"], []]);
    take();
    await settled();
    expect([written, done]).toEqual([["first\n", "second\nthird\n"], ["first"]]);
    take();
    await settled();
    expect(done).toEqual(["first", "second", "third"]);
  });

  it("Mcp: holds as many characters as allowed, and refuses one more", async () => {
    const { stream } = createSlowStream(4);
    const writer = createLineWriter(stream, 10);
    writer.write("blocks").catch(() => {});
    await settled();
    writer.write("123456789").catch(() => {});
    await expect(writer.write("")).rejects.toThrow("more than 10 characters wait");
    const fresh = createLineWriter(createSlowStream().stream, 10);
    await expect(fresh.write("1234567890")).rejects.toThrow("more than 10 characters wait");
    await expect(fresh.write("123456789")).resolves.toBeUndefined();
  });

  it("Mcp: writes what waits before it ends the stream, and refuses what comes then", async () => {
    const { stream, written } = createSlowStream();
    const writer = createLineWriter(stream, 1_000);
    const last = writer.write("last");
    writer.end();
    await last;
    expect(written).toEqual(["last\n"]);
    expect(stream.writableEnded).toBe(true);
    await expect(writer.write("late")).rejects.toThrow("was closed");
  });

  it("Mcp: rejects all that waits when the stream fails, and what comes then", async () => {
    const { stream } = createSlowStream(4);
    const writer = createLineWriter(stream, 1_000);
    const blocked = writer.write("first");
    await settled();
    const waiting = writer.write("second");
    writer.fail(new Error("It is gone."));
    for (const each of [blocked, waiting, writer.write("third")])
      await expect(each).rejects.toThrow("It is gone.");
  });
});
