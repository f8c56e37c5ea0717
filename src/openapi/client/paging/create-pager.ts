import type { PageFacts, ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import type { Pager } from "../../../core/operation/operation-types.ts";
import type { NextPage, PageFinder } from "./page-finder.ts";

/** The pages of one operation. */
export interface Paging {
  readonly pager: Pager;
  /** What a result says of the page after it; `{}` on the last, nothing where nobody can tell. */
  factsOf(envelope: ResponseEnvelope, input: unknown): PageFacts | undefined;
}

/** Makes one pager of several ways to find the next page: the first that can tell is believed. */
export function createPaging(finders: readonly PageFinder[]): Paging {
  const find = (envelope: ResponseEnvelope, input: unknown) => findNext(finders, envelope, input);
  return {
    pager: {
      next(envelope, input) {
        const found = find(envelope, input);
        return found === undefined || found.isLast ? undefined : found.input;
      },
    },
    factsOf(envelope, input) {
      const found = find(envelope, input);
      if (found === undefined) return undefined;
      if (found.isLast) return {};
      const { token: next, input: named } = found;
      return isCursorAlone(named, input, next) ? { next } : { next, input: named };
    },
  };
}

/** Every client makes that of a cursor by itself. */
function isCursorAlone(named: unknown, input: unknown, cursor: string): boolean {
  if (!isPlainObject(named) || !Object.hasOwn(named, "cursor") || named["cursor"] !== cursor) return false;
  if (typeof input === "object" && input !== null && !isPlainObject(input)) return false;
  const before = isPlainObject(input) ? input : {};
  const isSame = (name: string) => Object.hasOwn(before, name) && before[name] === named[name];
  const names = Object.keys(named).filter((name) => name !== "cursor");
  return names.every(isSame) && Object.keys(before).every((name) => Object.hasOwn(named, name));
}

function findNext(
  finders: readonly PageFinder[],
  envelope: ResponseEnvelope,
  input: unknown,
): NextPage | undefined {
  if (envelope.meta.isError === true) return undefined;
  try {
    for (const find of finders) {
      const found = find(envelope, input);
      if (found !== undefined) return found;
    }
  } catch {
    // Only an input that cannot be read gets here: whoever made it meets that when it is sent.
  }
  return undefined;
}
