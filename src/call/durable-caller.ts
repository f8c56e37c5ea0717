import type { ResponseEnvelope } from "../core/envelope/envelope.ts";
import type { CallOptions } from "./call-options.ts";

/** Runs operations that must not be lost: a call it has accepted is run even when whoever was running it dies. */
export interface DurableCaller {
  execute(operationId: string, input: unknown, options: CallOptions): Promise<ResponseEnvelope>;
}
