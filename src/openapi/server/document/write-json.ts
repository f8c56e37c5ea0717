import { isPlainObject } from "../../../core/json/json-value.ts";

/** Levels of a document that are written member by member: at the second are its paths, at the third its schemas. */
const SPLIT_LEVELS = 3;

/** Characters that are handed over at a time, at least. */
const BLOCK_CHARACTERS = 65_536;

/** Writes a document as `JSON.stringify` does, step by step; `onBlock` gets the text in UTF-8, bit by bit. */
export function* writeJson(
  document: object,
  onBlock: (bytes: Uint8Array) => void,
): Generator<undefined, void, undefined> {
  let block = "";
  for (const piece of piecesOf(document as Readonly<Record<string, unknown>>, SPLIT_LEVELS)) {
    block += piece;
    if (block.length < BLOCK_CHARACTERS) continue;
    onBlock(Buffer.from(block));
    block = "";
    yield;
  }
  onBlock(Buffer.from(block));
}

function* piecesOf(value: Readonly<Record<string, unknown>>, levels: number): Generator<string, void> {
  let before = "{";
  for (const name of Object.keys(value)) {
    const member = value[name];
    if (member === undefined) continue;
    yield `${before}${JSON.stringify(name)}:`;
    before = ",";
    if (levels > 1 && isPlainObject(member)) yield* piecesOf(member, levels - 1);
    else yield JSON.stringify(member);
  }
  yield before === "{" ? "{}" : "}";
}
