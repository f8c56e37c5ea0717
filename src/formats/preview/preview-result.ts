import type { MCPContentBlock, MCPResourceLinkBlock } from "../../core/envelope/content-block.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { toCutFacts } from "../../core/preview/cut-data.ts";
import type { DataSchema } from "../../core/preview/data-validator.ts";
import { textOf } from "../../core/result/call-tool-result.ts";
import type { ResultEntry, ResultStore } from "../../core/result/result-store.ts";
import type { ToolResult } from "../../core/result/tool-result.ts";
import { statusEnvelopeCodec } from "../status-envelope/status-envelope-codec.ts";
import type { ToolResponseEnvelope } from "../status-envelope/types.ts";
import { type PreviewLimits, previewPayload } from "./preview-tool-payload.ts";

/** How results are previewed: what is sent at once, and where the whole is kept. */
export interface ResultPreview extends PreviewLimits {
  /** Keeps what is cut; give the server that answers `resources/read` the same one. */
  readonly store: ResultStore;
}

/** A result as it is sent. */
export interface PreviewedResult {
  readonly result: ToolResult;
  /** What programs are told of a preview, or of data that could not be cut; nothing where there is nothing to tell. */
  readonly facts: Readonly<Record<string, unknown>> | undefined;
}

/** Makes a result that is to be a status envelope small enough to send, as `previewToolPayload` does. */
export async function previewResult(
  whole: ToolResult,
  schema: DataSchema | undefined,
  { store, ...limits }: ResultPreview,
  keeps?: Pick<ResultEntry, "owner" | "binding">,
): Promise<PreviewedResult> {
  const { meta, data } = statusEnvelopeCodec.encode(whole).structuredContent as ToolResponseEnvelope;
  const { content = [], extra, ...others } = whole;
  const { payload, stored, cuts, uncut } = await previewPayload({
    meta,
    data,
    additionalText: content.map(textOf).filter((text) => text !== undefined),
    resourceLinks: content.filter(isLink),
    isError: whole.isError,
    // The data of an error need not match anything.
    ...(schema !== undefined && !whole.isError && { schema }),
    store: sayingWhy(store, keeps),
    limits,
    onWarning: () => undefined,
  });
  const sent = statusEnvelopeCodec.decode(payload).result;
  const tokenUsage = sent.tokenUsage && { tokenUsage: sent.tokenUsage };
  if (stored === undefined) return { result: { ...whole, ...tokenUsage }, facts: uncut && { uncut } };
  const [texts, links] = [sent.content?.filter((block) => !isLink(block)), sent.content?.filter(isLink)];
  const rest = content.filter((block) => textOf(block) === undefined && !isLink(block));
  return {
    result: {
      ...others,
      // Cut data is not the wire form of anything.
      ...(extra !== undefined && sent.data === data && { extra }),
      ...(whole.data !== undefined && { data: sent.data }),
      ...(sent.nextSteps && { nextSteps: sent.nextSteps }),
      ...tokenUsage,
      truncated: true,
      content: [...(texts ?? []), ...rest, ...(links ?? [])],
    },
    facts: {
      preview: true,
      ...(uncut && { uncut }),
      ...(cuts.length > 0 && { stored: stored.uri, storedAs: "envelope", ...toCutFacts(cuts) }),
    },
  };
}

function isLink(block: MCPContentBlock): block is MCPResourceLinkBlock {
  return block.type === "resource_link";
}

/** A store that says what it means that nothing can be kept, and whose what is kept is. */
function sayingWhy(
  store: ResultStore,
  keeps: Pick<ResultEntry, "owner" | "binding"> | undefined,
): ResultStore {
  return {
    read: () => undefined,
    async put(entry) {
      try {
        return await store.put({ ...entry, ...keeps });
      } catch (thrown) {
        if (isCallError(thrown) && thrown.code === "TOO_LARGE") throw thrown;
        throw new CallError("EXECUTION_ERROR", "The whole result could not be kept.", { cause: thrown });
      }
    },
  };
}
