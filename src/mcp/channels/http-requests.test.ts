import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { boundBody } from "./http-requests.ts";

function respond(chunks: readonly string[], type: string): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) if (chunk !== "") controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": type } });
}

async function read(chunks: readonly string[], max: number, type = "text/event-stream") {
  let told = 0;
  const bounded = boundBody(respond(chunks, type), max, () => told++);
  const text = await bounded.text().catch(() => undefined);
  return { text, told };
}

/** Cuts a text at the given places. */
function cut(text: string, at: readonly number[]): string[] {
  const places = [...new Set(at.map((n) => n % (text.length + 1)))].sort((a, b) => a - b);
  return [...places, text.length].map((end, i) => text.slice(i === 0 ? 0 : (places[i - 1] ?? 0), end));
}

describe("a bounded body", () => {
  it("RE-23 passes as many bytes as allowed and tells once of one more", async () => {
    expect(await read(["12345", "67890"], 10, "application/json")).toEqual({ text: "1234567890", told: 0 });
    expect(await read(["12345", "678901", "2"], 10, "application/json")).toEqual({
      text: undefined,
      told: 1,
    });
  });

  it.each(["\n", "\r", "\r\n"])(
    "RE-23 counts each event for itself, lines ending in %j, however it is cut",
    async (end) => {
      const event = `data: ${"x".repeat(20)}${end}id: 1${end}${end}`;
      const text = event.repeat(5);
      await fc.assert(
        fc.asyncProperty(fc.array(fc.nat(200), { maxLength: 8 }), async (at) => {
          const chunks = cut(text, at);
          expect(await read(chunks, event.length)).toEqual({ text, told: 0 });
          expect((await read(chunks, 20)).told).toBe(1);
        }),
        runs(50),
      );
    },
  );

  it("RE-23 is not fooled by line ends that end no event", async () => {
    const text = "data: x\r\ndata: x\r\ndata: x\r\n";
    expect((await read([...text], 20)).told).toBe(1);
  });

  it("RE-23 leaves a response without a body as it is", () => {
    const empty = new Response(null, { status: 204 });
    expect(boundBody(empty, 1, () => {})).toBe(empty);
  });
});
