import type { PageFacts, ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import type { Pager } from "../../../core/operation/operation-types.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import type { NextPage, PageFinder } from "./page-finder.ts";

/** The pages of one operation. */
export interface Paging {
  readonly pager: Pager;
  /** What a result says of the page after it; `{}` on the last, nothing where nobody can tell. */
  factsOf(envelope: ResponseEnvelope, input: unknown): PageFacts | undefined;
}

/**
 * Makes one pager of several ways to find the next page: the first that can tell is believed. Where a page is named that no input asks
 * for, the others are tried, and the pager fails unless one of them has it.
 */
export function createPaging(finders: readonly PageFinder[]): Paging {
  const find = (envelope: ResponseEnvelope, input: unknown) => findNext(finders, envelope, input);
  return {
    pager: {
      next(envelope, input) {
        const found = find(envelope, input);
        if (found === undefined || found.isLast) return undefined;
        // An end here would look like the end of the list.
        if ("undeclared" in found) throw notDeclared(found.undeclared);
        return found.input;
      },
    },
    factsOf(envelope, input) {
      const found = find(envelope, input);
      if (found === undefined || "undeclared" in found) return undefined;
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
  let named: NextPage | undefined;
  try {
    for (const find of finders) {
      const found = find(envelope, input);
      if (found === undefined) continue;
      if (found.isLast) return named ?? found;
      if (!("undeclared" in found)) return found;
      named ??= found;
    }
  } catch {
    // Only an input that cannot be read gets here: whoever made it meets that when it is sent.
  }
  return named;
}

const MOST_SHOWN = 3;

function notDeclared(names: readonly string[]): CallError {
  const shown = names.slice(0, MOST_SHOWN).map((name) => `"${safeLine(name, 80)}"`);
  const message = `The server names a next page by ${shown.join(", ")}, for which the operation has no input: declare it as a query parameter with an overlay.`;
  return new CallError("NOT_IMPLEMENTED", message);
}
