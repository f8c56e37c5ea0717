import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { Assembly, fromChunk, toChunks } from "./chunks.ts";
import { isChunk } from "./wire-message.ts";

const bytes = () => fc.uint8Array({ minLength: 1, maxLength: 500 });
const key = () => fc.string({ unit: "grapheme", maxLength: 20 });

/** Cut with room for this many bytes in each chunk. */
function cut(name: string, whole: Uint8Array, room: number): Uint8Array[] {
  return [...toChunks(name, whole, 11 + new TextEncoder().encode(name).length + room)];
}

/** What comes of chunks in this order: the message, or false at the first that does not fit, or nothing while some miss. */
function join(chunks: readonly Uint8Array[], total: number): Uint8Array | undefined | false {
  const assembly = new Assembly(total);
  let joined: Uint8Array | undefined | false;
  for (const bytes of chunks) {
    const chunk = fromChunk(bytes);
    if (chunk === undefined) return false;
    joined = assembly.add(chunk);
    if (joined === false) return false;
  }
  return joined;
}

describe("chunks", () => {
  it("Call: any bytes, cut by any limit, are the same when joined", () => {
    fc.assert(
      fc.property(key(), bytes(), fc.integer({ min: 1, max: 600 }), (name, whole, room) => {
        const chunks = cut(name, whole, room);
        expect(chunks).toHaveLength(Math.ceil(whole.length / room));
        expect(chunks.every((chunk) => isChunk(chunk) && fromChunk(chunk)?.key === name)).toBe(true);
        expect(join(chunks, whole.length)).toEqual(whole);
      }),
    );
  });

  it("Call: a chunk lost, doubled, swapped or of another message is noticed", () => {
    const some = fc.integer({ min: 0, max: 10_000 });
    fc.assert(
      fc.property(bytes(), fc.integer({ min: 1, max: 100 }), some, some, (whole, room, one, other) => {
        const chunks = cut("k", whole, room);
        const at = one % chunks.length;
        const lost = chunks.filter((_, n) => n !== at);
        expect(join(lost, whole.length) || undefined).toBeUndefined();
        expect(join([...chunks.slice(0, at + 1), ...chunks.slice(at)], whole.length)).toBe(false);
        const to = other % chunks.length;
        if (to !== at) {
          const swapped = [...chunks];
          [swapped[at], swapped[to]] = [swapped[to] as Uint8Array, swapped[at] as Uint8Array];
          expect(join(swapped, whole.length)).toBe(false);
        }
        expect(join(chunks, whole.length + 1)).toBe(false);
      }),
    );
  });

  it("Call: any bytes can be read, or are no chunk", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (noise) => {
        for (const some of [noise, Uint8Array.of(1, ...noise), Uint8Array.of(1, 0, 1, ...noise)]) {
          const chunk = fromChunk(some);
          if (chunk !== undefined) expect(chunk.data.length).toBeGreaterThan(0);
        }
      }),
    );
  });

  it("Call: memory is taken as chunks come, not as they announce", () => {
    const assembly = new Assembly(2 ** 32 - 1);
    expect(assembly.add({ key: "", index: 0, total: 2 ** 32 - 1, data: Uint8Array.of(1) })).toBeUndefined();
    expect(assembly.received).toBe(1);
  });

  it("Call: a million chunks of one byte take time and memory by their number", () => {
    const total = 1_000_000;
    const assembly = new Assembly(total);
    const start = cpuMs();
    let whole: Uint8Array | undefined | false;
    for (let index = 0; index < total; index++)
      whole = assembly.add({ key: "", index, total, data: Uint8Array.of(index % 256) });
    expect(whole).toHaveLength(total);
    expect((whole as Uint8Array)[300]).toBe(300 % 256);
    expect(cpuMs() - start).toBeLessThan(2_000);
  });

  it("Call: does not see what happens to the buffer afterwards", () => {
    const data = Uint8Array.of(1, 2);
    const assembly = new Assembly(3);
    assembly.add({ key: "", index: 0, total: 3, data });
    data.fill(9);
    expect(assembly.add({ key: "", index: 1, total: 3, data: Uint8Array.of(3) })).toEqual(
      Uint8Array.of(1, 2, 3),
    );
  });

  it("Call: a transport that carries less than the head of a chunk is refused", () => {
    expect(() => [...toChunks("key", Uint8Array.of(1), 14)]).toThrow(RangeError);
    expect([...toChunks("key", Uint8Array.of(1), 15)]).toHaveLength(1);
  });
});
