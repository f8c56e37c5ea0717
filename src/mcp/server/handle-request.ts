import type { Result, Server, ServerContext } from "@modelcontextprotocol/server";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { toProtocolError } from "./protocol-errors.ts";

/** The parameters of a request, checked by whoever reads them. */
export type Params = Readonly<Record<string, unknown>>;

/** Lets everything through: the SDK's own schemas would answer a bad parameter with an internal error. */
const ANYTHING: StandardSchemaV1<Params, Params> = {
  "~standard": { version: 1, vendor: "waybill", validate: (value) => ({ value: value as Params }) },
};

/** Answers requests of one method; whatever is thrown leaves as a proper error. */
export function handleRequest(
  server: Server,
  method: string,
  answer: (params: Params, context: ServerContext) => unknown,
  onForeign: (cause: unknown) => void,
): void {
  server.setRequestHandler(method, { params: ANYTHING }, async (params, context) => {
    try {
      return (await answer(params, context)) as Result;
    } catch (thrown) {
      throw toProtocolError(thrown, onForeign);
    }
  });
}
