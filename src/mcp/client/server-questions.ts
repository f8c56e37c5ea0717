import { addAbortListener } from "../../core/execution/abort-listeners.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import { answerQuestion, QuestionRefused, REFUSALS } from "./caller-questions.ts";
import { CallersInFlight, type Leave } from "./callers-in-flight.ts";
import type { McpLimits } from "./mcp-limits.ts";

type Params = Readonly<Record<string, unknown>>;

/** What the questions of one connection need. */
export interface ServerQuestionsOptions {
  readonly roots: readonly { readonly uri: string; readonly name?: string }[];
  readonly limits: McpLimits;
}

/** A question that waits for its answer. */
interface OpenQuestion {
  readonly stop: AbortController;
  /** Who was asked; nobody for what is answered without asking. */
  readonly caller: CallerSide | undefined;
}

/** Why a question ended whose server still waits for a reply. */
class CallerLeft extends Error {
  override readonly name = "CallerLeft";
}

/** The questions that servers of the 2025 revisions ask in requests of their own, which do not say whose call they belong to. */
export class ServerQuestions {
  readonly #options: ServerQuestionsOptions;
  readonly #callers = new CallersInFlight();
  readonly #open = new Set<OpenQuestion>();

  constructor(options: ServerQuestionsOptions) {
    this.#options = options;
  }

  /** Counts a call in, and returns how to count it out; with a caller's last one, its open questions end as cancelled. */
  enter(method: string, caller: CallerSide | undefined): Leave {
    const leave = this.#callers.enter(method, caller);
    return (givenUpAs) => {
      leave(givenUpAs);
      if (caller !== undefined && !this.#callers.isRunning(caller)) this.#endFor(caller);
    };
  }

  /** The answer came to a call that was given up. */
  answered(id: number): void {
    this.#callers.answered(id);
  }

  /** A call that was given up goes on. */
  progressed(id: number): void {
    this.#callers.progressed(id);
  }

  /** Answers a question; rejects with a `QuestionRefused`. The signal aborts when the server does not want to know any more. */
  async answer(method: string, params: Params | undefined, signal: AbortSignal): Promise<Params> {
    const { roots, limits } = this.#options;
    if (this.#open.size >= limits.openQuestions) {
      throw new QuestionRefused(REFUSALS.failed, `More than ${limits.openQuestions} questions are open.`);
    }
    const caller = method === "roots/list" ? undefined : this.#whom();
    const stop = new AbortController();
    const open: OpenQuestion = { stop, caller };
    const onAbort = (): void => stop.abort(new Error("The server withdrew its question."));
    addAbortListener(signal, { onAbort });
    this.#open.add(open);
    const question = { method, params, caller, roots, maxLength: limits.questionLength, signal: stop.signal };
    const answered = await answerQuestion(question).then(
      (answer) => () => answer,
      (refusal: unknown) => () => {
        throw refusal;
      },
    );
    this.#open.delete(open);
    return stop.signal.reason instanceof CallerLeft ? replyOfNobody(method) : answered();
  }

  /** A server that gets no reply would go on with a call that nobody waits for. */
  #endFor(caller: CallerSide): void {
    for (const open of [...this.#open]) {
      if (open.caller === caller) open.stop.abort(new CallerLeft("Whoever made the call has left."));
    }
  }

  #whom(): CallerSide | undefined {
    const found = this.#callers.find();
    switch (found.kind) {
      case "one":
        return found.caller;
      case "none":
        throw new QuestionRefused(REFUSALS.unable, "No call is running that this could be asked for.");
      case "several":
        throw new QuestionRefused(REFUSALS.unclear, describeDoubt(found.waitMs));
    }
  }
}

/** Why it cannot be told whom to ask, and what helps. */
function describeDoubt(waitMs: number | undefined): string {
  const [why, then] =
    waitMs === undefined
      ? ["Calls of several callers are running", "Try again when the others have ended."]
      : [
          "A call of another caller was given up unanswered and may still run",
          `Wait ${Math.ceil(waitMs / 1_000)} s, or reconnect the source.`,
        ];
  return `${why}: it cannot be told whose question this is. ${then}`;
}

/** What a server is told for somebody who has left. */
function replyOfNobody(method: string): Params {
  if (method === "elicitation/create") return { action: "cancel" };
  throw new QuestionRefused(REFUSALS.left, "Whoever made the call has left.");
}
