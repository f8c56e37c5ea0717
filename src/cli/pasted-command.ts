import type { Io } from "./io.ts";
import { sourceWords } from "./list/source-words.ts";
import type { SourceFlags } from "./session.ts";
import { spelledCommand } from "./spelled-command.ts";

/** Writes a command of Waybill as it can be pasted: `lock files` for `npx waybill lock files --config other.json`. */
export type PastedCommand = (words: string) => string;

/** Makes what writes commands so that they are about the same sources. */
export function createPastedCommand(io: Io, flags: SourceFlags): PastedCommand {
  const command = spelledCommand(io);
  const end = sourceWords(flags);
  return (words) => [command, words, end].filter((part) => part !== "").join(" ");
}
