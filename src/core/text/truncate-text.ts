/** The beginning of a text, without half a character at its end. */
export function truncateText(text: string, most: number): string {
  if (text.length <= most) return text;
  const isPair = (text.codePointAt(most - 1) ?? 0) > 0xffff;
  return text.slice(0, isPair ? most - 1 : most);
}

/** A text of at most so many characters; a longer one is its beginning and an ellipsis. */
export function shortText(text: string, most: number): string {
  return text.length > most ? `${truncateText(text, most)}…` : text;
}

/** Finds places in a text where it may be cut without splitting a character as people see it. */
export interface GraphemeBoundaries {
  /** Gives the last boundary at or before a place, which is at most the `reach` asked for. */
  atOrBefore(place: number): number;
}

let segmenter: Intl.Segmenter | undefined;

/** Prepares to look for boundaries in the first `reach` characters of a text; the rest is not looked at. */
export function graphemeBoundaries(text: string, reach: number): GraphemeBoundaries {
  let segments: Intl.Segments | undefined;
  return {
    atOrBefore(place) {
      if (place <= 0) return 0;
      if (place >= text.length) return text.length;
      if (isPlainSeam(text, place)) return place;
      segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
      // Whether a place is a boundary depends on all that stands before it and on one code point behind it.
      segments ??= segmenter.segment(text.slice(0, reach + 2));
      return segments.containing(place)?.index ?? 0;
    },
  };
}

/** ASCII on both sides: always a boundary, but for a line break of two characters. */
function isPlainSeam(text: string, place: number): boolean {
  const before = text.charCodeAt(place - 1);
  const after = text.charCodeAt(place);
  return before < 0x80 && after < 0x80 && !(before === 0x0d && after === 0x0a);
}
