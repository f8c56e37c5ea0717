import type { SourcePolicy } from "../policy/policy.ts";

/** Members under which hosts keep which tools of a server may be used, and for how long. */
export const HOST_POLICY_MEMBERS = [
  ...["enabled_tools", "includeTools", "allowedTools", "disabled_tools", "disabledTools", "excludeTools"],
  ...["tool_timeout_sec", "timeout"],
];

/** Characters that mean something in our patterns; hosts mean names. */
const PATTERN = /[*?{}[\]]/;

/**
 * Turns what a host says about the tools of a server into a policy of ours: a tool that was off stays off. `timeout` is milliseconds
 * where it is a thousand or more, as some hosts have it, else seconds.
 */
export function toHostPolicy(given: Readonly<Record<string, unknown>>): { readonly policy?: SourcePolicy } {
  const allow = namesOf(given["enabled_tools"] ?? given["includeTools"] ?? given["allowedTools"]);
  const deny = namesOf(given["disabled_tools"] ?? given["disabledTools"] ?? given["excludeTools"]);
  const timeoutMs = timeOf(given);
  const policy: SourcePolicy = {
    ...(allow !== undefined && { allow }),
    ...(deny !== undefined && deny.length > 0 && { deny }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
  return Object.keys(policy).length === 0 ? {} : { policy };
}

/** One host writes arguments behind the names of tools, in brackets. */
function namesOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const names = value.filter((name): name is string => typeof name === "string" && name !== "");
  return names.map((name) => name.replace(/\(.*$/s, "").replaceAll(new RegExp(PATTERN, "g"), "?"));
}

function timeOf({
  tool_timeout_sec: seconds,
  timeout,
}: Readonly<Record<string, unknown>>): number | undefined {
  if (typeof seconds === "number" && seconds > 0) return Math.round(seconds * 1_000);
  if (typeof timeout !== "number" || !(timeout > 0)) return undefined;
  return Math.round(timeout >= 1_000 ? timeout : timeout * 1_000);
}
