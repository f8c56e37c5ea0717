import type { AnyOperation } from "../operation/operation-types.ts";
import type { JsonSchema } from "../schema/json-schema.ts";
import type { CallToolResult } from "./call-tool-result.ts";
import type { EndedCall } from "./ended-call.ts";

/** How a server writes results down: one of the published formats, or the caller's own. */
export interface ResultFormat {
  /** What a client asks for it by. */
  readonly name: string;
  /** Writes a call that has ended, whichever way; it does not throw. */
  write(call: EndedCall): CallToolResult | Promise<CallToolResult>;
  /** Describes the structured content of `write`; nothing where it has none, or nothing is known of it. */
  outputSchema(operation: AnyOperation): JsonSchema | undefined;
  /** Whether `write` sends previews of long results itself; otherwise servers cut data that is over their budget before it is written. */
  readonly previews?: boolean | undefined;
}
