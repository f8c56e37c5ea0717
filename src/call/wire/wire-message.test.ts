import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { runs, scaled } from "../../../test/runs.ts";
import { isMarkedEnvelope, localEnvelope, toolError } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { CallEvent } from "../call-events.ts";
import { decodeMessage, decodeValue, encodeMessage, type WireMessage } from "./wire-message.ts";

const requestId = fc.string({ unit: fc.constantFrom(..."abc-!~1"), minLength: 1, maxLength: 50 });
const value = fc.anything({
  withBigInt: true,
  withDate: true,
  withTypedArray: false,
  withMap: true,
  withSet: true,
});
const optional = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined });

/** Leaves out what is undefined: a field that is not there. */
const compact = <T extends object>(fields: T): T =>
  Object.fromEntries(Object.entries(fields).filter(([, field]) => field !== undefined)) as T;

const event: fc.Arbitrary<CallEvent> = fc.oneof(
  fc
    .record({
      type: fc.constant("call.requested" as const),
      requestId,
      operationId: fc.constantFrom("a.b", "a.b.c", "", "no id"),
      input: value,
      credit: optional(fc.integer({ min: 1, max: 2 ** 31 - 1 })),
      timeLeftMs: optional(fc.double({ min: 0, max: 1e9, noNaN: true }).map((ms) => ms + 0)),
      attempt: optional(fc.integer({ min: 1, max: 1_000 })),
      depth: optional(fc.integer({ min: 0, max: 1_000 })),
      progress: optional(fc.constant(true as const)),
      credential: optional(fc.string({ minLength: 1 })),
    })
    .map(compact),
  fc.record({ type: fc.constant("call.completed" as const), requestId, count: fc.nat() }),
  fc.record({
    type: fc.constant("call.credit" as const),
    requestId,
    credit: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  }),
  fc.record({
    type: fc.constant("call.aborted" as const),
    requestId,
    reason: fc.constantFrom("left" as const, "deadline" as const),
  }),
  fc.record({ type: fc.constant("call.progress" as const), requestId, value }),
  fc.record({
    type: fc.constant("call.responded" as const),
    requestId,
    output: value.map((data) => localEnvelope(data, "a.b")),
    sequence: fc.nat(),
  }),
);

/** What can be sent at all; the rest is refused where it is written. */
function encode(message: WireMessage): Uint8Array | undefined {
  try {
    return encodeMessage(message, "VALIDATION_ERROR");
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(CallError);
    return undefined;
  }
}

const VALID = [
  encodeMessage(
    {
      event: { type: "call.requested", requestId: "r", operationId: "a.b", input: [new Date(1), 1n] },
      beats: true,
    },
    "VALIDATION_ERROR",
  ),
  encodeMessage(
    { event: { type: "call.responded", requestId: "r", output: toolError(Uint8Array.of(1)) }, peer: "p" },
    "VALIDATION_ERROR",
  ),
  encodeMessage({ taken: "send input", peer: "p" }, "VALIDATION_ERROR"),
];
const toBytes = (text: string) => new TextEncoder().encode(text);
const says = (fields: object) => decodeMessage(toBytes(JSON.stringify({ v: 1, ...fields })));
const eventSays = (fields: object) => says({ event: { requestId: "r", ...fields } });

describe("messages", () => {
  it("RE-17 any event comes back as it was sent", () => {
    let sent = 0;
    fc.assert(
      fc.property(event, (given) => {
        const bytes = encode({ event: given });
        if (bytes === undefined) return;
        sent++;
        const decoded = decodeMessage(bytes);
        if (typeof decoded === "string") throw new Error(decoded);
        expect(
          encodeMessage({ event: (decoded as WireMessage).event as CallEvent }, "VALIDATION_ERROR"),
        ).toEqual(bytes);
        expect(decoded.event?.type).toBe(given.type);
      }),
      runs(500),
    );
    expect(sent).toBeGreaterThan(scaled(500) * 0.6);
  });

  it("RE-17 an answer arrives as an envelope, one that holds nothing too", () => {
    for (const data of [undefined, null, 0, { a: [undefined] }]) {
      const output = localEnvelope(data, "a.b");
      const bytes = encodeMessage(
        { event: { type: "call.responded", requestId: "r", output } },
        "OUTPUT_INVALID",
      );
      const decoded = decodeMessage(bytes) as { event: { output: unknown } };
      expect(decoded.event.output).toEqual(output);
      expect(isMarkedEnvelope(decoded.event.output)).toBe(true);
    }
  });

  it("RE-17 an answer that is no envelope is malformed", () => {
    for (const output of [1, null, {}, { data: 1 }, { data: 1, meta: { source: "local" } }, undefined]) {
      expect(eventSays({ type: "call.responded", output })).toBe("malformed");
    }
  });

  it("Call: any bytes, and any change to a message, are read or counted, never thrown", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (noise) => {
        expect(decodeMessage(noise)).toBe("malformed");
      }),
    );
    const change = fc.record({
      of: fc.constantFrom(...VALID),
      at: fc.nat(),
      by: fc.uint8Array({ minLength: 1, maxLength: 4 }),
      cut: fc.nat(4),
    });
    fc.assert(
      fc.property(change, ({ of, at, by, cut }) => {
        const place = at % of.length;
        const changed = Uint8Array.of(...of.slice(0, place), ...by, ...of.slice(place + cut));
        const decoded = decodeMessage(changed);
        if (typeof decoded !== "string") expect(typeof decoded).toBe("object");
      }),
      runs(2_000),
    );
  });

  it.each([
    ["an event that is unknown", { event: { type: "call.hacked", requestId: "r" } }, "unexpected"],
    ["an event named like a property", { event: { type: "constructor", requestId: "r" } }, "unexpected"],
    ["an event without a type", { event: { requestId: "r" } }, "unexpected"],
    ["an event that is a list", { event: [] }, "malformed"],
    ["another version", { v: 2 }, "malformed"],
    ["no version", { v: undefined }, "malformed"],
    ["a version that is text", { v: "1" }, "malformed"],
    ["a peer with a wildcard", { peer: "a.*" }, "malformed"],
    ["a peer with a space", { peer: "a b" }, "malformed"],
    ["a peer with a new line", { peer: "a\r\nPUB x" }, "malformed"],
    ["a line that is too long", { line: "x".repeat(513) }, "malformed"],
    ["an input of no bytes", { inputBytes: 0 }, "malformed"],
    ["an input of half a byte", { inputBytes: 0.5 }, "malformed"],
    ["an input of too many bytes to count", { inputBytes: 1e300 }, "malformed"],
    ["something taken in another way", { taken: "yes" }, "malformed"],
    ["beats that are not true", { beats: 1 }, "malformed"],
  ])("Call: %s is dropped for what it is", (_, fields, reason) => {
    expect(says(fields)).toBe(reason);
  });

  it("Call: a name of 512 characters is still read", () => {
    expect(says({ line: "x".repeat(512) })).toMatchObject({ line: "x".repeat(512) });
  });

  it("Call: text that is not UTF-8, a byte order mark and half a JSON are malformed", () => {
    const good = Buffer.from(VALID[0] as Uint8Array);
    for (const bad of [
      Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), good]),
      good.subarray(0, -1),
      Buffer.concat([good, good]),
      Buffer.of(0xff),
      Buffer.of(),
    ]) {
      expect(decodeMessage(bad)).toBe("malformed");
    }
    expect(decodeMessage(Buffer.from(good.toString().replace("a.b", "a.\ufffd")))).not.toBe("malformed");
    expect(decodeMessage(Buffer.from(good.toString("latin1").replace("a.b", "a.\xe9"), "latin1"))).toBe(
      "malformed",
    );
  });

  it("Call: 100,000 levels are malformed, in no time", () => {
    const start = cpuMs();
    for (const [open, close] of [
      ["[", "]"],
      ['{"a":', "}"],
    ] as const) {
      const deep = `${open.repeat(100_000)}1${close.repeat(100_000)}`;
      expect(decodeMessage(toBytes(`{"v":1,"event":${deep}}`))).toBe("malformed");
      expect(
        decodeMessage(toBytes(`{"v":1,"event":{"type":"call.progress","requestId":"r","value":${deep}}}`)),
      ).toBe("malformed");
    }
    expect(cpuMs() - start).toBeLessThan(1_000);
  });

  it("Call: a key called __proto__ is a key", () => {
    const decoded = decodeValue(toBytes('{"__proto__":{"polluted":1},"a":{"__proto__":[1]}}')) as Record<
      string,
      unknown
    >;
    expect(Object.keys(decoded)).toEqual(["__proto__", "a"]);
    expect(Object.getPrototypeOf(decoded)).toBe(Object.prototype);
    expect(
      eventSays({ type: "call.credit", credit: 1, ...JSON.parse('{"__proto__":{"credit":5}}') }),
    ).toMatchObject({ event: { credit: 1 } });
  });
});
