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
  readonly #open = new Map<Id, OpenQuestion>();

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
  answered(id: Id): void {
    this.#callers.answered(id);
  }

  /** A call that was given up goes on. */
  progressed(id: Id): void {
    this.#callers.progressed(id);
  }

  /** Takes a question and answers it in its own time; false if it is none. */
  take(id: Id, method: string, params: Params | undefined): boolean {
    if (!isQuestion(method)) return false;
    void this.#answer(id, method, params);
    return true;
  }

  /** The server does not want to know any more. */
  cancel(id: Id): void {
    this.#open.get(id)?.stop.abort(new Error("The server withdrew its question."));
    this.#open.delete(id);
  }

  cancelAll(): void {
    for (const id of [...this.#open.keys()]) this.cancel(id);
  }

  /** A server that gets no reply would go on with a call that nobody waits for. */
  #endFor(caller: CallerSide): void {
    for (const [id, open] of [...this.#open]) {
      if (open.caller !== caller) continue;
      this.#open.delete(id);
      open.stop.abort(new CallerLeft("Whoever made the call has left."));
    }
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
      const caller = method === "roots/list" ? undefined : this.#whom();
      this.#open.set(id, { stop, caller });
      const maxLength = limits.questionLength;
      reply = {
        result: await answerQuestion({ method, params, caller, roots, maxLength, signal: stop.signal }),
      };
    } catch (error) {
      reply = { error: toRefusal(error) };
    }
    if (this.#open.get(id)?.stop === stop) this.#open.delete(id);
    if (stop.signal.reason instanceof CallerLeft) reply = replyOfNobody(method);
    else if (stop.signal.aborted) return;
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
  if (method === "elicitation/create") return { result: { action: "cancel" } };
  return { error: { code: REFUSALS.left, message: "Whoever made the call has left." } };
}

function toRefusal(error: unknown): { code: number; message: string } {
  if (error instanceof QuestionRefused) return { code: error.code, message: error.message };
  return { code: REFUSALS.failed, message: "The question could not be answered." };
}
