import { cutText } from "./decode-body.ts";

/** What terminals act on, with all that belongs to it. */
const ESCAPES = new RegExp(
  [
    "(?:\\u001B\\[|\\u009B)[0-?]*[ -/]*[@-~]?",
    "(?:\\u001B[\\]PX^_]|[\\u0090\\u0098\\u009D-\\u009F])[^\\u0007\\u001B\\u009C\\n]*(?:\\u0007|\\u001B\\\\|\\u009C)?",
    "\\u001B[ -/]*[0-~]?",
  ].join("|"),
  "gu",
);
const LINE_ENDS = /\r\n|\u2028|\u2029/g;
/** What nobody sees; joiners and the two selectors of emoji are judged by what is beside them. */
const HIDDEN = new RegExp(
  [
    "[\\u0000-\\u0008\\u000B-\\u001F\\u007F-\\u009F]",
    "(?!\\u200C|\\u200D|\\uFE0E|\\uFE0F)\\p{Default_Ignorable_Code_Point}",
    "[\\u2800\\uFFF9-\\uFFFB]",
    "\\p{Private_Use}",
    "\\p{Noncharacter_Code_Point}",
  ].join("|"),
  "gu",
);
const STRAY = new RegExp(
  [
    "(?<!\\p{Emoji})(?:\\uFE0E|\\uFE0F)",
    "(?<!\\p{L}|\\p{M}|\\p{Extended_Pictographic}|\\p{Emoji_Modifier}|\\uFE0F)(?:\\u200C|\\u200D)",
    "(?:\\u200C|\\u200D)(?!\\p{L}|\\p{M}|\\p{Extended_Pictographic})",
  ].join("|"),
  "gu",
);
const LONE_SURROGATE = /\p{Surrogate}/gu;

/** Makes text of a server fit to be shown: cut, and without what people would not see or terminals would act on. */
export function cleanMessage(text: string, length: number): string {
  return cutText(text, length)
    .replace(LINE_ENDS, "\n")
    .replace(ESCAPES, "")
    .replace(HIDDEN, "")
    .replace(STRAY, "")
    .replace(LONE_SURROGATE, "\uFFFD");
}
