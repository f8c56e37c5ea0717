import type { Identity } from "../../core/access/identity.ts";
import type { ResultFormat } from "../../core/result/result-format.ts";
import { DATA_TYPE, ENVELOPE_TYPE } from "../media-types.ts";
import { requestError } from "./problem-answer.ts";

/** How the result of a call is written: the data alone, the whole envelope, or a format. */
export type Representation =
  | {
      readonly kind: "data";
      /** Whether what plain JSON would change goes in its wire form. */
      readonly exact: boolean;
      /** Whether the whole envelope is accepted as well, for what headers cannot hold. */
      readonly orEnvelope: boolean;
    }
  | { readonly kind: "envelope" }
  | { readonly kind: "format"; readonly format: ResultFormat };

/** The media type of subscriptions. */
export const EVENTS_TYPE = "text/event-stream";

/** The media type of a format, by its name. */
export function formatType(name: string): string {
  return `application/vnd.waybill.${name.toLowerCase()}+json`;
}

/** Tells one way of writing results from another. */
export function representationName(representation: Representation): string {
  if (representation.kind === "format") return `format ${representation.format.name}`;
  if (representation.kind === "envelope") return "envelope";
  return `${representation.exact ? "exact data" : "data"}${representation.orEnvelope ? " or envelope" : ""}`;
}

/** Chooses how to answer. */
export interface Negotiation {
  /** Throws where nothing there is would be accepted; who asks decides where anything is. */
  choose(accept: string | undefined, wanted: string | undefined, identity?: Identity): Representation;
  /** Throws unless a stream of events is accepted. */
  checkEvents(accept: string | undefined): void;
}

const DATA: Representation = { kind: "data", exact: false, orEnvelope: false };
const REMEMBERED = 256;
const ACCEPT_CHARACTERS = 2_048;

interface Choice {
  readonly types: readonly [string, ...string[]];
  readonly representation: Representation;
}

/** Creates what chooses between data, envelope and these formats; `formatOf` names what goes to whoever accepts anything. */
export function createNegotiation(
  formats: readonly ResultFormat[],
  formatOf?: (identity: Identity | undefined) => string | undefined,
): Negotiation {
  const choices: readonly Choice[] = [
    { types: ["application/json", DATA_TYPE, "application/octet-stream"], representation: DATA },
    { types: [ENVELOPE_TYPE], representation: { kind: "envelope" } },
    ...formats.map((format) => ({
      types: [formatType(format.name)] as const,
      representation: { kind: "format", format } as const,
    })),
  ];
  const byName = new Map<string, Representation>([
    ["data", DATA],
    ["envelope", { kind: "envelope" }],
    ...formats.map((format) => [format.name, { kind: "format", format }] as const),
  ]);
  const seen = new Map<string, Representation>();
  return {
    choose(accept, wanted, identity) {
      if (wanted !== undefined) return byName.get(wanted) ?? refuse(choices);
      if (accept === undefined || accept === "*/*") {
        return byName.get(formatOf?.(identity) ?? "data") ?? DATA;
      }
      const known = seen.get(accept);
      if (known !== undefined) return known;
      const chosen = chooseBest(accept, choices) ?? refuse(choices);
      if (seen.size >= REMEMBERED) seen.clear();
      seen.set(accept, chosen);
      return chosen;
    },
    checkEvents(accept) {
      if (accept === undefined || qualityOf(EVENTS_TYPE, parseAccept(accept)) > 0) return;
      throw notAcceptable([EVENTS_TYPE]);
    },
  };
}

function chooseBest(accept: string, choices: readonly Choice[]): Representation | undefined {
  const ranges = parseAccept(accept);
  let best: Representation | undefined;
  let most = 0;
  for (const { types, representation } of choices) {
    const quality = choiceQuality(types, ranges);
    if (quality > most) [most, best] = [quality, representation];
  }
  if (best !== DATA) return best;
  const accepts = (wanted: string): boolean =>
    ranges.some(({ type, quality }) => type === wanted && quality > 0);
  return { kind: "data", exact: accepts(DATA_TYPE), orEnvelope: accepts(ENVELOPE_TYPE) };
}

/** Where the first type, which most results have, is not wanted, only others that are asked for by name make a choice. */
function choiceQuality(types: readonly [string, ...string[]], ranges: readonly MediaRange[]): number {
  const isNamed = (type: string): boolean => ranges.some((range) => range.type === type);
  const [first] = types;
  const isUnwanted = isNamed(first) && qualityOf(first, ranges) === 0;
  const possible = isUnwanted ? types.filter(isNamed) : types;
  return Math.max(0, ...possible.map((type) => qualityOf(type, ranges)));
}

interface MediaRange {
  readonly type: string;
  readonly quality: number;
}

/** Reads the ranges of an `Accept`; one that cannot be read counts as nothing. */
function parseAccept(accept: string): readonly MediaRange[] {
  return accept
    .slice(0, ACCEPT_CHARACTERS)
    .toLowerCase()
    .split(",")
    .map((part) => {
      const [type = "", ...parameters] = part.split(";").map((piece) => piece.trim());
      const weight = parameters.find((parameter) => /^q\s*=/.test(parameter));
      return { type, quality: weight === undefined ? 1 : readQuality(weight) };
    })
    .filter(({ type }) => /^[^\s/]+\/[^\s/]+$/.test(type));
}

function readQuality(weight: string): number {
  const [, digits] = /^q\s*=\s*([01](?:\.\d{0,3})?)$/.exec(weight) ?? [];
  return digits === undefined ? 0 : Math.min(Number(digits), 1);
}

/** The quality that the most specific range gives a type. */
function qualityOf(type: string, ranges: readonly MediaRange[]): number {
  const [group] = type.split("/");
  for (const wanted of [type, `${group}/*`, "*/*"]) {
    const matching = ranges.filter((range) => range.type === wanted);
    if (matching.length > 0) return Math.max(...matching.map(({ quality }) => quality));
  }
  return 0;
}

function refuse(choices: readonly Choice[]): never {
  throw notAcceptable(choices.flatMap(({ types }) => types));
}

function notAcceptable(available: readonly string[]): Error {
  return requestError("VALIDATION_ERROR", "None of the accepted media types is offered; see details.", {
    httpStatus: 406,
    details: { available },
  });
}
