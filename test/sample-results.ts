import { isFormatError, RESULT_META_KEY, toToolResult } from "../src/formats/index.ts";

/** Makes a text block. */
export const text = (value: string) => ({ type: "text", text: value }) as const;

/** The meta of a tool envelope. */
export const META = { tool: "t", ts: "2025-01-01T00:00:00Z" };

/** Makes a tool envelope. */
export const envelope = (payload: unknown) =>
  toToolResult({ summaryMarkdown: "## Done", payload, meta: META });

/** A tiered envelope. */
export const TIERED = {
  tier: "pro",
  tool_version: "1.0.0",
  tool_id: "scan",
  request_id: "r",
  capabilities: ["envelope-v1"],
  duration_ms: 1,
  error: null,
  upgrade_hints: [],
  data: { risk: 1 },
};

/** A status envelope. */
export const STATUS = { meta: { status: "ok", summary: "s" }, data: { hits: 1 } };

/** Puts a residual into a result. */
export const withMeta = (result: object, residual: unknown) => ({
  ...result,
  _meta: { [RESULT_META_KEY]: { residual } },
});

/** The code something is refused with; any other error is told apart. */
export function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return isFormatError(error) ? error.code : `not a FormatError: ${String(error)}`;
  }
  return "accepted";
}
