import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { runs } from "../../../test/runs.ts";
import { BATCH, ReplyBatches } from "./reply-batches.ts";
import { createMemoryTransport, MemoryBroker } from "./transport.ts";
import {
  decodeBatch,
  decodeMessage,
  entryBytes,
  toBatchText,
  toBytes,
  toEntryText,
  toMessageText,
  toWireText,
} from "./wire-message.ts";

function open(maxMessageBytes?: number) {
  const broker = new MemoryBroker();
  const heard: { readonly subject: string; readonly data: Uint8Array }[] = [];
  const transport = createMemoryTransport({ broker, maxMessageBytes });
  for (const inbox of ["in.one", "in.two"])
    transport.subscribe(`${inbox}.*`, (message) => heard.push(message));
  return { batches: new ReplyBatches(transport), heard, settle: () => transport.flush() };
}

/** What an answer says, without its opening brace. */
const answer = (n: number, more = ""): string =>
  toWireText({ event: { type: "call.progress", requestId: `r${n}`, value: more } }, "OUTPUT_INVALID").slice(
    1,
  );

describe("ReplyBatches", () => {
  it("Call: one answer alone goes by its own path", async () => {
    const { batches, heard, settle } = open();
    expect(batches.add("in.one.a", answer(1))).toBe(true);
    await settle();
    expect(heard.map(({ subject }) => subject)).toEqual(["in.one.a"]);
    expect(decodeMessage(heard[0]?.data as Uint8Array)).toMatchObject({ event: { requestId: "r1" } });
  });

  it("Call: answers to one caller go together, in order, and to nobody else", async () => {
    const { batches, heard, settle } = open();
    for (let n = 0; n < 5; n++) batches.add(`in.one.t${n}`, answer(n));
    batches.add("in.two.x", answer(9));
    await settle();
    expect(heard.map(({ subject }) => subject)).toEqual([`in.one.${BATCH}`, "in.two.x"]);
    const lines = decodeBatch(heard[0]?.data as Uint8Array)?.entries as {
      line: string;
      event: { requestId: string };
    }[];
    expect(lines.map(({ line, event }) => [line, event.requestId])).toEqual(
      [0, 1, 2, 3, 4].map((n) => [`t${n}`, `r${n}`]),
    );
  });

  it.each([1_000, 2_000, 5_000, 1_048_576])(
    "Call: no message is larger than %i bytes, whatever is in it",
    async (most) => {
      const { batches, heard, settle } = open(most);
      let taken = 0;
      for (let n = 0; n < 400; n++) {
        if (batches.add(`in.one.token-${n}`, answer(n, "€".repeat(n)))) taken++;
      }
      await settle();
      const entries = heard.flatMap(({ subject, data }) =>
        subject.endsWith(BATCH) ? decodeBatch(data)?.entries : [1],
      );
      expect(entries).toHaveLength(taken);
      expect(taken).toBeGreaterThan(0);
      expect(Math.max(...heard.map(({ data }) => data.length))).toBeLessThanOrEqual(most);
    },
  );

  it("Call: long answers, and paths of somebody's own making, go another way", () => {
    const { batches } = open();
    expect(batches.add("in.one.a", answer(1, "x".repeat(530)))).toBe(true);
    expect(batches.add("in.one.a", answer(1, "x".repeat(600)))).toBe(false);
    expect(batches.add(`in.one.${"a".repeat(65)}`, answer(1))).toBe(false);
    expect(batches.add('in.one."', answer(1))).toBe(false);
  });

  it("Call: a flush sends at once, and nothing twice", async () => {
    const { batches, heard, settle } = open();
    batches.add("in.one.a", answer(1));
    batches.flush();
    batches.flush();
    await settle();
    expect(heard).toHaveLength(1);
  });

  it("Call: a path without parts is answered at itself", () => {
    const { batches } = open();
    expect([batches.add("abc", answer(1)), batches.add(".abc", answer(1))]).toEqual([false, false]);
  });

  it.each(['"event":{"$waybill":["date","nonsense"]}}', '"event":{"requestId":', "}]}", ""])(
    "Call: an entry %j spoils no other",
    (bad) => {
      const text = toBatchText([toEntryText("bad", bad), toEntryText("good", answer(1))]);
      expect(decodeBatch(toBytes(text))?.entries).toMatchObject([undefined, { line: "good" }]);
    },
  );

  it("Call: a batch is JSON that earlier versions read, and one that they wrote is read", () => {
    const written = toBatchText([toEntryText("a", answer(1)), toEntryText("b", answer(2))]);
    const { v, batch } = JSON.parse(written) as { v: number; batch: unknown[] };
    expect([v, batch.length]).toEqual([1, 2]);
    const earlier = JSON.stringify({ v, batch: [...batch, { event: { $waybill: ["date", "nonsense"] } }] });
    const read = decodeBatch(toBytes(earlier));
    expect(read?.entries).toEqual([...batch, undefined]);
    expect(read && entryBytes(read, 0, "a")).toBeUndefined();
  });

  it.each([
    '{"v":2,"batch":[]}',
    '{"v":1,"batch":1}',
    '{"v":1}',
    "nonsense",
    '{"v":1,"batch":[\n{}',
    "\n]}",
    '{"v":2,"batch":[\n{}\n]}',
  ])("Call: %j is no batch", (text) => {
    expect(decodeBatch(toBytes(text))).toBeUndefined();
  });

  it("Call: each answer of a batch has the size that it would have by itself", () => {
    const json = fc.json().map((text): unknown => JSON.parse(text));
    const answer = fc.record({
      token: fc.uuid(),
      text: json.map((data) =>
        toWireText({ event: { data, more: "ü\u{1F9FE}" } }, "OUTPUT_INVALID").slice(1),
      ),
    });
    fc.assert(
      fc.property(fc.uniqueArray(answer, { selector: ({ token }) => token, minLength: 1 }), (batch) => {
        const read = decodeBatch(
          toBytes(toBatchText(batch.map(({ token, text }) => toEntryText(token, text)))),
        );
        const sizes = batch.map(({ text }) => toBytes(toMessageText(text)).length);
        expect(read && batch.map(({ token }, at) => entryBytes(read, at, token))).toEqual(sizes);
      }),
      runs(200),
    );
  });

  it("Call: measuring looks at every letter a few times at most, whatever a batch holds", () => {
    for (const entry of ['{ "line":"x"}', "{}", '{"line":1}', '{"line":"x","a":{"line":"x","b":1}}']) {
      const bytes = toBytes(toBatchText(Array.from({ length: 20_000 }, () => entry)));
      const batch = decodeBatch(bytes);
      expect(batch?.entries).toHaveLength(20_000);
      const before = cpuMs();
      if (batch !== undefined) for (let at = 0; at < 20_000; at++) entryBytes(batch, at, "x");
      // Looking through all of it for each entry would take many seconds.
      expect(cpuMs() - before).toBeLessThan(1_000);
    }
  });
});
