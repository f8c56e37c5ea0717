import { useEffect, useRef } from "preact/hooks";
import type { BusTraffic, SourcesAnswer, SourceView } from "../../protocol.ts";
import { type Asked, useAsked, useRevision, useSession } from "../page-session.ts";
import type { Tone } from "../parts/controls.tsx";
import { showCount, showFor } from "../parts/show.ts";

type State = SourceView["state"];

/** Which way calls on the bus go. */
export const BUS_END_WORDS: Readonly<Record<BusTraffic["end"], string>> = {
  caller: "Calls to others",
  handler: "Calls from others",
};

/** What kind of place operations come from. */
export const KIND_WORDS: Readonly<Record<SourceView["kind"], string>> = {
  local: "This process",
  mcp: "MCP server",
  openapi: "OpenAPI document",
  bus: "Call bus",
};

/** Of each state its colour, its sign and what it means. */
export const STATES: Readonly<Record<State["status"], readonly [tone: Tone, sign: string, words: string]>> = {
  up: ["ok", "●", ""],
  down: ["bad", "▲", ""],
  connecting: ["accent", "○", "it has not answered yet"],
  disabled: ["plain", "–", "the config turns it off"],
  closed: ["plain", "–", "the gateway has let go of it"],
};

/** Says how many sources are which way, and how many operations there are. */
export function summaryOf(sources: readonly SourceView[]): string {
  const count = (status: string): number => sources.filter(({ state }) => state.status === status).length;
  const others = Object.keys(STATES)
    .slice(1)
    .flatMap((status) => (count(status) > 0 ? `${count(status)} ${status}` : []));
  const operations = sources.reduce((sum, source) => sum + source.operations, 0);
  return [`${count("up")} of ${sources.length} up`, ...others, showCount(operations, "operation")].join(
    " · ",
  );
}

/** Says how a state is at a moment, beyond its word. */
export function stateWords(state: State, now: number): string {
  if (!("since" in state)) return STATES[state.status][2];
  const lasts = `for ${showFor(now - state.since)}`;
  if (state.status === "up" || state.retryAt === undefined) return lasts;
  const left = state.retryAt - now;
  return `${lasts}, ${left > 0 ? `tries again in ${showFor(left)}` : "trying again now"}`;
}

/** What the button of a source says; nothing where there is nothing to try. */
export function retryWord({ kind, state: { status } }: SourceView): string | undefined {
  if (status === "disabled" || status === "closed") return undefined;
  if (status !== "up") return "Try now";
  if (kind === "mcp") return "Restart";
  return kind === "bus" ? "Reconnect" : "Load again";
}

/** How many calls failed, and what share of them: `3 (2.5%)`. */
export function errorWords({ count, errors }: SourceView["calls"]): string {
  const share = (errors / count).toLocaleString("en", { style: "percent", maximumFractionDigits: 1 });
  return errors === 0 ? "0" : `${errors.toLocaleString("en")} (${share})`;
}

/** How often they are asked for again: latencies change, and tools are approved elsewhere. */
const AGAIN_MS = 5_000;

/** The sources: asked for again when they change, and now and then while they are looked at. */
export function useSources(): Asked<SourcesAnswer> {
  const { api } = useSession();
  const revision = useRevision("sources");
  const asked = useAsked((signal) => api.sources(signal), [api, revision]);
  const again = useRef(asked.again);
  again.current = asked.again;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) again.current();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  return asked;
}
