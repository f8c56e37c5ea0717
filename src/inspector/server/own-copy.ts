/** V8 copies what is shorter in any case; longer parts of a text keep all of it in memory. */
const SHARED_FROM = 13;

/** Copies at most so many characters of a text, so that a short part which is remembered does not hold on to a long whole. */
export function ownCopy(text: string, most: number): string {
  if (text.length < SHARED_FROM) return text;
  return Buffer.from(text.slice(0, most), "utf16le").toString("utf16le");
}
