import { safeLine } from "../../core/text/safe-text.ts";
import { readGivenFile, textOfBytes } from "../call/given-file.ts";
import { readStdin } from "../call/read-stdin.ts";
import { CommandError, type Io } from "../io.ts";
import { spelledCommand } from "../spelled-command.ts";

/** A text that was given, and what to call it in messages. */
export interface GivenText {
  readonly text: string;
  readonly what: string;
}

/** Reads the file that was named, or stdin: `-`, or no file. A terminal is not waited for unless `-` asks for it. */
export async function readGiven(io: Io, file: string | undefined, command: string): Promise<GivenText> {
  if (file !== undefined && file !== "-") {
    const what = `The file "${safeLine(file, 200)}"`;
    return { text: withoutMark(textOfBytes(await readGivenFile(file, io.cwd), what)), what };
  }
  if (file === undefined && io.stdin.isTTY) {
    throw new CommandError(
      `There is nothing to read: name a file ("${spelledCommand(io)} ${command} result.json"), pipe something in, or say "-" to type it.`,
    );
  }
  return { text: withoutMark(await readStdin(io)), what: "The input on stdin" };
}

/** Some editors begin a file with a mark that JSON does not know. */
function withoutMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}
