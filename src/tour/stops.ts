import type { ExecuteOptions } from "../index.ts";

/** One call of the tour: what is asked, and why the answer looks as it does. */
export interface Stop {
  readonly title: string;
  /** @default "execute" */
  readonly method?: "execute" | "subscribe";
  readonly operation: string;
  readonly input: unknown;
  readonly options?: ExecuteOptions;
  /** What to take away from it. */
  readonly why: string;
}

/** The tour, in order: every outcome a call can have. */
export const STOPS: readonly Stop[] = [
  {
    title: "A result, and the paper that travels with it",
    operation: "parcel.quote",
    input: { kg: 2.5, to: "Lisbon" },
    why: "The handler returned a plain object. The registry checked the input, filled its declared default (express: false), checked the result, and wrapped it: data is what you asked for, meta says where it came from.",
  },
  {
    title: "A sloppy result, brought to its declared shape",
    operation: "parcel.find",
    input: { id: "P-7" },
    why: 'The archive answered { id: "P-7", kg: "2.5", to: "Lisbon", internalNote: … }. What the output schema does not name was stripped, text that is a number was converted, a declared default was filled. Nothing is invented, and meta.waybill.normalization names every change.',
  },
  {
    title: "A tool error: it ran, and said no",
    operation: "parcel.cancel",
    input: { id: "P-7" },
    why: "The handler returned toolError(…). That is an answer, so it comes back as an envelope, marked isError, with a code for programs and a sentence for people. The typed client of createClient() throws it instead, envelope attached.",
  },
  {
    title: "A call error: the input is wrong",
    operation: "parcel.quote",
    input: { kg: "heavy", to: "" },
    why: "The handler never ran. The error says where (a JSON pointer), what was expected and what was found; correctable means that the caller can fix it.",
  },
  {
    title: "A call error: the caller may not",
    operation: "parcel.refund",
    input: { id: 7 },
    options: { identity: { subject: "ada", scopes: ["parcels:read"] } },
    why: "Access is decided before the input is looked at: the id is wrong too, and nobody learns that without the scope.",
  },
  {
    title: "A call error: as far as you can see, there is no such operation",
    operation: "parcel.audit",
    input: {},
    why: "parcel.audit exists, for other operations only. Calling it and listing the registry agree that it does not.",
  },
  {
    title: "A call error: it took too long",
    operation: "parcel.weigh",
    input: {},
    options: { timeoutMs: 50 },
    why: "The deadline reached the handler through its AbortSignal, and would have reached every call that handler had made. Retryable means that the same input may work later.",
  },
  {
    title: "A subscription: one envelope for each value",
    method: "subscribe",
    operation: "parcel.follow",
    input: { id: "P-7" },
    why: "Each value is checked and wrapped like any other result, and numbered, so that a gap would show.",
  },
];
