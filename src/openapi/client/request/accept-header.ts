import {
  essenceOf,
  mediaKindOf,
  parseSendableType,
  type SendableType,
  writeMediaType,
} from "../../media-types.ts";
import type { ResponsePlan } from "../plan.ts";

/** Most media types that are asked for. */
const MOST = 10;

/** Writes what an operation's success may come as, JSON first; anything where its document does not say. */
export function toAcceptHeader(responses: readonly ResponsePlan[]): string {
  const successes = responses.filter(({ status }) => /^2/.test(status));
  const declared = successes.length > 0 ? successes : responses.filter(({ status }) => status === "default");
  const types = declared.flatMap(({ content }) =>
    content.map(({ mediaType }) => parseSendableType(mediaType) ?? parseSendableType(essenceOf(mediaType))),
  );
  const known = types.filter((type): type is SendableType => type !== undefined);
  const ordered = [...known.filter(isJson), ...known.filter((type) => !isJson(type))];
  const names = [...new Set(ordered.map((type) => writeMediaType(type, ["charset", "q", "boundary"])))];
  if (names.length === 0) return "*/*";
  return names
    .slice(0, MOST)
    .map((name, index) => (index === 0 ? name : `${name};q=${Math.max(1, MOST - index) / MOST}`))
    .join(", ");
}

function isJson({ essence }: SendableType): boolean {
  return mediaKindOf(essence) === "json";
}
