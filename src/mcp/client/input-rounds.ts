import { CallError } from "../../core/errors/errors.ts";
import { isPlainObject, setOwn } from "../../core/json/json-value.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import { answerQuestion, isQuestion } from "./caller-questions.ts";
import type { McpLimits } from "./mcp-limits.ts";
import { toPlainLine } from "./plain-line.ts";
import type { AskedOfServer } from "./rpc-error.ts";

type Result = Readonly<Record<string, unknown>>;

/** Who answers the questions of one request. */
export interface InputSide {
  readonly asked: AskedOfServer;
  readonly caller: CallerSide | undefined;
  readonly roots: readonly { readonly uri: string; readonly name?: string }[];
  readonly limits: McpLimits;
  readonly signal: AbortSignal;
}

/** Tells a result that asks for more from a final one (2026-07-28); a kind that is not known is an error. */
export function wantsInput(result: Result, asked: AskedOfServer): boolean {
  const kind = result["resultType"];
  if (kind === "input_required") return true;
  if (kind === undefined || kind === "complete") return false;
  throw new CallError(
    "EXECUTION_ERROR",
    `${asked.server} answered ${asked.method} with an unknown kind of result.`,
    {
      details: { resultType: toPlainLine(kind, 100) },
    },
  );
}

/** Answers all questions of a round and gives what the request is sent again with. */
export async function answerRound(result: Result, side: InputSide): Promise<Result> {
  const requests = result["inputRequests"];
  const state = result["requestState"];
  const questions = isPlainObject(requests) ? Object.entries(requests) : [];
  if (questions.length === 0 && typeof state !== "string")
    throw refuse(side, "asks for input and names none");
  if (questions.length > side.limits.questions) {
    throw refuse(side, `asks more than ${side.limits.questions} questions at once`);
  }
  const responses: Record<string, unknown> = {};
  for (const [key, question] of questions) setOwn(responses, key, await answerOne(question, side));
  return {
    ...(questions.length === 0 ? {} : { inputResponses: responses }),
    ...(typeof state === "string" ? { requestState: state } : {}),
  };
}

async function answerOne(question: unknown, side: InputSide): Promise<Result> {
  const { method, params } = isPlainObject(question) ? question : {};
  if (typeof method !== "string" || !isQuestion(method)) throw refuse(side, "asks what is no question");
  const { caller, roots, limits, signal } = side;
  try {
    return await answerQuestion({
      method,
      params: isPlainObject(params) ? params : undefined,
      caller,
      roots,
      maxLength: limits.questionLength,
      signal,
    });
  } catch (cause) {
    throw refuse(side, `asks ${method}, which has no answer`, cause);
  }
}

function refuse({ asked }: InputSide, what: string, cause?: unknown): CallError {
  return new CallError("EXECUTION_ERROR", `${asked.server} ${what} while it runs ${asked.method}.`, {
    cause,
  });
}
