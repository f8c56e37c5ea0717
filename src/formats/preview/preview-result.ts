import type { MCPContentBlock, MCPResourceLinkBlock } from "../../core/envelope/content-block.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { textOf } from "../../core/result/call-tool-result.ts";
import type { ResultEntry, ResultStore, StoredResult } from "../../core/result/result-store.ts";
import type { ToolResult } from "../../core/result/tool-result.ts";
import { statusEnvelopeCodec } from "../status-envelope/status-envelope-codec.ts";
import type { ToolResponseEnvelope } from "../status-envelope/types.ts";
import type { DataSchema } from "./data-validator.ts";
import { type PreviewLimits, previewToolPayload } from "./preview-tool-payload.ts";

/** How results are previewed: what is sent at once, and where the whole is kept. */
export interface ResultPreview extends PreviewLimits {
  /** Keeps what is cut; give the server that answers `resources/read` the same one. */
  readonly store: ResultStore;
}

/** A result as it is sent. */
export interface PreviewedResult {
  readonly result: ToolResult;
  /** Whether the whole is in the store. */
  readonly isCut: boolean;
}

/** Makes a result that is to be a status envelope small enough to send, as `previewToolPayload` does. */
export async function previewResult(
  whole: ToolResult,
  schema: DataSchema | undefined,
  { store, ...limits }: ResultPreview,
): Promise<PreviewedResult> {
  const { meta, data } = statusEnvelopeCodec.encode(whole).structuredContent as ToolResponseEnvelope;
  const { content = [], extra, ...others } = whole;
  const keeping = new NotingStore(store);
  const payload = await previewToolPayload({
    meta,
    data,
    additionalText: content.map(textOf).filter((text) => text !== undefined),
    resourceLinks: content.filter(isLink),
    isError: whole.isError,
    // The data of an error need not match anything.
    ...(schema !== undefined && !whole.isError && { schema }),
    store: keeping,
    limits,
    onWarning: () => undefined,
  });
  const sent = statusEnvelopeCodec.decode(payload).result;
  const tokenUsage = sent.tokenUsage && { tokenUsage: sent.tokenUsage };
  if (!keeping.isUsed) return { result: { ...whole, ...tokenUsage }, isCut: false };
  const [texts, links] = [sent.content?.filter((block) => !isLink(block)), sent.content?.filter(isLink)];
  const rest = content.filter((block) => textOf(block) === undefined && !isLink(block));
  const isSame = sent.data === data;
  return {
    result: {
      ...others,
      // Cut data is not the wire form of anything.
      ...(extra !== undefined && isSame && { extra }),
      ...(whole.data !== undefined && { data: sent.data }),
      ...(sent.nextSteps && { nextSteps: sent.nextSteps }),
      ...tokenUsage,
      truncated: true,
      content: [...(texts ?? []), ...rest, ...(links ?? [])],
    },
    isCut: true,
  };
}

function isLink(block: MCPContentBlock): block is MCPResourceLinkBlock {
  return block.type === "resource_link";
}

/** Knows whether anything was put into a store, and says what it means that nothing can be. */
class NotingStore implements ResultStore {
  readonly #store: ResultStore;
  isUsed = false;

  constructor(store: ResultStore) {
    this.#store = store;
  }

  async put(entry: ResultEntry): Promise<StoredResult> {
    try {
      const stored = await this.#store.put(entry);
      this.isUsed = true;
      return stored;
    } catch (thrown) {
      if (isCallError(thrown) && thrown.code === "TOO_LARGE") throw thrown;
      throw new CallError("EXECUTION_ERROR", "The whole result could not be kept.", { cause: thrown });
    }
  }

  read(): undefined {
    return undefined;
  }
}
