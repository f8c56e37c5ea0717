import { safeLine } from "../../core/text/safe-text.ts";
import { CommandError, EXIT } from "../io.ts";

/** Where a gateway listens unless it is told otherwise. */
export { DEFAULT_PORT } from "../../gateway/serve/serve-settings.ts";

/** How many ports are tried after the first. */
export const PORTS_TRIED = 20;

/** What is wrong with where to listen, in words for people. */
export function listenError(
  thrown: unknown,
  host = "127.0.0.1",
  port = 0,
): { readonly isInUse: boolean; readonly thrown: unknown } {
  const code = codeOf(thrown);
  const words = messageFor(code, safeLine(host, 100), port);
  if (words === undefined) return { isInUse: false, thrown };
  return { isInUse: code === "EADDRINUSE", thrown: new CommandError(words, EXIT.usage, { cause: thrown }) };
}

function messageFor(code: unknown, host: string, port: number): string | undefined {
  switch (code) {
    case "EADDRINUSE":
      return `Port ${port} is in use; give another one with --port (0 for a free one), or end what listens there.`;
    case "EACCES":
      return `Port ${port} may not be listened on; give one above 1023 with --port.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `"${host}" is no address of this machine; give one with --host, such as 127.0.0.1.`;
    default:
      return undefined;
  }
}

function codeOf(thrown: unknown): unknown {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    const { code } = error as NodeJS.ErrnoException;
    if (typeof code === "string") return code;
  }
  return undefined;
}
