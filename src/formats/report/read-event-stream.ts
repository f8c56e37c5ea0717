import { parseJsonTextOrNone } from "../../core/json/json-text.ts";

/** What one event of a stream holds. */
export interface StreamMessage {
  /** The line its data begins in. */
  readonly line: number;
  /** Its data, read; nothing where that is no JSON. */
  readonly value: unknown;
}

interface DataLine {
  readonly line: number;
  readonly text: string;
}

const START = /^(?:(?:event|data|id|retry)?:|(?:event|data|id|retry)(?:[\r\n]|$))/;
const DATA = /^data:/m;

/**
 * Reads a text as a stream of events; nothing where it does not look like one. Copies often lack the empty line at the end, or those
 * between events: what is read here is a copy, so both are made up for.
 */
export function readEventStream(text: string): readonly StreamMessage[] | undefined {
  if (!START.test(text) || !DATA.test(text)) return undefined;
  const messages: StreamMessage[] = [];
  let data: DataLine[] = [];
  const end = (): void => {
    if (data.some((line) => line.text !== "")) addMessages(data, messages);
    data = [];
  };
  for (const [at, line] of text.split(/\r\n|\r|\n/).entries()) {
    if (line === "") end();
    else if (line.startsWith("data:")) data.push({ line: at + 1, text: line.slice(5).replace(/^ /, "") });
  }
  end();
  return messages;
}

function addMessages(data: readonly DataLine[], messages: StreamMessage[]): void {
  const [first] = data;
  if (first === undefined) return;
  const value = parseJsonTextOrNone(data.map(({ text }) => text).join("\n"));
  const alone = value === undefined && data.length > 1 ? readEach(data) : undefined;
  if (alone === undefined) messages.push({ line: first.line, value });
  else for (const message of alone) messages.push(message);
}

/** Events without empty lines between them: each line must be JSON by itself. */
function readEach(data: readonly DataLine[]): readonly StreamMessage[] | undefined {
  const messages: StreamMessage[] = [];
  for (const { line, text } of data) {
    const value = parseJsonTextOrNone(text);
    if (value === undefined) return undefined;
    messages.push({ line, value });
  }
  return messages;
}
