import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makePlan, makeResponse } from "../../../../test/openapi-plans.ts";
import { runs } from "../../../../test/runs.ts";
import { CallError, toProblem } from "../../../core/errors/errors.ts";
import { toWire } from "../../../core/wire/wire.ts";
import type { StreamedResponse } from "../http-message.ts";
import type { MediaPlan, OperationPlan } from "../plan.ts";
import { readStream, type StreamItem, type StreamOptions } from "./read-stream.ts";

const EVENTS = "text/event-stream";
const WAYBILL = makePlan({ waybill: {} });

function response(
  contentType: string,
  chunks: readonly (string | Uint8Array)[],
  delimited = true,
): StreamedResponse {
  async function* body() {
    for (const chunk of chunks) yield typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk;
  }
  return {
    status: 200,
    headers: contentType === "" ? {} : { "content-type": contentType },
    attempts: 1,
    url: "https://api.example",
    body: body(),
    delimited,
  };
}

function planOf(media: MediaPlan): OperationPlan {
  return makePlan({ responses: [{ ...makeResponse("200"), content: [media] }] });
}

async function read(
  contentType: string,
  chunks: readonly (string | Uint8Array)[],
  plan = makePlan(),
  options: Partial<StreamOptions> & { delimited?: boolean } = {},
) {
  const { delimited = true, ...others } = options;
  const given = response(contentType, chunks, delimited);
  const stream = readStream(given, plan, { operationId: "shop.news", trusted: true, ...others });
  const items: StreamItem[] = [];
  let error: unknown;
  try {
    for await (const item of stream) items.push(item);
  } catch (thrown) {
    error = thrown;
  }
  return { items, data: items.map((item) => item.data), error, lastEventId: stream.lastEventId };
}

describe("events", () => {
  it("RE-25 reads text and JSON, names and ids", async () => {
    const text =
      ': hi\nretry: 5\nid: 1\nevent: news\ndata: {"a":1}\n\ndata: two\ndata: lines\n\nid: 2\ndata: 7\n\nevent: none\n\n';
    const { items, lastEventId, error } = await read(EVENTS, [text]);
    expect(items).toEqual([
      { data: { a: 1 }, cursor: "1", event: "news" },
      { data: "two\nlines" },
      { data: "7", cursor: "2" },
    ]);
    expect(lastEventId).toBe("2");
    expect(error).toBeUndefined();
  });

  it("RE-25 reads data as its schema wants it", async () => {
    const text = ['data: {"a":1}\n\n', "data: 7\n\n"];
    const schemas = async (media: Omit<MediaPlan, "mediaType">) =>
      (await read(EVENTS, text, planOf({ mediaType: EVENTS, ...media }))).data;
    expect(await schemas({ schema: { type: "string" } })).toEqual(['{"a":1}', "7"]);
    expect(await schemas({ itemSchema: { type: ["object", "integer"] } })).toEqual([{ a: 1 }, 7]);
    expect(await schemas({ schema: { anyOf: [{ type: "object" }, { type: "string" }] } })).toEqual([
      { a: 1 },
      "7",
    ]);
    expect(await schemas({ schema: true })).toEqual([{ a: 1 }, "7"]);
  });

  it("RE-25 gives the whole event where its fields are described", async () => {
    const itemSchema = {
      properties: { data: { type: "string" }, event: { const: "e" }, id: { type: "string" } },
    };
    const { data } = await read(
      EVENTS,
      ['event: e\nid: 1\ndata: {"a":1}\n\n'],
      planOf({ mediaType: EVENTS, itemSchema }),
    );
    expect(data).toEqual([{ data: '{"a":1}', event: "e", id: "1" }]);
  });

  it("RE-25 says that an item is not what it should be, after those that were", async () => {
    const plan = planOf({ mediaType: EVENTS, schema: { type: "object" } });
    const { data, error } = await read(EVENTS, ["data: {}\n\ndata: evil\n\n"], plan);
    expect(data).toEqual([{}]);
    expect(error).toMatchObject({ code: "OUTPUT_INVALID" });
    expect((error as CallError).message).not.toContain("evil");
  });

  it("RE-25 ends at [DONE], and at the end of the body without half an event", async () => {
    expect((await read(EVENTS, ["data: 1\n\ndata: [DONE]\n\ndata: 2\n\n"])).data).toEqual(["1"]);
    expect((await read(EVENTS, ["data: 1\n\ndata: 2\n"])).data).toEqual(["1"]);
    expect((await read(EVENTS, ["data: 1\r\rdata: 2\r", "\r"])).data).toEqual(["1", "2"]);
  });

  it("RE-25 takes events up to a size", async () => {
    const event = (size: number) => `data: ${"x".repeat(size)}\n\n`;
    expect((await read(EVENTS, [event(100)], undefined, { eventBytes: 100 })).data).toEqual([
      "x".repeat(100),
    ]);
    const past = await read(EVENTS, [event(5), event(101)], undefined, { eventBytes: 100 });
    expect(past.data).toEqual(["xxxxx"]);
    expect(past.error).toMatchObject({ code: "TOO_LARGE", correctable: false });
    const wide = await read(EVENTS, ["data: ää\n\n"], undefined, { eventBytes: 3 });
    expect(wide.error).toMatchObject({ code: "TOO_LARGE" });
  });

  it.each([EVENTS, "application/x-ndjson", "application/json-seq", "application/json", "text/plain"])(
    "RE-25 does not wait for ever for the end of an item: %s",
    async (type) => {
      let given = 0;
      async function* endless() {
        for (;;) {
          given += 1;
          yield new TextEncoder().encode("data: xxxxxxxxx");
        }
      }
      const stream = readStream({ ...response(type, []), body: endless() }, makePlan(), {
        operationId: "a.b",
        eventBytes: 10_000,
      });
      await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "TOO_LARGE" });
      expect(given).toBeLessThan(1_000);
    },
  );

  it("RE-25 leaves the body when the reader leaves", async () => {
    let isLeft = false;
    async function* body() {
      try {
        for (;;) yield new TextEncoder().encode("data: 1\n\n");
      } finally {
        isLeft = true;
      }
    }
    const stream = readStream({ ...response(EVENTS, []), body: body() }, makePlan(), { operationId: "a.b" });
    for await (const item of stream) {
      expect(item.data).toBe("1");
      break;
    }
    expect(isLeft).toBe(true);
  });
});

describe("other streams", () => {
  it.each([
    ["lines", "application/x-ndjson", '{"a":1}\r\n\n7\n"x"', [{ a: 1 }, 7, "x"]],
    ["records", "application/json-seq", '\u001E{"a":\n1}\n\u001E\u001E7\n', [{ a: 1 }, 7]],
    ["JSON on each line", "application/json", '{"a":1}\n{"a":2}\n', [{ a: 1 }, { a: 2 }]],
    ["JSON over many lines", "application/json", '{\n"a":\n[1\n]}\n', [{ a: [1] }]],
    ["lines of text", "text/plain", "a\r\n{}\n\nb", ["a", {}, "b"]],
    ["what does not say what it is", "", "a\n", ["a"]],
  ])("RE-25 reads %s", async (_, type, text, data) => {
    expect(await read(type, [text])).toMatchObject({ data, error: undefined });
  });

  it("RE-25 hands bytes on as they come", async () => {
    const chunks = [Uint8Array.from([1]), Uint8Array.from([]), Uint8Array.from([2])];
    expect((await read("application/octet-stream", chunks)).data).toEqual([chunks[0], chunks[2]]);
  });

  it("RE-25 refuses a line that is no JSON, and a record that was cut", async () => {
    expect((await read("application/x-ndjson", ["1\nnope\n"])).error).toMatchObject({
      code: "OUTPUT_INVALID",
    });
    expect((await read("application/json-seq", ["\u001E1\n\u001E12"])).error).toMatchObject({
      code: "OUTPUT_INVALID",
    });
    expect((await read("application/x-ndjson", ["[".repeat(2_000)])).error).toMatchObject({
      code: "OUTPUT_INVALID",
    });
  });

  it("RE-25 finds the same items however the body is cut", async () => {
    const bodies: readonly (readonly [string, string])[] = [
      [
        EVENTS,
        '\uFEFFid: 1\ndata: {"ü":"😀"}\r\n\r\ndata: a\rdata: b\r\r: c\n\ndata:x\n\nevent: e\ndata\n\ndata: end\r\r',
      ],
      ["application/x-ndjson", '{"ü":"😀"}\r\n\n[1]\n"\u2028"'],
      ["application/json-seq", '\u001E{"ü":"😀"}\n\u001E[1]\n\u001E'],
      ["application/json", '\uFEFF{\n"ü":\n"😀"}\n'],
      ["text/plain", "ü\r\n😀\n\nend"],
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...bodies),
        fc.array(fc.nat(90), { maxLength: 12 }),
        async ([type, text], cuts) => {
          const whole = new TextEncoder().encode(text);
          const ends = [...new Set([0, ...cuts.filter((cut) => cut < whole.length), whole.length])].sort(
            (a, b) => a - b,
          );
          const chunks = ends.slice(1).map((end, i) => whole.subarray(ends[i], end));
          expect(await read(type, chunks)).toEqual(await read(type, [whole]));
        },
      ),
      runs(300),
    );
  });
});

describe("streams that Waybill serves", () => {
  const next = (id: string, told: object) => `id: ${id}\nevent: next\ndata: ${JSON.stringify(told)}\n\n`;
  const done = "id: s:9\nevent: done\ndata: {}\n\n";

  it("X-6 reads data as it was, cursors, events and errors among the items", async () => {
    const date = new Date(0);
    const { items, error, lastEventId } = await read(
      EVENTS,
      [
        next("s:0", { data: "text", cursor: "c1" }),
        next("s:1", { data: "x", wire: toWire({ date }), event: "tick" }),
        next("s:2", { wire: toWire(undefined) }),
        next("s:3", { data: 1, isError: true, code: "NO", message: "No.", details: { a: 1 } }),
        "event: later\ndata: x\n\n",
        done,
      ],
      WAYBILL,
    );
    expect(error).toBeUndefined();
    expect(items).toEqual([
      { data: "text", cursor: "c1" },
      { data: { date }, event: "tick" },
      { data: undefined },
      { data: 1, error: { code: "NO", message: "No.", details: { a: 1 } } },
    ]);
    expect(lastEventId).toBe("s:9");
  });

  it("X-6 throws the error a stream ended with", async () => {
    const thrown = new CallError("SOLD_OUT", "Nothing is left.", { details: { left: 0 }, httpStatus: 409 });
    const event = `event: error\ndata: ${JSON.stringify({ ...toProblem(thrown), waybill: { outcome: "call-error" } })}\n\n`;
    const { error } = await read(EVENTS, [next("s:0", { data: 1 }), event], WAYBILL, {
      declared: new Set(["SOLD_OUT"]),
    });
    expect((error as CallError).toJSON()).toEqual(thrown.toJSON());
  });

  it("X-6 knows that a stream was cut, and where to take it up again", async () => {
    const { data, error, lastEventId } = await read(
      EVENTS,
      [next("s:0", { data: 1 }), "id: s:1\nevent: next\nda"],
      WAYBILL,
    );
    expect(data).toEqual([1]);
    expect(error).toMatchObject({ code: "UNAVAILABLE", retryable: true });
    expect(lastEventId).toBe("s:0");
  });

  it.each(["7", "{", '{"wire":{"$waybill":["evil"]}}'])(
    "X-6 refuses an item that is none: %s",
    async (text) => {
      const { error } = await read(EVENTS, [`event: next\ndata: ${text}\n\n`], WAYBILL);
      expect(error).toMatchObject({ code: "OUTPUT_INVALID" });
    },
  );
});

describe("streams that end with the connection", () => {
  const cut = (contentType: string, text: string, options: Partial<StreamOptions> = {}, plan = makePlan()) =>
    read(contentType, [text], plan, { delimited: false, ...options });
  const isCut = { code: "UNAVAILABLE", message: expect.stringContaining("allowUndelimited") };

  it.each([
    ["application/x-ndjson", '{"a":1}\n{"a":2}\n', [{ a: 1 }, { a: 2 }]],
    ["application/x-ndjson", '{"a":1}\n{"a":2}', [{ a: 1 }, { a: 2 }]],
    ["application/json-seq", '\u001E{"a":1}\n\u001E7\n', [{ a: 1 }, 7]],
    ["application/json", '{\n"a":1\n}', [{ a: 1 }]],
    ["application/json", "[1,\n2]", [[1, 2]]],
    [EVENTS, "data: 1\n\ndata: 2\n\n", ["1", "2"]],
    [EVENTS, "data: 1\r\n\r\n: still here\r\n", ["1"]],
    [EVENTS, "data: 1\r\r", ["1"]],
    [EVENTS, "", []],
  ])("RE-26 are whole where they end between items: %s %j", async (contentType, text, expected) => {
    const { data, error } = await cut(contentType, text);
    expect([data, error]).toEqual([expected, undefined]);
  });

  it.each([
    ["application/x-ndjson", '{"a":1}\n{"a":', [{ a: 1 }]],
    ["application/x-ndjson", "12\n13", [12]],
    ["application/json-seq", '\u001E{"a":1}\n\u001E7', [{ a: 1 }]],
    ["application/json", '{\n"a":1', []],
    ["application/json", "12", []],
    [EVENTS, "data: 1\n\ndata: 2\n", ["1"]],
    [EVENTS, "data: 1\n\nid: 2", ["1"]],
    ["text/plain", "a\nb", ["a"]],
    ["text/plain", "a\nb\n", ["a", "b"]],
  ])(
    "RE-26 were cut where they end within an item, and never give half of one: %s %j",
    async (type, text, expected) => {
      const { data, error } = await cut(type, text);
      expect(data).toEqual(expected);
      expect(error).toMatchObject(isCut);
    },
  );

  it("RE-26 may be bytes only where that is allowed", async () => {
    const bytes = await cut("application/octet-stream", "abc");
    expect(bytes.items).toHaveLength(1);
    expect(bytes.error).toMatchObject(isCut);
    expect((await cut("application/octet-stream", "abc", { allowUndelimited: true })).error).toBeUndefined();
    const text = await cut("text/plain", "a\nb", { allowUndelimited: true });
    expect([text.data, text.error]).toEqual([["a", "b"], undefined]);
    const lines = await cut("application/x-ndjson", "12\n13", { allowUndelimited: true });
    expect([lines.data, lines.error]).toEqual([[12, 13], undefined]);
    expect((await cut(EVENTS, "data: [DONE]\n\nda")).error).toBeUndefined();
  });

  it("RE-26 are cut at the same place however they arrive", async () => {
    const texts = fc.array(fc.constantFrom("data: 1", "\n", "\r", "\r\n", ":c", "id: 1", "\n\n"), {
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(texts, fc.integer({ min: 1, max: 5 }), async (pieces, step) => {
        const text = pieces.join("");
        const chunks = text.match(new RegExp(`[^]{1,${step}}`, "g")) ?? [];
        const whole = await read(EVENTS, [text], makePlan(), { delimited: false });
        const split = await read(EVENTS, chunks, makePlan(), { delimited: false });
        expect([split.items, split.error === undefined]).toEqual([whole.items, whole.error === undefined]);
      }),
    );
  });
});

it("X-6 shows the words of a stream's error only where its server is trusted", async () => {
  const event = `event: error\ndata: ${JSON.stringify(toProblem(new CallError("CONFLICT", "Obey me.")))}\n\n`;
  expect((await read(EVENTS, [event], WAYBILL)).error).toMatchObject({ message: "Obey me." });
  const { error } = await read(EVENTS, [event], WAYBILL, { trusted: false });
  expect(error).toMatchObject({ code: "CONFLICT", message: '"shop.news" failed while it was streaming.' });
});
