import type { ResponseEnvelope } from "../envelope/envelope.ts";
import { CallError, toCallError } from "../errors/errors.ts";
import type { Pager } from "../operation/operation-types.ts";

/** Follows `meta.waybill.page`: the next page is asked for with the input it names, else with the same and its cursor as `cursor`. */
export const CURSOR_PAGER: Pager = {
  next(envelope, input) {
    const { next: cursor, input: named } = envelope.meta.waybill?.page ?? {};
    if (named !== undefined) return named;
    if (cursor === undefined) return undefined;
    return typeof input === "object" && input !== null ? { ...input, cursor } : { cursor };
  },
};

/** What following pages needs to know. */
export interface PageWalk {
  readonly operationId: string;
  readonly pager: Pager;
  readonly maxPages: number;
  fetch(input: unknown): Promise<ResponseEnvelope>;
}

/** Yields one envelope for each page; a page that was asked for before, or one too many, is an error and not an end. */
export async function* followPages(
  input: unknown,
  walk: PageWalk,
): AsyncGenerator<ResponseEnvelope, undefined> {
  const { operationId, pager, maxPages } = walk;
  if (typeof maxPages !== "number" || !(maxPages >= 1))
    throw new TypeError("maxPages must be a number from 1 up.");
  const asked = new Set([keyOf(input)]);
  let current: unknown = input;
  for (let page = 1; ; page++) {
    const envelope = await walk.fetch(current);
    yield envelope;
    current = nextInput(pager, envelope, current);
    if (current === undefined) return;
    const key = keyOf(current);
    if (asked.has(key)) throw failure(`"${operationId}" names a next page that was read already.`);
    if (page >= maxPages)
      throw failure(`"${operationId}" has more than ${maxPages} pages; raise maxPages to read on.`);
    asked.add(key);
  }
}

function nextInput(pager: Pager, envelope: ResponseEnvelope, current: unknown): unknown {
  try {
    return pager.next(envelope, current);
  } catch (thrown) {
    throw toCallError(thrown);
  }
}

function failure(message: string): CallError {
  return new CallError("RESOURCE_EXHAUSTED", message, { retryable: false });
}

/** Equal inputs have equal keys; what cannot be written as JSON is compared by identity. */
function keyOf(input: unknown): unknown {
  try {
    return JSON.stringify(input) ?? input;
  } catch {
    return input;
  }
}
