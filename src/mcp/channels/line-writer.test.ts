import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createLineWriter } from "./line-writer.ts";

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
  it("Mcp: joins what is sent in one tick into one write, that of later microtasks too", async () => {
    const { stream, written } = createSlowStream();
    const writer = createLineWriter(stream, 1_000);
    const first = [writer.write("a"), writer.write("b")];
    await Promise.resolve();
    await Promise.all([...first, writer.write("c")]);
    await writer.write("d");
    expect(written).toEqual(["a\nb\nc\n"]);
    expect(stream.writableLength).toBe("a\nb\nc\nd\n".length);
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
