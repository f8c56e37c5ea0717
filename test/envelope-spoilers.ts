import type { Random } from "./random.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const SCALARS = [
  "null",
  "true",
  "false",
  "0",
  "-0",
  "1",
  "1.0",
  "-12.5e-1",
  "1E+2",
  "1e400",
  "-1e400",
  "1e-400",
  "9007199254740993",
  "123456789012345678901234567890",
  "0.1",
  "5e-324",
  "9".repeat(320),
  `1${"0".repeat(4400)}`,
  '""',
  '"text"',
  '"é😀"',
  '"\\ud83d\\ude00"',
  '"\\ud800"',
  '"\\uDC00x"',
  '"\\u0000\\n\\/"',
  '"\u2028\uFEFF\u007F"',
  '"[{\\"[["',
  '"~\u07FB\u07FF?>>>???"',
  '"\\\\"',
] as const;

const KEYS = [
  "a",
  "b",
  "__proto__",
  "constructor",
  "",
  "10",
  "2",
  "é",
  "\\ud800",
  "payload",
  "meta",
] as const;

/** Writes a JSON text with everything in it that readers tend to disagree about. */
export function randomJson(random: Random, depth: number): string {
  if (depth === 0 || random.chance(0.4)) return random.pick(SCALARS);
  const members = Array.from({ length: random.below(4) }, () => randomJson(random, depth - 1));
  if (random.chance(0.5)) return `[${members.join()}]`;
  return `{${members.map((member) => `"${random.pick(KEYS)}":${member}`).join()}}`;
}

/** Nests lists and objects so many levels deep. */
export function nested(random: Random, levels: number): string {
  const kinds = Array.from({ length: levels }, () => random.chance(0.2));
  const open = kinds.map((isObject) => (isObject ? '{"a":' : "[")).join("");
  const close = kinds.toReversed().map((isObject) => (isObject ? "}" : "]"));
  return `${open}0${close.join("")}`;
}

const JSON_PIECES = [
  ..."{}[],:\"'\\/ \t\n\r\f\v\0\u001F\u00A0\uFEFF\u2028\u0661+-.eE01x_NI",
  "NaN",
  "Infinity",
  "\\x41",
  "\\u12",
  "\\u+123",
  "\\u 123",
  "\\u1_23",
  "/**/",
  "01",
  "1.",
  ".5",
  "1e",
] as const;

/** Changes JSON text in one place, which often leaves it no JSON. */
export function spoilJson(random: Random, json: string): string {
  const at = random.below(json.length + 1);
  switch (random.below(7)) {
    case 0:
      return json.slice(0, at);
    case 1:
      return json.slice(0, at) + json.slice(at + 1);
    case 2:
      return json + random.pick(["}", ",", " ", "\n", "x", "\0", "{}", "\u00A0"]);
    case 3:
      return json.replace(/[,}]/, `,"deep":${nested(random, random.pick([510, 511, 512, 513, 600]))}$&`);
    case 4:
      return json.replace(/\}$/, `,"a":${nested(random, random.pick([511, 512]))},"a":1}`);
    case 5:
      return json.slice(0, at) + random.pick(JSON_PIECES) + json.slice(at + 1);
    default:
      return json.slice(0, at) + random.pick(JSON_PIECES) + json.slice(at);
  }
}

const BAD_BYTES = [
  [0x80],
  [0xc3],
  [0xc0, 0xaf],
  [0xc1, 0x81],
  [0xe0, 0x9f, 0xbf],
  [0xed, 0xa0, 0x80],
  [0xed, 0xbf, 0xbf],
  [0xed, 0x9f, 0xbf],
  [0xee, 0x80, 0x80],
  [0xf0, 0x8f, 0xbf, 0xbf],
  [0xf4, 0x90, 0x80, 0x80],
  [0xf4, 0x8f, 0xbf, 0xbf],
  [0xf0, 0x9f, 0x98],
  [0xff],
  [0xc2, 0x80],
] as const;

const BOM = Buffer.of(0xef, 0xbb, 0xbf);

/** Changes the bytes under the base64: bad UTF-8, byte order marks, flipped bits. */
export function spoilBytes(random: Random, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1);
  switch (random.below(6)) {
    case 0:
      return Buffer.concat([BOM, bytes]);
    case 1:
      return Buffer.concat(
        random.pick([[BOM, BOM, bytes], [BOM], [bytes, BOM], [BOM, Buffer.from(" "), bytes]]),
      );
    case 2: {
      const flipped = Buffer.from(bytes);
      const where = random.below(bytes.length);
      flipped[where] = (flipped[where] as number) ^ (1 << random.below(8));
      return flipped;
    }
    case 3:
      return bytes.subarray(0, at);
    default: {
      const inText = bytes.indexOf('"t"') + 2;
      const where = random.chance(0.7) && inText > 1 ? inText : at;
      const bad = Buffer.from(random.pick(BAD_BYTES));
      return Buffer.concat([bytes.subarray(0, where), bad, bytes.subarray(where)]);
    }
  }
}

/** Changes base64 text: alphabet, whitespace, padding, stray bits, length. */
export function spoilBase64(random: Random, encoded: string): string {
  const steps = random.chance(0.7) ? 1 : 2 + random.below(3);
  let text = encoded;
  for (let i = 0; i < steps; i++) text = spoilOnce(random, text);
  return text;
}

function spoilOnce(random: Random, text: string): string {
  const at = random.below(text.length + 1);
  const insert = (piece: string) => text.slice(0, at) + piece + text.slice(at);
  switch (random.below(10)) {
    case 0:
      return insert(random.pick([" ", "\n", "\r\n", "\t", "  "]));
    case 1:
      return text.replaceAll("+", "-").replaceAll("/", "_");
    case 2:
      return text.replace(/=+$/, "");
    case 3:
    case 4:
      return withStrayBits(random, text);
    case 5:
      return text.slice(0, at) + random.pick([...ALPHABET]) + text.slice(at + 1);
    case 6:
      return text.slice(0, at);
    case 7:
      return text + random.pick(["=", "==", "===", "====", "A", "AA", "A=", "-", "\n"]);
    case 8:
      return insert(random.pick(["=", "==", "-", "_", "A"]));
    default:
      return insert(
        random.pick([
          "!",
          ".",
          "\0",
          "\v",
          "\f",
          "é",
          "\u0100",
          "😀",
          "\uD800",
          "\u00A0",
          "\uFEFF",
          ",",
          ":",
        ]),
      );
  }
}

function withStrayBits(random: Random, text: string): string {
  const [, body = "", padding = ""] = /^(.*?)(=*)$/s.exec(text) ?? [];
  const bits = padding.length === 1 ? 1 + random.below(3) : 1 + random.below(15);
  const value = ALPHABET.indexOf(body.slice(-1));
  return value < 0 || body === "" ? text : body.slice(0, -1) + ALPHABET.charAt(value | bits) + padding;
}
