import { describe, expect, it, vi } from "vitest";
import type { Bench, BusRow } from "./bus-contract.ts";
import { collect, query, rejection, stream } from "./make-operation.ts";

/** Row: chunking. */
export function describeSizes(bench: () => Bench, sizes: BusRow["sizes"]): void {
  describe("chunking", () => {
    if (sizes === undefined) describeUnlimited(bench);
    else {
      describeChunks(bench, sizes);
      describeUnsendable(bench, sizes);
    }
  });
}

function describeUnlimited(bench: () => Bench): void {
  it("Call: nothing is written down, so that there is no size: 20 MB pass as they are", async () => {
    await bench().serve([query("a.echo", (input) => input)]);
    const text = "x".repeat(20_000_000);
    expect((await bench().ask().call("a.echo", text)).data).toBe(text);
  });
}

const SIZED = [
  query("a.length", (input) => (input as string).length),
  query("a.make", (n) => "x".repeat(n as number)),
];

function describeChunks(bench: () => Bench, { message, cap }: { message: number; cap: number }): void {
  /** How long the result may be that makes an answer of this many bytes. */
  async function roomFor(bytes: number, what: "input" | "result"): Promise<number> {
    const map = bench().ask();
    const error = await rejection(
      what === "input" ? map.call("a.length", "x".repeat(2 * cap)) : map.call("a.make", 2 * cap),
    );
    const taken = Number(/takes (\d+) bytes/.exec((error as Error).message)?.[1]);
    return bytes - (taken - 2 * cap);
  }

  it("Call: an input of any size up to the cap arrives, and one byte more is refused here", async () => {
    await bench().serve(SIZED);
    const map = bench().ask();
    const room = await roomFor(message, "input");
    for (const length of [room - 1, room, room + 1, 3 * message, 7 * message + 1]) {
      expect((await map.call("a.length", "x".repeat(length))).data).toBe(length);
    }
    const most = await roomFor(cap, "input");
    expect((await map.call("a.length", "x".repeat(most))).data).toBe(most);
    expect(await rejection(map.call("a.length", "x".repeat(most + 1)))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      retryable: false,
      details: { limit: "messageBytes", allowed: cap, bytes: cap + 1 },
    });
    expect(map.size).toBe(0);
  });

  it("Call: a result of any size up to the cap arrives, and one byte more is refused there", async () => {
    await bench().serve(SIZED);
    const map = bench().ask();
    const room = await roomFor(message, "result");
    // The timestamp and the duration in an answer may take a character more or less.
    for (let length = room - 3; length <= room + 3; length++) {
      expect((await map.call("a.make", length)).data).toHaveLength(length);
    }
    expect((await map.call("a.make", 7 * message)).data).toHaveLength(7 * message);
    const most = await roomFor(cap, "result");
    expect((await map.call("a.make", most)).data).toHaveLength(most);
    expect(await rejection(map.call("a.make", most + 1))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      retryable: false,
      message: expect.stringMatching(`${cap + 1} bytes.* at most ${cap} `),
    });
  });

  it("Call: bytes and astral characters across the borders of chunks come back the same", async () => {
    await bench().serve([query("a.echo", (input) => input)]);
    const map = bench().ask();
    for (let shift = 0; shift < 4; shift++) {
      const text = "x".repeat(shift) + "\u{1F9FE}".repeat(message);
      const bytes = Uint8Array.from({ length: 2 * message + shift }, (_, n) => n % 256);
      const { data } = await map.call("a.echo", { text, bytes });
      expect(data).toStrictEqual({ text, bytes });
    }
  });

  it("Call: many large calls at a time do not get mixed up", async () => {
    await bench().serve([query("a.echo", (input) => input)]);
    const map = bench().ask();
    const inputs = Array.from({ length: 7 }, (_, n) => String(n).repeat(3 * message));
    const answers = await Promise.all(inputs.map((input) => map.call("a.echo", input)));
    expect(answers.map(({ data }) => data)).toEqual(inputs);
  });

  it("RE-28 yields larger than a message arrive in order among small ones", async () => {
    await bench().serve([
      stream("a.mixed", async function* () {
        for (let n = 0; n < 10; n++) yield String(n).repeat(n % 2 === 0 ? 1 : 2 * message);
      }),
    ]);
    const found = await collect(
      bench()
        .ask({ limits: { streamBuffer: 3 } })
        .subscribe("a.mixed"),
    );
    expect(found.map(({ data }) => (data as string)[0])).toEqual([..."0123456789"]);
    expect(found[9]?.data).toHaveLength(2 * message);
  });

  it("Call: a yield over the cap ends the stream with an error that says so", async () => {
    await bench().serve([
      stream("a.huge", async function* () {
        yield 1;
        yield "x".repeat(cap);
      }),
    ]);
    const values = bench().ask().subscribe("a.huge");
    expect((await values.next()).value?.data).toBe(1);
    expect(await rejection(values.next())).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      details: { allowed: cap },
    });
  });

  it("Call: metadata larger than a message is refused here, with what is wrong", async () => {
    await bench().serve(SIZED);
    const map = bench().ask();
    const error = await rejection(map.call("a.length", "x", { metadata: { m: "x".repeat(message) } }));
    expect(error).toMatchObject({ code: "RESOURCE_EXHAUSTED", retryable: false });
    expect(map.size).toBe(0);
  });

  it("Call: an abort while the input is on its way ends the call", async () => {
    const { handler } = await bench().serve(SIZED);
    const map = bench().ask();
    const controller = new AbortController();
    const aborted = rejection(map.call("a.length", "x".repeat(cap - 2_000), { signal: controller.signal }));
    controller.abort();
    expect(await aborted).toMatchObject({ code: "ABORTED" });
    expect((await map.call("a.length", "x".repeat(3 * message))).data).toBe(3 * message);
    expect(handler.running).toBe(0);
  });
}

function describeUnsendable(bench: () => Bench, { cap }: { cap: number }): void {
  it.each([
    ["too large", "RESOURCE_EXHAUSTED", () => "x".repeat(cap + 1)],
    ["a function", "OUTPUT_INVALID", () => () => {}],
  ])(
    "RE-21 a yield that is %s ends the stream at once, whatever its handler does then",
    async (_, code, make) => {
      const cleaning = vi.fn(() => new Promise(() => {}));
      const { handler } = await bench().serve([
        stream("a.bad", async function* () {
          try {
            yield "good";
            yield make();
          } finally {
            await cleaning();
          }
        }),
      ]);
      const map = bench().ask();
      const values = map.subscribe("a.bad");
      expect((await values.next()).value?.data).toBe("good");
      expect(await rejection(values.next())).toMatchObject({ code });
      await vi.waitFor(() => expect(cleaning).toHaveBeenCalledOnce(), 20_000);
      expect([handler.running, map.size]).toEqual([0, 0]);
    },
  );
}
