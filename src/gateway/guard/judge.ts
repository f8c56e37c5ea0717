import { isPlainObject } from "../../core/json/json-value.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import type { Judge, Judgement, JudgeOptions } from "./result-guard.ts";

/** Bounds of what a judge answers. */
export const JUDGE_LIMITS = {
  /** Bytes of its answer. */
  bytes: 1_048_576,
  findings: 1_000,
  /** Characters of the name of a rule. */
  rule: 64,
} as const;

const DEFAULT_TIMEOUT_MS = 5_000;
const ACTIONS: readonly unknown[] = ["mark", "mask", "withhold"];

/**
 * Asks a service: `POST {"operation", "texts": [{"pointer", "text"}]}`, answered by `{"findings": [{"pointer", "rule", "action"}]}`. The
 * address comes from the config; redirects are not followed. Anything but such an answer in time is a failure.
 */
export function createJudge({ url, headers, timeoutMs = DEFAULT_TIMEOUT_MS }: JudgeOptions): Judge {
  return async (asked, signal) => {
    const ended = new AbortController();
    const end = (): void => ended.abort();
    const timer = setTimeout(end, timeoutMs);
    if (signal?.aborted) end();
    signal?.addEventListener("abort", end, { once: true });
    try {
      const response = await fetch(url, {
        method: "POST",
        redirect: "error",
        headers: { ...headers, "content-type": "application/json", accept: "application/json" },
        body: JSON.stringify(asked),
        signal: ended.signal,
      });
      const text = await readText(response);
      if (!response.ok) throw new Error(`The judge answered ${response.status}.`);
      return readJudgements(JSON.parse(text), new Set(asked.texts.map(({ pointer }) => pointer)));
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
    }
  };
}

async function readText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let [text, length] = ["", 0];
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > JUDGE_LIMITS.bytes) throw new Error("The judge's answer is too large.");
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** A finding at a place that was not asked about, or with an action that there is not, spoils the whole answer. */
function readJudgements(answer: unknown, places: ReadonlySet<string>): readonly Judgement[] {
  const findings = isPlainObject(answer) ? answer["findings"] : undefined;
  if (!Array.isArray(findings) || findings.length > JUDGE_LIMITS.findings) throw new Error(ODD_ANSWER);
  return findings.map((finding: unknown) => {
    const { pointer, rule, action } = isPlainObject(finding) ? finding : {};
    if (typeof pointer !== "string" || typeof rule !== "string" || !ACTIONS.includes(action)) {
      throw new Error(ODD_ANSWER);
    }
    if (!places.has(pointer)) throw new Error(ODD_ANSWER);
    return { pointer, rule: safeLine(rule, JUDGE_LIMITS.rule), action: action as Judgement["action"] };
  });
}

const ODD_ANSWER = "The judge's answer is not a list of findings at places it was asked about.";
