import { CallError } from "../../core/errors/errors.ts";
import { randomId } from "../../core/execution/request-id.ts";
import type { ElicitAnswer, ElicitRequest } from "../../core/operation/caller-side.ts";
import { checkedAnswer, readElicitAnswer } from "../../mcp/server/caller-answers.ts";
import type { AnswerAsk, Question } from "../protocol.ts";
import { MOST_QUESTIONS } from "./inspector-limits.ts";

/** Whose question it is, and how it is put. */
export interface Asking {
  readonly requestId: string;
  /** The key of whoever made the call: nobody else may answer. */
  readonly caller: string | undefined;
  /** Aborts when the call is over. */
  readonly signal: AbortSignal;
  /** Puts the question to the page. */
  readonly tell: (key: string, question: Question) => void;
}

interface OpenQuestion {
  readonly asking: Asking;
  readonly request: ElicitRequest;
  readonly settle: (answer: ElicitAnswer) => void;
}

/** Questions of handlers that a person has not answered yet. */
export class OpenQuestions {
  readonly #open = new Map<string, OpenQuestion>();
  #isClosed = false;

  /** Asks, and waits for the answer; it is declined where the page leaves or too much is asked at a time. */
  ask(request: ElicitRequest, asking: Asking): Promise<ElicitAnswer> {
    const { requestId, signal, tell } = asking;
    const open = [...this.#open.values()].filter((one) => one.asking.requestId === requestId);
    if (this.#isClosed || signal.aborted || open.length >= MOST_QUESTIONS)
      return Promise.resolve({ action: "decline" });
    const key = randomId();
    return new Promise((resolve) => {
      const leave = (): void => settle({ action: "decline" });
      const settle = (answer: ElicitAnswer): void => {
        this.#open.delete(key);
        signal.removeEventListener("abort", leave);
        resolve(answer);
      };
      this.#open.set(key, { asking, request, settle });
      signal.addEventListener("abort", leave, { once: true });
      tell(key, toQuestion(request));
    });
  }

  /** Takes an answer; one that does not fit its form is a `VALIDATION_ERROR`, and the question stays open. */
  answer({ requestId, key, action, content }: AnswerAsk, caller: string | undefined): void {
    const found = this.#open.get(key);
    if (found === undefined || found.asking.requestId !== requestId || found.asking.caller !== caller) {
      throw new CallError("NOT_FOUND", "There is no such question; the call may have ended.", {
        stack: false,
      });
    }
    const answer = readElicitAnswer({ action, content });
    if (answer === undefined) {
      throw new CallError(
        "VALIDATION_ERROR",
        'An answer is "accept", "decline" or "cancel", with an object for what was filled in.',
        {
          stack: false,
        },
      );
    }
    found.settle(checkedAnswer(answer, found.request));
  }

  /** Declines what is asked now and later: no page can answer any more. */
  close(): void {
    this.#isClosed = true;
    for (const { settle } of [...this.#open.values()]) settle({ action: "decline" });
  }

  /** Declines what a call still asks. */
  leave(requestId: string): void {
    for (const { asking, settle } of [...this.#open.values()]) {
      if (asking.requestId === requestId) settle({ action: "decline" });
    }
  }
}

function toQuestion(request: ElicitRequest): Question {
  const { message } = request;
  return request.mode === "url"
    ? { mode: "url", message, url: request.url }
    : { mode: "form", message, schema: request.requestedSchema };
}
