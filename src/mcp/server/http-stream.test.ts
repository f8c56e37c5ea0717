import { describe, expect, it } from "vitest";
import { type StreamEnd, watchStream } from "./http-stream.ts";

function makeSource() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given;
    },
    cancel: () => {
      cancelled = true;
    },
  });
  return {
    stream,
    send: (bytes: number) => controller?.enqueue(new Uint8Array(bytes)),
    end: () => controller?.close(),
    fail: () => controller?.error(new Error("broken")),
    isCancelled: () => cancelled,
  };
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 5));

describe("watchStream", () => {
  it("Mcp: passes everything on and says when all was sent", async () => {
    const source = makeSource();
    const ends: StreamEnd[] = [];
    const watched = watchStream(source.stream, 10, (end) => ends.push(end));
    const read = new Response(watched).arrayBuffer();
    for (let i = 0; i < 5; i++) {
      source.send(8);
      await turn();
    }
    source.end();
    expect((await read).byteLength).toBe(40);
    expect(ends).toEqual(["sent"]);
  });

  it("Mcp: gives up a reader that is too far behind, and not one that is just behind enough", async () => {
    const source = makeSource();
    const ends: StreamEnd[] = [];
    const watched = watchStream(source.stream, 10, (end) => ends.push(end));
    source.send(9);
    source.send(1_000);
    await turn();
    expect(ends).toEqual([]);
    source.send(1);
    await turn();
    expect(ends).toEqual(["left"]);
    expect(source.isCancelled()).toBe(true);
    await expect(watched.getReader().read()).rejects.toThrow("behind");
  });

  it("Mcp: says so once when the reader leaves", async () => {
    const source = makeSource();
    const ends: StreamEnd[] = [];
    const watched = watchStream(source.stream, 10, (end) => ends.push(end));
    source.send(1);
    await watched.cancel();
    await turn();
    expect(ends).toEqual(["left"]);
    expect(source.isCancelled()).toBe(true);
  });

  it("Mcp: passes a failure on", async () => {
    const source = makeSource();
    const ends: StreamEnd[] = [];
    const watched = watchStream(source.stream, 10, (end) => ends.push(end));
    source.fail();
    await expect(watched.getReader().read()).rejects.toThrow("broken");
    expect(ends).toEqual(["left"]);
  });
});
