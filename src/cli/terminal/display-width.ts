const ASCII = /^[\x20-\x7e]*$/;
/** What takes no column of its own. */
const NO_WIDTH = /^[\p{Mark}\p{Default_Ignorable_Code_Point}\p{Control}]+$/u;
/** Emoji that are shown as pictures. */
const PICTURE =
  /\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f|\ufe0f\u20e3|\p{Regional_Indicator}{2}/u;
/** East Asian wide and fullwidth characters, by block. */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|[\u{16fe0}-\u{18aff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u;

let segmenter: Intl.Segmenter | undefined;

function segments(text: string): string[] {
  segmenter ??= new Intl.Segmenter();
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

function widthOf(segment: string): number {
  if (NO_WIDTH.test(segment)) return 0;
  return PICTURE.test(segment) || WIDE.test(segment) ? 2 : 1;
}

/** The number of columns a terminal shows a line of clean text in. */
export function displayWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  return segments(text).reduce((width, segment) => width + widthOf(segment), 0);
}

/** Cuts a line of clean text to a number of columns; what is cut ends with `…`. */
export function cutToWidth(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let kept = "";
  let width = 1;
  for (const segment of segments(text)) {
    width += widthOf(segment);
    if (width > columns) break;
    kept += segment;
  }
  return columns < 1 ? "" : `${kept.trimEnd()}…`;
}

/** Fills a line of clean text with spaces up to a number of columns. */
export function padToWidth(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - displayWidth(text)));
}
