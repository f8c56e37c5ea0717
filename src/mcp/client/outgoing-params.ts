import { isPlainObject } from "../../core/json/json-value.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import { PASSED_EXTENSIONS } from "../extensions.ts";
import { META_KEYS } from "../protocol/revisions.ts";
import type { McpLogLevel } from "../provider.ts";

type Params = Readonly<Record<string, unknown>>;

/** Keys of `_meta` that speak for the connection, and not for whoever made the request. */
const RESERVED: ReadonlySet<string> = new Set([
  "progressToken",
  META_KEYS.revision,
  META_KEYS.clientInfo,
  META_KEYS.clientCapabilities,
  META_KEYS.logLevel,
]);

/** What this client can do on behalf of those who can be asked everything, and whose clients know all that passes through. */
export const CLIENT_CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: {},
  roots: { listChanged: true },
  extensions: PASSED_EXTENSIONS as Record<string, Record<string, never>>,
} as const;

/** What this client calls itself. */
export interface ClientInfo {
  readonly name: string;
  readonly version: string;
}

/** What a modern request says about itself. */
export interface RequestFacts {
  readonly protocolVersion: string;
  readonly clientInfo: ClientInfo;
  readonly caller: CallerSide | undefined;
  readonly logLevel: McpLogLevel | undefined;
}

/**
 * Copies params for the wire: reserved keys that came along are left out, and where the 2026-07-28 revision is spoken, the
 * capabilities are those of this request's caller, so that a server does not ask what nobody can answer.
 */
export function toOutgoingParams(params: Params | undefined, modern: RequestFacts | undefined): Params {
  const given = isPlainObject(params?.["_meta"]) ? params["_meta"] : undefined;
  const kept = given === undefined ? [] : Object.entries(given).filter(([key]) => !RESERVED.has(key));
  const meta = { ...Object.fromEntries(kept), ...(modern === undefined ? {} : metaOf(modern)) };
  if (Object.keys(meta).length > 0) return { ...params, _meta: meta };
  if (given === undefined) return params ?? {};
  const { _meta, ...rest } = params as Params & { _meta: unknown };
  return rest;
}

function metaOf({ protocolVersion, clientInfo, caller, logLevel }: RequestFacts): Params {
  const { elicitation, sampling, roots } = CLIENT_CAPABILITIES;
  const extensions = caller?.extensions ?? PASSED_EXTENSIONS;
  return {
    [META_KEYS.revision]: protocolVersion,
    [META_KEYS.clientInfo]: clientInfo,
    [META_KEYS.clientCapabilities]: {
      ...(caller?.elicit === undefined ? {} : { elicitation }),
      ...(caller?.sample === undefined ? {} : { sampling }),
      roots,
      ...(Object.keys(extensions).length > 0 && { extensions }),
    },
    ...(logLevel === undefined ? {} : { [META_KEYS.logLevel]: logLevel }),
  };
}
