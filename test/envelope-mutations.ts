import { nested, randomJson, spoilBase64, spoilBytes, spoilJson } from "./envelope-spoilers.ts";
import type { Random } from "./random.ts";

/** An envelope block to judge, and how to read it. */
export interface BlockCase {
  readonly kind: "block";
  readonly text: string;
  readonly lenient: boolean;
  readonly maxBytes?: number;
  readonly acceptVersions?: readonly number[];
}

/** Where a block is spoiled; base64 twice, since most of what leniency tolerates is there. */
const LAYERS = ["prefix", "limit", "base64", "base64", "bytes", "json", "shape", "version"] as const;
type Layer = (typeof LAYERS)[number];

const PREFIXES = [
  "",
  "x",
  " __ENVELOPE_V1__:",
  "__ENVELOPE_V1__",
  "__ENVELOPE_V1__ :",
  "__envelope_v1__:",
  "__ENVELOPE_V0__:",
  "__ENVELOPE_V01__:",
  "__ENVELOPE_V1.0__:",
  "__ENVELOPE_V\u0661__:",
  "__ENVELOPE_V1234567890__:",
  "\uFEFF__ENVELOPE_V1__:",
] as const;

/** Whatever stands before it, its base64 holds both `+` and `/`. */
const RICH_TEXT = '"????>>>>"';

/** Makes an envelope block that is valid, or spoiled in one or two places. */
export function blockCase(random: Random): BlockCase {
  const spoiled = new Set<Layer>();
  const count = random.chance(0.1) ? 0 : random.chance(0.8) ? 1 : 2;
  while (spoiled.size < count) spoiled.add(random.pick(LAYERS));
  const version = spoiled.has("version") && random.chance(0.4) ? random.pick([2, 3, 10, 999_999_999]) : 1;
  const bytes = Buffer.from(envelopeJson(random, spoiled, version), "utf8");
  const encoded = (spoiled.has("bytes") ? spoilBytes(random, bytes) : bytes).toString("base64");
  const prefix = spoiled.has("prefix") ? spoilPrefix(random) : `__ENVELOPE_V${version}__:`;
  const body = spoiled.has("base64") ? spoilBase64(random, encoded) : encoded;
  return {
    kind: "block",
    text: prefix + body,
    lenient: random.chance(0.5),
    ...(spoiled.has("limit") && { maxBytes: Math.max(0, bytes.length + random.pick([-3, -2, -1, 0, 1, 2])) }),
    ...(random.chance(version === 1 ? 0.05 : 0.6) && {
      acceptVersions: random.pick([[1], [2], [1, version]]),
    }),
  };
}

/** Makes a block that reads strictly, around a given JSON text. */
export function validBlock(payloadText: string): string {
  const json = `{"payload":${payloadText},"meta":{"tool":"t","ts":"2025-06-17T18:30:00Z","version":1}}`;
  return `__ENVELOPE_V1__:${Buffer.from(json, "utf8").toString("base64")}`;
}

function spoilPrefix(random: Random): string {
  if (random.chance(0.7)) return random.pick(PREFIXES);
  return `__ENVELOPE_V${random.pick([2, 7, 10, 11, 100_000_000])}__:`;
}

function envelopeJson(random: Random, spoiled: ReadonlySet<Layer>, version: number): string {
  const meta: [string, string][] = [
    ["tool", '"t"'],
    ["ts", '"2025-06-17T18:30:00Z"'],
    ["version", spoiled.has("version") ? versionText(random, version) : String(version)],
  ];
  if (random.chance(0.2)) meta.push([random.pick(["trace", "__proto__", "toString"]), randomJson(random, 2)]);
  const fields: [string, string][] = [["payload", payloadText(random, spoiled.has("base64"))]];
  if (spoiled.has("shape")) spoilFields(random, meta);
  fields.push(["meta", objectText(random, meta)]);
  if (random.chance(0.2))
    fields.push([random.pick(["note", "__proto__", "constructor"]), randomJson(random, 2)]);
  if (spoiled.has("shape") && random.chance(0.5)) spoilFields(random, fields);
  const whole = objectText(random, fields);
  const json =
    spoiled.has("shape") && random.chance(0.1) ? random.pick([`[${whole}]`, "null", "1", '"x"']) : whole;
  return spoiled.has("json") ? spoilJson(random, json) : json;
}

function payloadText(random: Random, rich: boolean): string {
  if (rich && random.chance(0.5)) return RICH_TEXT;
  if (random.chance(0.02)) return nested(random, random.pick([509, 510, 511, 512, 513]));
  return randomJson(random, 4);
}

function versionText(random: Random, version: number): string {
  const same = [`${version}.0`, `${version}0e-1`, `${version}.000000000000000000001`];
  const other = ["0", "-1", "1.5", "2", "3", "1e400", "-1e400", "1.0000000000000002", "1".repeat(400)];
  return random.pick([...same, ...other, ...other, "true", '"1"', "null", "[1]"]);
}

/** Drops, renames, doubles or replaces one field. */
function spoilFields(random: Random, fields: [string, string][]): void {
  const at = random.below(fields.length);
  const [key, value] = fields[at] as [string, string];
  switch (random.below(4)) {
    case 0:
      fields.splice(at, 1);
      return;
    case 1:
      fields[at] = [random.pick([key.toUpperCase(), `${key} `, "__proto__"]), value];
      return;
    case 2:
      fields.push([key, randomJson(random, 1)]);
      return;
    default:
      fields[at] = [key, random.pick(["null", "true", "1", '"1"', "[]", "{}", `[${value}]`])];
  }
}

function objectText(random: Random, fields: readonly (readonly [string, string])[]): string {
  const space = () => (random.chance(0.05) ? random.pick([" ", "\t", "\n", "\r"]) : "");
  const ordered = random.chance(0.1) ? fields.toReversed() : fields;
  const members = ordered.map(
    ([key, value]) => `${space()}${JSON.stringify(key)}${space()}:${space()}${value}`,
  );
  return `{${members.join()}${space()}}`;
}
