import type { ResultReport } from "./describe-result.ts";
import { type FoundFailure, placeOf } from "./found-result.ts";
import { hiddenIn } from "./hidden-in-result.ts";

type Told = Pick<ResultReport, "data" | "obtained"> & { readonly error: NonNullable<ResultReport["error"]> };

/** Tells of what stands in place of a result, in the words of whoever wrote it. */
export function describeFailure(found: FoundFailure): ResultReport {
  const told = READERS[found.failure](found.error);
  const { message: text } = told.error;
  const { data } = told;
  return {
    format: found.failure,
    isError: true,
    ...told,
    text,
    odd: hiddenIn({ text, data }),
    ...placeOf(found),
  };
}

const UNTOLD = "The server gave no reason.";

const READERS: Readonly<Record<FoundFailure["failure"], (error: FoundFailure["error"]) => Told>> = {
  "json-rpc-error": ({ code, message, data }) => ({
    error: {
      message: typeof message === "string" ? message : UNTOLD,
      ...(code !== undefined && { code: String(code) }),
      ...(data !== undefined && { details: data }),
    },
  }),
  problem: (problem) => ({
    error: { message: reasonOf(problem), ...codeOf(problem) },
    data: problem,
    obtained: "body",
  }),
  "call-error": ({ code, message, details, retryable, correctable }) => ({
    error: {
      message: typeof message === "string" ? message : UNTOLD,
      ...(typeof code === "string" && { code }),
      ...(details !== undefined && { details }),
      ...(typeof retryable === "boolean" && { retryable }),
      ...(typeof correctable === "boolean" && { correctable }),
    },
  }),
};

function reasonOf({ title, detail }: FoundFailure["error"]): string {
  const told = [title, detail].filter((text) => typeof text === "string" && text !== "");
  return told.length === 0 ? UNTOLD : [...new Set(told)].join(": ");
}

/** The code that some add, or the status. */
function codeOf({ code, status }: FoundFailure["error"]): { readonly code?: string } {
  if (typeof code === "string") return { code };
  return typeof status === "number" ? { code: String(status) } : {};
}
