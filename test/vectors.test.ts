import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decodeToolResult, parseEnvelopeBlock } from "../src/formats/index.ts";
import { canonicalJson } from "./canonical-json.ts";
import { codeOf, fallbackReason, formatsOf, type ReadingOptions, readOptions } from "./judge-formats.ts";
import { ROOT } from "./run-node.ts";

interface BlockVector {
  readonly name: string;
  readonly text:
    | string
    | { readonly start: string; readonly repeat: string; readonly times: number; readonly end: string };
  readonly options?: ReadingOptions;
}

interface ReadVector extends BlockVector {
  readonly payload?: unknown;
  readonly payloadText?: string;
  readonly meta: unknown;
  readonly extra?: unknown;
}

interface BlockVectors {
  readonly valid: readonly ReadVector[];
  readonly tolerated: readonly (ReadVector & {
    readonly tolerated: readonly string[];
    readonly strictCode: string;
  })[];
  readonly refused: readonly (BlockVector & { readonly code: string; readonly lenientCode?: string })[];
}

interface ResultVector {
  readonly name: string;
  readonly result: unknown;
  readonly options?: ReadingOptions;
  readonly format: string;
  readonly obtained?: string;
  readonly isError: boolean;
  readonly data?: unknown;
  readonly fallbackReason?: string;
  readonly candidates?: readonly string[];
}

interface ResultVectors {
  readonly results: readonly ResultVector[];
  readonly refused: readonly { readonly name: string; readonly result: unknown; readonly code: string }[];
}

const read = (name: string) => JSON.parse(readFileSync(join(ROOT, "test/vectors", name), "utf8"));
const blocks: BlockVectors = read("envelope-blocks.json");
const results: ResultVectors = read("tool-results.json");

const textOf = ({ text }: BlockVector): string =>
  typeof text === "string" ? text : text.start + text.repeat.repeat(text.times) + text.end;

const parse = (vector: BlockVector, lenient: boolean) =>
  parseEnvelopeBlock(textOf(vector), { ...readOptions(vector.options ?? {}), lenient });

const payloadOf = (vector: ReadVector): unknown =>
  vector.payloadText === undefined ? vector.payload : JSON.parse(vector.payloadText);

function expectReading(vector: ReadVector, lenient: boolean, tolerated: readonly string[]): void {
  const envelope = parse(vector, lenient);
  expect(canonicalJson(envelope.payload)).toBe(canonicalJson(payloadOf(vector)));
  expect(canonicalJson(envelope.meta)).toBe(canonicalJson(vector.meta));
  expect(canonicalJson(envelope.extra ?? {})).toBe(canonicalJson(vector.extra ?? {}));
  expect(envelope.tolerated ?? []).toEqual(tolerated);
}

describe("envelope blocks", () => {
  it.each(blocks.valid)("TE-4 TE-5 are read, strictly and leniently: $name", (vector) => {
    expectReading(vector, false, []);
    expectReading(vector, true, []);
  });

  it.each(blocks.tolerated)("TE-9 are read leniently alone: $name", (vector) => {
    expectReading(vector, true, vector.tolerated);
    expect(codeOf(() => parse(vector, false))).toBe(vector.strictCode);
  });

  it.each(blocks.refused)("TE-4 TE-9 are refused with their code: $name", (vector) => {
    expect(codeOf(() => parse(vector, false))).toBe(vector.code);
    expect(codeOf(() => parse(vector, true))).toBe(vector.lenientCode ?? vector.code);
  });
});

describe("tool results", () => {
  it.each(results.results)("TE-6 TE-9 are recognised: $name", (vector) => {
    const decoded = decodeToolResult(vector.result, readOptions(vector.options ?? {}));
    expect(decoded.format).toBe(vector.format);
    expect(decoded.isError).toBe(vector.isError);
    expect(fallbackReason(decoded.odd)).toBe(vector.fallbackReason);
    expect(formatsOf(decoded.candidates)).toEqual(vector.candidates ?? []);
    if (vector.obtained !== undefined) expect(decoded.obtained).toBe(vector.obtained);
    // A result that failed says so in `error`, and has no data.
    if (Object.hasOwn(vector, "data") && !vector.isError) {
      expect(canonicalJson(decoded.data)).toBe(canonicalJson(vector.data));
    }
  });

  it.each(results.refused)("TE-9 are told from what is none: $name", ({ result, code }) => {
    expect(codeOf(() => decodeToolResult(result))).toBe(code);
  });
});
