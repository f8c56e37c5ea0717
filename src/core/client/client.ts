import { isErrorEnvelope, type ResponseEnvelope } from "../envelope/envelope.ts";
import { EXECUTE_OPTIONS } from "../execution/call-scope.ts";
import { idOf } from "../execution/lookup.ts";
import type { AnyOperation, CallArguments, OutputOf } from "../operation/operation-types.ts";
import { checkNames, checkOptionsObject } from "../options/check-options.ts";
import type { ExecuteOptions, Executor, SubscribeOptions } from "../registry/executor.ts";
import { nearestName } from "../text/nearest-name.ts";
import { CURSOR_PAGER, followPages } from "./pager.ts";
import { ToolResultError } from "./tool-result-error.ts";

/** What following pages may be told. */
export interface PagesOptions extends ExecuteOptions {
  /** Pages to read before giving up with an error. @default 1_000 */
  readonly maxPages?: number | undefined;
}

/** Calls operations for their data; an answer that says no is thrown as a `ToolResultError`. */
export interface Client {
  call<const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, ExecuteOptions>
  ): Promise<OutputOf<T>>;
  /** The data of one page after the other, as the operation's `pager` or `meta.waybill.page` leads. */
  pages<const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, PagesOptions>
  ): AsyncIterable<OutputOf<T>>;
  /** The data of each yield. */
  subscribe<const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, SubscribeOptions>
  ): AsyncIterable<OutputOf<T>>;
}

const MAX_PAGES = 1_000;

type Target = AnyOperation | string;

/**
 * Makes a client of whatever runs operations; the defaults go with every call that does not say otherwise. The executor refuses names of
 * options that it does not know.
 */
export function createClient(executor: Executor, defaults: ExecuteOptions = {}): Client {
  const settings = withDefaults({}, defaults);
  const client = {
    async call(target: Target, input?: unknown, options?: ExecuteOptions): Promise<unknown> {
      return dataOf(await executor.execute(target, input, withDefaults(settings, options)), target);
    },

    async *pages(target: Target, input?: unknown, options?: PagesOptions): AsyncGenerator<unknown> {
      const { maxPages = MAX_PAGES, ...rest } = withDefaults(settings, options);
      checkMaxPages(rest);
      const operationId = idOf(target);
      const declared =
        executor.get(operationId)?.pager ?? (typeof target === "string" ? undefined : target.pager);
      const fetch = async (page: unknown) => {
        const envelope = await executor.execute(target, page, rest);
        dataOf(envelope, target);
        return envelope;
      };
      const pages = followPages(input, { operationId, pager: declared ?? CURSOR_PAGER, maxPages, fetch });
      for await (const envelope of pages) yield envelope.data;
    },

    async *subscribe(target: Target, input?: unknown, options?: SubscribeOptions): AsyncGenerator<unknown> {
      const envelopes = executor.subscribe(target, input, withDefaults(settings, options));
      for await (const envelope of envelopes) yield dataOf(envelope, target);
    },
  };
  return client as Client;
}

/** Copies options over the defaults; what is no object is refused, because a copy would lose it. */
function withDefaults<O extends ExecuteOptions>(defaults: ExecuteOptions, options: O | undefined): O {
  if (options !== undefined && typeof options !== "object") checkOptionsObject(options, EXECUTE_OPTIONS);
  return { ...defaults, ...options } as O;
}

/** Refuses a slip of `maxPages`, which the executor cannot suggest because it does not know it. */
function checkMaxPages(options: object): void {
  const slip = Object.keys(options).find((name) => nearestName(name, ["maxPages"]) !== undefined);
  if (slip !== undefined) checkNames({ [slip]: true }, ["maxPages"]);
}

function dataOf(envelope: ResponseEnvelope, target: Target): unknown {
  if (isErrorEnvelope(envelope)) throw new ToolResultError(envelope, idOf(target));
  return envelope.data;
}
