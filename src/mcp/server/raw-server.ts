import { Server } from "@modelcontextprotocol/server";

/**
 * A server of the SDK that sends tool results as they are: the SDK would check each against a schema of its own, send the copy that
 * made, which lacks a member called `__proto__`, and refuse what a later revision allows.
 */
export class RawServer extends Server {
  protected override _wrapHandler(
    method: string,
    handler: Parameters<Server["_wrapHandler"]>[1],
  ): ReturnType<Server["_wrapHandler"]> {
    // Prompts may ask for input just as tools do, and nothing else is done to their results.
    return super._wrapHandler(method === "tools/call" ? "prompts/get" : method, handler);
  }
}
