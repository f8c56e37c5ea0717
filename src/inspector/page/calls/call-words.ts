import type { CallRow, KeptReason } from "../../protocol.ts";
import type { Tone } from "../parts/controls.tsx";
import { showBytes, showCount, showMs } from "../parts/show.ts";

/** How a call ended. */
export type RowOutcome = NonNullable<CallRow["outcome"]> | "cancelled";

/** What is said of an outcome. */
export interface OutcomeWords {
  readonly word: string;
  readonly sign: string;
  readonly tone: Tone;
}

/** How calls stand, by what is filtered for; those that ended in the order they are stacked. */
export const OUTCOMES: Readonly<Record<RowOutcome | "running", OutcomeWords>> = {
  ok: { word: "ok", sign: "✓", tone: "ok" },
  tool_error: { word: "tool error", sign: "!", tone: "warn" },
  call_error: { word: "failed", sign: "✕", tone: "bad" },
  cancelled: { word: "cancelled", sign: "–", tone: "plain" },
  running: { word: "running", sign: "…", tone: "accent" },
};

/** Tells how a call stands; one that its caller gave up did not fail, and a tool may call its own errors so. */
export function standingOf({ outcome, code }: CallRow): RowOutcome | "running" {
  return code === "ABORTED" && outcome !== "tool_error" ? "cancelled" : (outcome ?? "running");
}

/** Names of the transports that calls come over, by what is filtered for; `none` is a call that a module made by itself. */
export const ENTRIES: Readonly<Record<NonNullable<CallRow["entry"]> | "none", string>> = {
  mcp: "MCP",
  http: "HTTP",
  bus: "Bus",
  stdio: "stdio",
  cli: "CLI",
  inspect: "Inspector",
  none: "Module",
};

/** Notes what was special about a call, in a word or two each. */
export function notesOf({ cached, shared, repeated, attempts = 1, waitedMs, values, type }: CallRow): string {
  return [
    cached && "cached",
    shared && "shared",
    repeated && "repeated",
    attempts > 1 && `tried ${attempts}×`,
    waitedMs && `waited ${showMs(waitedMs)}`,
    type === "subscription" && values !== undefined && showCount(values, "value"),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Says how large the input and the result are: `0.1 KB → 4.2 KB`. */
export function sizesOf({ inputSize, resultSize }: CallRow): string {
  if (inputSize === undefined && resultSize === undefined) return "";
  return `${inputSize === undefined ? "–" : showBytes(inputSize)} → ${resultSize === undefined ? "–" : showBytes(resultSize)}`;
}

/** Says how long a call took, or runs already. */
export function timeOf({ durationMs, startedAt }: CallRow, now: number): string {
  return showMs(durationMs ?? Math.max(0, now - startedAt));
}

/** Why a value is not there. */
export const OMITTED: Readonly<Record<KeptReason, string>> = {
  "too-long": "Too long to be kept. Run the call again to see it.",
  forgotten: "Not kept any more. Run the call again to see it.",
  "not-json": "Not JSON, so it cannot be shown.",
  none: "There is none.",
};
