import { essenceOf, mediaKindOf } from "../../media-types.ts";

const ORDER: readonly ((type: string) => boolean)[] = [
  (type) => type === "application/json",
  (type) => mediaKindOf(type) === "json",
  (type) => mediaKindOf(type) === "form",
  (type) => type === "multipart/form-data",
  (type) => type.startsWith("text/"),
];

/** Where a media type stands among those a body may have: less is better. */
export function mediaRank(mediaType: string): number {
  const type = essenceOf(mediaType);
  const rank = ORDER.findIndex((test) => test(type));
  return rank === -1 ? ORDER.length : rank;
}
