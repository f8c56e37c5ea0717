import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { toReadResourceResult } from "../../core/result/result-store.ts";
import { createMemoryStore, type MemoryStore } from "./memory-store.ts";

const plain = (text: string) => ({ text, mimeType: "text/plain" });

function readAll(store: MemoryStore, uri: string, length: number): string {
  let text = "";
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const part = store.read(uri, { offset, length });
    if (part === undefined) throw new Error("The text is gone.");
    expect(part.offset).toBe(offset);
    text += part.text;
    offset = part.nextOffset;
  }
  return text;
}

describe("a store in memory", () => {
  it("TR-6 says what it keeps and gives it back", () => {
    const store = createMemoryStore();
    const stored = store.put({ text: "a😀é", mimeType: "text/markdown", name: "Report" });
    expect(stored).toEqual({
      uri: expect.stringMatching(/^waybill:\/\/results\/[0-9a-f]{32}$/),
      name: "Report",
      mimeType: "text/markdown",
      size: 7,
      characters: 4,
    });
    expect(store.read(stored.uri)).toEqual({
      text: "a😀é",
      offset: 0,
      totalCharacters: 4,
      mimeType: "text/markdown",
    });
    expect(store.put(plain("x")).name).toBe("result");
  });

  it("TR-6 gives every text a URI of its own", () => {
    const store = createMemoryStore();
    const uris = Array.from({ length: 500 }, () => store.put(plain("same")).uri);
    expect(new Set(uris).size).toBe(500);
  });

  it("TR-6 reads ranges that join to exactly the text", () => {
    const unit = fc.constantFrom("a", "😀", "\ud83d", "\ude00", "é", "\n");
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 60 }), fc.integer({ min: 1, max: 9 }), (text, length) => {
        const store = createMemoryStore();
        expect(readAll(store, store.put(plain(text)).uri, length)).toBe(text);
      }),
      runs(500),
    );
  });

  it("TR-6 reads the range a URI carries, unless a range is given besides", () => {
    const store = createMemoryStore();
    const { uri } = store.put(plain("0123456789"));
    expect(store.read(`${uri}?offset=2&length=3`)).toMatchObject({ text: "234", offset: 2, nextOffset: 5 });
    expect(store.read(`${uri}?offset=2&length=3`, { offset: 8 })).toMatchObject({ text: "89", offset: 8 });
    expect(store.read(`${uri}?offset=2&length=3`, { length: 1 })).toMatchObject({ text: "2" });
    expect(() => store.read(`${uri}?offset=11`)).toThrow(RangeError);
    expect(() => store.read(uri, { offset: -1 })).toThrow("offset");
  });

  it("TR-6 does not know other URIs", () => {
    const store = createMemoryStore();
    const { uri } = createMemoryStore().put(plain("x"));
    expect(store.read(uri)).toBeUndefined();
    expect(store.read("https://example.com")).toBeUndefined();
  });

  it("TR-6 keeps N texts and forgets the oldest for one more, empty ones too", () => {
    for (const text of ["x", ""]) {
      const store = createMemoryStore({ maxEntries: 3 });
      const uris = Array.from({ length: 3 }, () => store.put(plain(text)).uri);
      expect(uris.map((uri) => store.read(uri)?.text)).toEqual([text, text, text]);
      uris.push(store.put(plain(text)).uri);
      expect(uris.map((uri) => store.read(uri)?.text)).toEqual([undefined, text, text, text]);
    }
  });

  it("TR-6 keeps N characters and forgets the oldest for one more", () => {
    const store = createMemoryStore({ maxCharacters: 10 });
    const uris = [store.put(plain("12345")).uri, store.put(plain("1234")).uri, store.put(plain("1")).uri];
    expect(uris.every((uri) => store.read(uri) !== undefined)).toBe(true);
    uris.push(store.put(plain("1")).uri);
    expect(uris.map((uri) => store.read(uri)?.text)).toEqual([undefined, "1234", "1", "1"]);
    uris.push(store.put(plain("0123456789")).uri);
    expect(uris.map((uri) => store.read(uri) !== undefined)).toEqual([false, false, false, false, true]);
  });

  it("TR-6 stays within its bounds whatever is put", () => {
    const texts = fc.array(fc.string({ maxLength: 12 }), { maxLength: 30 });
    fc.assert(
      fc.property(texts, (all) => {
        const store = createMemoryStore({ maxEntries: 4, maxCharacters: 20 });
        const uris = all.map((text) => store.put(plain(text)).uri);
        const kept = uris.map((uri) => store.read(uri)?.text).filter((text) => text !== undefined);
        expect(kept.length).toBeLessThanOrEqual(4);
        expect(kept.join("").length).toBeLessThanOrEqual(20);
        expect(kept).toEqual(all.slice(all.length - kept.length));
        const next = all[all.length - kept.length - 1];
        if (next !== undefined)
          expect(kept.length === 4 || kept.join("").length + next.length > 20).toBe(true);
      }),
    );
  });

  it.each([
    ["maxEntryCharacters", { maxEntryCharacters: 5 }],
    ["maxCharacters", { maxCharacters: 5 }],
  ])("TR-6 takes a text of N characters and refuses one more, naming %s", (option, options) => {
    const store = createMemoryStore(options);
    const { uri } = store.put(plain("12345"));
    expect(() => store.put(plain("123456"))).toThrow(
      expect.objectContaining({ code: "TOO_LARGE", message: expect.stringContaining(`${option} (5)`) }),
    );
    expect(store.read(uri)?.text).toBe("12345");
  });

  it("TR-6 forgets a text when its time is up, and not before", () => {
    let time = 1_000;
    const store = createMemoryStore({ ttlMs: 100, now: () => time });
    const { uri } = store.put(plain("x"));
    time = 1_099;
    expect(store.read(uri)?.text).toBe("x");
    time = 1_100;
    expect(store.read(uri)).toBeUndefined();
    time = 1_000;
    expect(store.read(uri)).toBeUndefined();
  });

  it("TR-6 forgets a text in time even when the clock was set back before it came", () => {
    let time = 5_000;
    const store = createMemoryStore({ ttlMs: 100, now: () => time });
    const early = store.put(plain("early")).uri;
    time = 1_000;
    const late = store.put(plain("late")).uri;
    time = 1_100;
    expect(store.read(late)).toBeUndefined();
    expect(store.read(early)?.text).toBe("early");
  });

  it("TR-6 keeps a text for fifteen minutes and one of 16 Mi characters, unless told otherwise", () => {
    let time = 0;
    const store = createMemoryStore({ now: () => time });
    const { uri } = store.put(plain("a".repeat(16_777_216)));
    expect(() => store.put(plain("a".repeat(16_777_217)))).toThrow("maxEntryCharacters");
    time = 899_999;
    expect(store.read(uri)?.totalCharacters).toBe(16_777_216);
    time = 900_000;
    expect(store.read(uri)).toBeUndefined();
  });

  it.each(["maxEntries", "maxCharacters", "maxEntryCharacters", "ttlMs"])(
    "TR-6 refuses a wrong %s",
    (name) => {
      for (const wrong of [0, -1, 1.5, Number.NaN]) {
        expect(() => createMemoryStore({ [name]: wrong })).toThrow(name);
      }
    },
  );

  it("TR-6 answers an MCP resources/read", async () => {
    const store = createMemoryStore();
    const { uri } = store.put(plain("0123456789"));
    const ranged = `${uri}?offset=2&length=3`;
    expect(await toReadResourceResult(store, ranged)).toEqual({
      contents: [{ uri: ranged, mimeType: "text/plain", text: "234" }],
    });
    expect(await toReadResourceResult(store, uri, { offset: 9 })).toEqual({
      contents: [{ uri, mimeType: "text/plain", text: "9" }],
    });
    expect(await toReadResourceResult(store, "waybill://results/none")).toBeUndefined();
  });
});
