import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readLines } from "./api.ts";

function bodyOf(bytes: Uint8Array, cuts: readonly number[]): ReadableStream<Uint8Array> {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  const chunks = places.slice(1).map((end, at) => bytes.slice(places[at], end));
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

async function all(body: ReadableStream<Uint8Array>): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of readLines(body)) values.push(value);
  return values;
}

describe("lines of JSON", () => {
  it("come out the same however the bytes are cut, with or without a last line end", async () => {
    const given = fc.tuple(fc.array(fc.jsonValue()), fc.array(fc.nat()), fc.boolean());
    await fc.assert(
      fc.asyncProperty(given, async ([values, cuts, hasEnd]) => {
        const text = values.map((value) => JSON.stringify(value)).join("\n") + (hasEnd ? "\n" : "");
        const wanted = values.map((value) => JSON.parse(JSON.stringify(value)));
        expect(await all(bodyOf(new TextEncoder().encode(text), cuts))).toEqual(wanted);
      }),
    );
  });

  it("that are no JSON are an error, and the body is let go", async () => {
    let isLetGo = false;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode("{]\n")),
      cancel() {
        isLetGo = true;
      },
    });
    await expect(all(body)).rejects.toThrow(SyntaxError);
    expect(isLetGo).toBe(true);
  });
});
