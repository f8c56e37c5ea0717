import { isPlainObject } from "../../core/json/json-value.ts";
import type { FoundResult } from "./found-result.ts";
import type { StreamMessage } from "./read-event-stream.ts";
import { ResultTextError } from "./result-text-error.ts";

/** Finds the last result in a stream of events, as servers of MCP answer; what else is in the stream is told in notes. */
export function fromEventStream(
  messages: readonly StreamMessage[],
  what: string,
  read: (value: unknown) => readonly FoundResult[],
): readonly FoundResult[] {
  const unread = messages.filter(({ value }) => value === undefined);
  const all = messages.flatMap(split);
  const answers = all.filter(({ value }) => isAnswer(value));
  const last = lastResult(answers, read);
  if (last === undefined) throw noAnswer(all, unread, what);
  const notes = notesOf({ answers, unread, others: all.length - answers.length - unread.length }, last.line);
  return last.found.map((found) => ({
    ...found,
    wrapping: "event-stream",
    notes: [...notes, ...(found.notes ?? [])],
  }));
}

/** One event may hold several messages. */
function split(message: StreamMessage): readonly StreamMessage[] {
  const { value, line } = message;
  return Array.isArray(value) ? value.map((one) => ({ value: one, line })) : [message];
}

/** A request or notice has a method; what else is an object may be an answer. */
function isAnswer(value: unknown): boolean {
  return isPlainObject(value) && !Object.hasOwn(value, "method");
}

interface LastResult {
  readonly line: number;
  readonly found: readonly FoundResult[];
}

/** Other answers, such as that to a handshake, hold no result: what is wrong with the last one is told where none does. */
function lastResult(
  answers: readonly StreamMessage[],
  read: (value: unknown) => readonly FoundResult[],
): LastResult | undefined {
  let refusal: ResultTextError | undefined;
  for (const { value, line } of answers.toReversed()) {
    try {
      return { line, found: read(value) };
    } catch (thrown) {
      if (!(thrown instanceof ResultTextError)) throw thrown;
      refusal ??= thrown;
    }
  }
  if (refusal !== undefined) throw refusal;
  return undefined;
}

function noAnswer(
  all: readonly StreamMessage[],
  [unread]: readonly StreamMessage[],
  what: string,
): ResultTextError {
  const why =
    unread === undefined
      ? `none of its ${all.length} messages is an answer`
      : `line ${unread.line} is no JSON`;
  return new ResultTextError(`${what} is a stream of events without a tool result: ${why}.`);
}

interface Seen {
  readonly answers: readonly StreamMessage[];
  readonly unread: readonly StreamMessage[];
  readonly others: number;
}

function notesOf({ answers, unread, others }: Seen, line: number): readonly string[] {
  const [first] = unread;
  const count = answers.length;
  return [
    count === 1
      ? `Taken out of a stream of events, line ${line}.`
      : `Taken out of a stream of events with ${count} answers: this is the last result, in line ${line}.`,
    ...(others > 0 ? [`Left out of it: ${counted(others, "other message")}.`] : []),
    ...(first === undefined
      ? []
      : [
          `${counted(unread.length, "event")} in it cannot be read as JSON, the first in line ${first.line}.`,
        ]),
  ];
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
