import { safeLine } from "../../core/text/safe-text.ts";
import type { Io } from "../io.ts";
import { toSafeJson } from "../terminal/json-output.ts";

/** Writes one line about what an operation reports while it runs. */
export function writeProgress(io: Io, value: unknown): void {
  io.stderr.write(`${lineOf(value)}\n`);
}

/** In the words of MCP where they are used, else as JSON. */
function lineOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return safeLine(String(value));
  const { progress, total, message } = value as Record<string, unknown>;
  if (typeof progress !== "number") return safeLine(toSafeJson(value));
  const share = typeof total === "number" && total > 0 ? `${progress} of ${total}` : String(progress);
  return typeof message === "string" ? `${share}  ${safeLine(message)}` : share;
}
