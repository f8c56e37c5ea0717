import { isCallError } from "../../core/errors/errors.ts";
import { SourceFault } from "./source-fault.ts";

/** What is looked for in a reason, and what is said of it; nothing else of the reason is. */
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/\bexited with code (\d{1,10})\b/, "its process exited with code $1."],
  [/\bwas ended by (SIG[A-Z]{1,10})\b/, "its process was ended by $1."],
  [/\bCannot start\b|\(ENOENT\)/, "its program cannot be started."],
  [/\bHTTP status (\d{3})\b|\banswered (\d{3})\b/, "it answered with HTTP status $1$2."],
  [/CERT|certificate|\bTLS\b|\bSSL\b|EPROTO/, "its certificate is not trusted."],
  [/private or reserved address/, "its address is private, and not allowed."],
  [/in time\b|did not answer within|timed? ?out|TIMEDOUT/i, "it did not answer in time."],
  [/refused the credentials|wants an authorization/, "it refused the gateway's credentials."],
  [
    /cannot be reached|ECONN|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|nothing listens|connection/i,
    "it cannot be reached.",
  ],
];

const REFUSALS: ReadonlySet<string> = new Set(["UNAUTHENTICATED", "ACCESS_DENIED"]);

/**
 * Says why a source is down to those who call it: one of a few sentences of our own. What a process wrote before it ended, what a server
 * answered, and what stands in the config are for whoever runs the gateway.
 */
export function toCause(thrown: unknown): string {
  if (thrown instanceof SourceFault) return "it cannot work as it is configured.";
  if (isCallError(thrown) && REFUSALS.has(thrown.code)) return "it refused the gateway's credentials.";
  const text = (thrown instanceof Error ? thrown.message : String(thrown)).slice(0, 10_000);
  // What the process itself said comes last, and says nothing about how it ended.
  const own = text.split("; it last said:", 1)[0] as string;
  for (const [pattern, said] of CAUSES) {
    const found = pattern.exec(own);
    if (found !== null) return said.replace(/\$([12])/g, (_, group) => found[Number(group)] ?? "");
  }
  return isCallError(thrown) && thrown.code === "TIMEOUT"
    ? "it did not answer in time."
    : "it cannot be used.";
}
