import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CallToolResult,
  ENVELOPE_PREFIX,
  FORMAT_NAMES,
  FORMATS,
  type FormatName,
  parseEnvelopeBlock,
  RESULT_META_KEY,
  transcode,
} from "../src/formats/index.ts";
import { type ResponseEnvelope, toWire } from "../src/index.ts";
import { CARRIERS } from "./arbitrary-result.ts";
import { runs } from "./runs.ts";

const PAIRS = FORMAT_NAMES.flatMap((from) => FORMAT_NAMES.map((to) => [from, to] as const));

/** Every way home by two other formats. */
const TRIPLES = PAIRS.filter(([from, first]) => from !== first).flatMap(([from, first]) =>
  FORMAT_NAMES.filter((second) => second !== from && second !== first).map(
    (second) => [from, first, second] as const,
  ),
);

const residualOf = (carrier: unknown) => {
  const { _meta, meta } = carrier as {
    _meta?: Record<string, unknown>;
    meta?: { _meta?: Record<string, unknown> };
  };
  const ours = (_meta ?? meta?._meta)?.[RESULT_META_KEY] as
    | { residual?: Record<string, unknown> }
    | undefined;
  return ours?.residual;
};

/** Envelope blocks compared by what they hold: base64 of the same JSON may be spelt in another order. */
const opened = (carrier: unknown): unknown =>
  JSON.parse(JSON.stringify(toWire(carrier)), (_, value) =>
    typeof value === "string" && value.startsWith(`${ENVELOPE_PREFIX}e`) && value.length > 20
      ? parseEnvelopeBlock(value)
      : value,
  );

/** An error is always written as one, also where it came without the flag. */
const flagged = (name: FormatName, carrier: CallToolResult | ResponseEnvelope): unknown => {
  const { isError } = FORMATS[name].decode(carrier).result;
  return isError && name !== "response-envelope" ? { ...carrier, isError } : carrier;
};

describe.each(FORMAT_NAMES)("%s", (name: FormatName) => {
  const codec = FORMATS[name];

  it("X-1 writes again exactly what it read", () => {
    fc.assert(
      fc.property(CARRIERS[name], (carrier) => {
        expect(opened(codec.encode(codec.decode(carrier).result))).toEqual(opened(flagged(name, carrier)));
      }),
      runs(450),
    );
  });
});

describe.each(PAIRS)("from %s to %s and back", (from, to) => {
  it("X-3 gives the same result exactly, and the residual holds what is lost and no more", () => {
    fc.assert(
      fc.property(CARRIERS[from], (carrier) => {
        const there = transcode(carrier, to, { from });
        expect(opened(transcode(there, from))).toEqual(opened(flagged(from, carrier)));
        const { result } = FORMATS[from].decode(carrier);
        const { set = {}, unset = [] } = (residualOf(there) ?? {}) as { set?: object; unset?: string[] };
        expect([...Object.keys(set), ...unset].sort()).toEqual(FORMATS[to].losses(result));
      }),
      runs(150),
    );
  });

  it("X-3 without the residual differs in what losses says, and in nothing else", () => {
    fc.assert(
      fc.property(CARRIERS[from], (carrier) => {
        const { result } = FORMATS[from].decode(carrier);
        const losses = FORMATS[to].losses(result);
        const back = FORMATS[to].decode(transcode(carrier, to, { from, residual: false })).result;
        const strip = (value: object) => {
          const copy = structuredClone(value) as Record<string, Record<string, unknown>>;
          for (const pointer of losses) {
            const [, field = "", inner] = pointer.split("/");
            if (inner === undefined) delete copy[field];
            else if (copy[field]) delete copy[field][inner];
          }
          return Object.fromEntries(Object.entries(copy).filter(([, held]) => JSON.stringify(held) !== "{}"));
        };
        expect(strip(back)).toEqual(strip(result));
        expect(back.isError).toBe(result.isError);
      }),
      runs(150),
    );
  });
});

describe.each(TRIPLES)("from %s by way of %s and %s", (from, first, second) => {
  it("X-3 comes home exactly", () => {
    fc.assert(
      fc.property(CARRIERS[from], (carrier) => {
        const there = transcode(transcode(carrier, first, { from }), second);
        expect(opened(transcode(there, from))).toEqual(opened(flagged(from, carrier)));
      }),
      runs(50),
    );
  });
});
