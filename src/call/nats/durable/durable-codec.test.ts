import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { localEnvelope } from "../../../core/envelope/envelope.ts";
import { CallError } from "../../../core/errors/errors.ts";
import type { CallRequested } from "../../call-events.ts";
import { hashInput } from "./durable-calls.ts";
import { decodeEnding, decodeRequest, encodeEnding, encodeRequest } from "./durable-codec.ts";

const MAX = 1_000_000;
const request = (input: unknown): CallRequested => ({
  type: "call.requested",
  requestId: "r",
  operationId: "a.b",
  input,
});

function nest(levels: number): unknown {
  let value: unknown = 0;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

describe("requests and endings written down", () => {
  it("Durable: a request reads back exactly", () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true }),
        (input) => {
          let body: Uint8Array;
          try {
            body = encodeRequest(request(input), MAX);
          } catch (thrown) {
            expect(thrown).toBeInstanceOf(CallError);
            return;
          }
          const read = decodeRequest(body);
          expect(read?.requestId).toBe("r");
          expect(encodeRequest(read as CallRequested, MAX)).toEqual(body);
        },
      ),
    );
  });

  it("Durable: any bytes read as a request, an ending or an error, and never throw", () => {
    const bytes = fc.oneof(
      fc.uint8Array(),
      fc.json().map((text) => new TextEncoder().encode(text)),
      fc
        .tuple(fc.constantFrom("+", "-"), fc.json())
        .map(([sign, text]) => new TextEncoder().encode(sign + text)),
    );
    fc.assert(
      fc.property(bytes, (body) => {
        decodeRequest(body);
        const ending = decodeEnding(body);
        expect("error" in ending ? ending.error : ending.envelope).toBeTypeOf("object");
      }),
    );
  });

  it("Durable: an input nested 512 deep is written, one deeper is refused", () => {
    expect(decodeRequest(encodeRequest(request(nest(512)), MAX))?.input).toEqual(nest(512));
    expect(() => encodeRequest(request(nest(513)), MAX)).toThrow(CallError);
  });

  it("Durable: a getter that breaks on the second look is a typed error", () => {
    let looks = 0;
    const input = {
      get x() {
        looks += 1;
        if (looks > 1) throw new Error("secret");
        return 1;
      },
    };
    expect(() => encodeRequest(request(input), MAX)).toThrow(CallError);
  });

  it("Durable: a request of exactly the limit is written, one byte more is RESOURCE_EXHAUSTED", () => {
    const { length } = encodeRequest(request("x"), MAX);
    expect(encodeRequest(request("x"), length)).toHaveLength(length);
    expect(() => encodeRequest(request("x"), length - 1)).toThrow(
      expect.objectContaining({ code: "RESOURCE_EXHAUSTED", retryable: false }),
    );
  });

  it("Durable: a result that cannot be written ends the call in an error", () => {
    const ending = decodeEnding(encodeEnding({ envelope: localEnvelope(() => 1, "a.b") }, MAX));
    expect(ending).toMatchObject({ error: { code: "OUTPUT_INVALID" } });
  });

  it("Durable: an error reads back with everything but its cause", () => {
    const error = new CallError("PARCEL_LOST", "Gone.", {
      cause: new Error("secret"),
      details: { id: 1 },
      retryable: true,
      correctable: true,
      httpStatus: 418,
    });
    const ending = decodeEnding(encodeEnding({ error }, MAX));
    expect(ending).toMatchObject({ error: { ...error.toJSON(), httpStatus: 418 } });
    expect((ending as { error: CallError }).error.cause).toBeUndefined();
  });
});

describe("comparing inputs", () => {
  it("Durable: the order of keys does not count, everything else does", () => {
    expect(hashInput({ a: 1, b: [{ c: 1, d: 2 }] })).toBe(hashInput({ b: [{ d: 2, c: 1 }], a: 1 }));
    const different = [
      undefined,
      null,
      0,
      -0,
      "0",
      0n,
      [],
      {},
      { a: undefined },
      [1, 2],
      [2, 1],
      new Date(0),
    ];
    expect(new Set(different.map(hashInput)).size).toBe(different.length);
    const own = JSON.parse('{"__proto__":{"x":1}}');
    expect(hashInput(own)).not.toBe(hashInput({}));
  });
});
