import { isAscii, isUtf8 } from "node:buffer";

/** Bytes looked at together: small enough that a rare letter costs little, large enough that plain ones cost nothing. */
const CHUNK = 16_384;

/**
 * Decodes the text of a document, or gives nothing where the bytes are not UTF-8. With `ascii`, letters beyond ASCII become
 * `\uXXXX`: the text then takes one byte a letter, and reading JSON takes less time than decoding it would.
 */
export function decodeText(bytes: Buffer, ascii: boolean): string | undefined {
  const body = withoutMark(bytes);
  if (isAscii(body)) return body.toString("latin1");
  if (!isUtf8(body)) return undefined;
  return ascii ? escaped(body) : body.toString("utf8");
}

function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** Written into bytes of their own and decoded as a whole: a join of texts would take three times as long. */
function escaped(bytes: Buffer): string {
  const runs = letterRuns(bytes);
  // Where such letters are the rule, escaping them is what takes long.
  if (runs.length * 100 > bytes.length) return bytes.toString("utf8");
  const texts = runs.map(([start, stop]) => escapeLetters(bytes.toString("utf8", start, stop)));
  const growth = runs.reduce(
    (sum, [start, stop], i) => sum + (texts[i] as string).length - (stop - start),
    0,
  );
  const result = Buffer.allocUnsafeSlow(bytes.length + growth);
  let from = 0;
  let to = 0;
  runs.forEach(([start, stop], i) => {
    to += bytes.copy(result, to, from, start);
    to += result.write(texts[i] as string, to, "latin1");
    from = stop;
  });
  bytes.copy(result, to, from);
  return result.toString("latin1");
}

/** Where letters beyond ASCII stand, whole letters always. */
function letterRuns(bytes: Buffer): [start: number, stop: number][] {
  const runs: [number, number][] = [];
  let i = 0;
  while (i < bytes.length) {
    const end = Math.min(i + CHUNK, bytes.length);
    if (isAscii(bytes.subarray(i, end))) {
      i = end;
      continue;
    }
    for (; i < end; i++) {
      if ((bytes[i] as number) < 0x80) continue;
      const start = i;
      while (i < bytes.length && (bytes[i] as number) >= 0x80) i++;
      runs.push([start, i]);
    }
  }
  return runs;
}

function escapeLetters(text: string): string {
  let result = "";
  for (let i = 0; i < text.length; i++) result += `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return result;
}
