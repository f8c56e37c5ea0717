import { inspect, styleText } from "node:util";
import type { CallErrorJSON, ResponseEnvelope } from "../index.ts";
import type { Stop } from "./stops.ts";

/** What a stop came to: envelopes, or the one error instead of them. */
export type Answer =
  | { readonly outcome: "ok" | "tool error"; readonly envelopes: readonly ResponseEnvelope[] }
  | { readonly outcome: "call error"; readonly error: CallErrorJSON };

/** Where a stop stands in the tour. */
export interface Place {
  readonly number: number;
  readonly total: number;
}

type Style = Parameters<typeof styleText>[0];

const WIDTH = 100;
const LABEL = 12;
const OUTCOME_STYLES = { ok: "green", "tool error": "yellow", "call error": "red" } as const satisfies Record<
  Answer["outcome"],
  Style
>;

/** Writes one stop for people: the call, what came back, and why. */
export function showStop(stop: Stop, answer: Answer, place: Place, colors: boolean): string {
  const paint = (style: Style, text: string): string => (colors ? styleText(style, text) : text);
  const labelled = (label: string, value: unknown): string => row(label, show(value, colors));
  const lines = [
    `\n${paint("bold", `${place.number}/${place.total}  ${stop.title}`)}`,
    row("call", callText(stop)),
  ];
  const outcome = row("outcome", paint(OUTCOME_STYLES[answer.outcome], answer.outcome));
  if (answer.outcome === "call error") lines.push(outcome, labelled("error", answer.error));
  else
    lines.push(
      outcome,
      ...answer.envelopes.flatMap(({ data, meta }) => [labelled("data", data), labelled("meta", meta)]),
    );
  lines.push(row("why", wrap(stop.why)));
  return `${lines.join("\n")}\n`;
}

function callText({ method = "execute", operation, input, options }: Stop): string {
  const given = [show(operation, false), show(input, false), ...(options ? [show(options, false)] : [])];
  return `registry.${method}(${given.join(", ")})`;
}

function show(value: unknown, colors: boolean): string {
  return inspect(value, { depth: null, colors, breakLength: WIDTH - LABEL, compact: 3 });
}

function row(label: string, text: string): string {
  return `     ${label.padEnd(LABEL - 5)} ${text.replaceAll("\n", `\n${" ".repeat(LABEL + 1)}`)}`;
}

function wrap(text: string): string {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1] ?? "";
    if (last !== "" && last.length + word.length >= WIDTH - LABEL) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines.join("\n");
}
