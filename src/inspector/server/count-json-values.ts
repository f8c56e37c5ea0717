const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;
const CURLY = 32;
const OPENING = 123;
const CLOSING = 125;

/** Counts the values that JSON text holds, itself included, without reading it; stops beyond `most`. Text that is no JSON gives any number. */
export function countJsonValues(text: string, most: number): number {
  let count = 1;
  /** Whether the last sign opened an object or a list, which may be empty. */
  let isFresh = false;
  for (let at = 0; at < text.length && count <= most; at++) {
    const code = text.charCodeAt(at);
    if (code <= 32) continue;
    const bracket = code | CURLY;
    if (code === COMMA || (isFresh && bracket !== CLOSING)) count += 1;
    isFresh = bracket === OPENING;
    if (code === QUOTE) at = endOfString(text, at + 1);
  }
  return count;
}

function endOfString(text: string, start: number): number {
  let at = start;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}
