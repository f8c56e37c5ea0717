import { httpEnvelope, type ResponseEnvelope, type ResultFacts } from "../../core/envelope/envelope.ts";
import { isCallError } from "../../core/errors/errors.ts";
import type { StreamedResponse, WholeResponse } from "./http-message.ts";
import type { OperationPlan } from "./plan.ts";
import { type EnvelopeMeta, envelopeMeta } from "./response/envelope-meta.ts";
import type { ResponseReader } from "./response/read-response.ts";
import { readStream, type StreamItem, type StreamOptions } from "./response/read-stream.ts";

/** One yield of a stream. */
export interface StreamYield {
  readonly envelope: ResponseEnvelope;
  readonly cursor: string | undefined;
}

/** What reading a stream needs besides the stream. */
export interface StreamItemsOptions {
  readonly plan: OperationPlan;
  readonly read: ResponseReader;
  readonly reading: StreamOptions;
}

/** How often a stream that was cut is taken up again without a single item in between. */
const RESUMES = 3;

/**
 * Reads a stream item by item. One that Waybill serves and that was cut is taken up again where it was cut, which is what its
 * event ids are for; any other cut is thrown.
 */
export async function* streamItems(
  open: (lastEventId: string | undefined) => Promise<StreamedResponse | WholeResponse>,
  { plan, read, reading }: StreamItemsOptions,
): AsyncGenerator<StreamYield> {
  let lastEventId: string | undefined;
  for (let fruitless = 0; ; fruitless += 1) {
    const response = await open(lastEventId);
    if (!isStreamed(response)) {
      yield { envelope: read(response), cursor: undefined };
      return;
    }
    const items = readStream(response, plan, reading);
    const meta = envelopeMeta(response);
    try {
      for await (const item of items) {
        fruitless = 0;
        yield { envelope: toEnvelope(item, meta), cursor: item.cursor };
      }
      return;
    } catch (thrown) {
      lastEventId = items.lastEventId ?? lastEventId;
      const isCut = isCallError(thrown) && thrown.code === "UNAVAILABLE";
      if (!isCut || plan.waybill === undefined || lastEventId === undefined || fruitless >= RESUMES)
        throw thrown;
    }
  }
}

function isStreamed(response: StreamedResponse | WholeResponse): response is StreamedResponse {
  return response.status < 400 && !(response.body instanceof Uint8Array);
}

function toEnvelope({ data, event, error, said }: StreamItem, meta: EnvelopeMeta): ResponseEnvelope {
  const facts: ResultFacts = {
    obtained: "body",
    ...(event !== undefined && { event }),
    ...(said !== undefined && { said }),
    ...error,
  };
  return httpEnvelope(data, { ...meta, isError: error !== undefined, waybill: facts });
}
