import { isAbortSignal } from "../core/execution/abort-listeners.ts";
import { checkDelay, checkOption } from "../core/options/check-options.ts";
import type { McpRequestOptions } from "./client/mcp-connection.ts";

/** Throws a `TypeError` for options of a request that cannot work, before anything waits for them. */
export function checkRequestOptions(options: McpRequestOptions | undefined): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null || isAbortSignal(options)) {
    throw new TypeError("The options of a request must be an object, such as { signal, timeoutMs }.");
  }
  const { signal, timeoutMs, onProgress } = options;
  const hint = (signal as unknown) instanceof AbortController ? " (the signal of the controller)" : "";
  checkOption("signal", signal, `an AbortSignal${hint}`, isAbortSignal(signal));
  checkDelay("timeoutMs", timeoutMs);
  checkOption("onProgress", onProgress, "a function", typeof onProgress === "function");
}
