import { safeLine } from "../core/text/safe-text.ts";
import type { Io } from "./io.ts";
import { spelledCommand } from "./spelled-command.ts";

/** Says in our words what commander found wrong with the arguments. */
export function describeUsageMistake(
  io: Io,
  { code, message }: { readonly code: string; readonly message: string },
  command: string | undefined,
): string {
  const [first = "", hint = ""] = message.replace(/^error: /, "").split("\n");
  const quoted = /'([^']*)'/.exec(first)?.[1] ?? "";
  const see = `"${spelledCommand(io)} ${command === undefined ? "" : `${command} `}--help" tells more.`;
  // Every letter is near every other.
  const near = quoted.length > 2 ? /Did you mean (.*?)\?/.exec(hint)?.[1] : undefined;
  switch (code) {
    case "commander.unknownOption":
      return `there is no option ${safeLine(quoted, 80)}; ${near === undefined ? see : `did you mean ${near}?`}`;
    case "commander.missingArgument":
      return `"${command}" needs <${quoted}>; ${see}`;
    case "commander.missingMandatoryOptionValue":
      return `"${command}" needs ${quoted}; ${see}`;
    case "commander.optionMissingArgument":
      return `${quoted} needs a value; ${see}`;
    case "commander.excessArguments":
      return `"${command}" takes fewer arguments; ${see}`;
    default:
      return `${safeLine(first, 300).replace(/\.$/, "")}; ${see}`;
  }
}
