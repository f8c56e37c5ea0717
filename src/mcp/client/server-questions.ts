import type { CallerSide } from "../../core/operation/caller-side.ts";
import { answerQuestion, isQuestion, QuestionRefused, REFUSALS } from "./caller-questions.ts";
import { CallersInFlight, type Leave } from "./callers-in-flight.ts";
import type { McpLimits } from "./mcp-limits.ts";

type Id = number | string;
type Params = Readonly<Record<string, unknown>>;

/** What the questions of one connection need. */
export interface ServerQuestionsOptions {
  readonly roots: readonly { readonly uri: string; readonly name?: string }[];
  readonly limits: McpLimits;
  /** Sends an answer to the server. */
  readonly send: (message: Params) => Promise<void>;
}

/** The questions that servers of the 2025 revisions ask in requests of their own, which do not say whose call they belong to. */
export class ServerQuestions {
  readonly #options: ServerQuestionsOptions;
  readonly #callers = new CallersInFlight();
  readonly #open = new Map<Id, AbortController>();

  constructor(options: ServerQuestionsOptions) {
    this.#options = options;
  }

  /** Counts a call in, and returns how to count it out; with the last one, open questions have nobody to answer to. */
  enter(method: string, caller: CallerSide | undefined): Leave {
    const leave = this.#callers.enter(method, caller);
    return (givenUpAs) => {
      leave(givenUpAs);
      if (this.#open.size > 0 && this.#callers.find().kind === "none") this.cancelAll();
    };
  }

  /** The answer came to a call that was given up. */
  answered(id: Id): void {
    this.#callers.answered(id);
  }

  /** Takes a question and answers it in its own time; false if it is none. */
  take(id: Id, method: string, params: Params | undefined): boolean {
    if (!isQuestion(method)) return false;
    void this.#answer(id, method, params);
    return true;
  }

  /** The server does not want to know any more. */
  cancel(id: Id): void {
    this.#open.get(id)?.abort(new Error("The server withdrew its question."));
    this.#open.delete(id);
  }

  cancelAll(): void {
    for (const id of [...this.#open.keys()]) this.cancel(id);
  }

  async #answer(id: Id, method: string, params: Params | undefined): Promise<void> {
    const stop = new AbortController();
    const { roots, limits, send } = this.#options;
    let reply: Params;
    try {
      if (this.#open.has(id)) throw new QuestionRefused(-32600, "A question with this id is already open.");
      if (this.#open.size >= limits.openQuestions) {
        throw new QuestionRefused(REFUSALS.failed, `More than ${limits.openQuestions} questions are open.`);
      }
      this.#open.set(id, stop);
      const caller = method === "roots/list" ? undefined : this.#whom();
      const maxLength = limits.questionLength;
      reply = {
        result: await answerQuestion({ method, params, caller, roots, maxLength, signal: stop.signal }),
      };
    } catch (error) {
      reply = { error: toRefusal(error) };
    }
    if (this.#open.get(id) === stop) this.#open.delete(id);
    if (stop.signal.aborted) return;
    await send({ jsonrpc: "2.0", id, ...reply }).catch(() => {});
  }

  #whom(): CallerSide | undefined {
    const found = this.#callers.find();
    switch (found.kind) {
      case "one":
        return found.caller;
      case "none":
        throw new QuestionRefused(REFUSALS.unable, "No call is running that this could be asked for.");
      case "several":
        throw new QuestionRefused(
          REFUSALS.unclear,
          "Calls of several callers are running, or were given up unanswered: it cannot be told whose question this is.",
        );
    }
  }
}

function toRefusal(error: unknown): { code: number; message: string } {
  if (error instanceof QuestionRefused) return { code: error.code, message: error.message };
  return { code: REFUSALS.failed, message: "The question could not be answered." };
}
