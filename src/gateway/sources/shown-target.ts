import { parseUrl } from "../../core/text/parse-url.ts";
import type { McpServerConfig } from "../config/gateway-config.ts";

const SECRET_FLAG = /^--?[\w-]*(?:token|key|secret|passw|pwd|auth|credential|bearer)[\w-]*$/i;
const SECRET_ASSIGNMENT =
  /^(-{0,2}[\w-]*(?:token|key|secret|passw|pwd|auth|credential|bearer)[\w-]*[=:]).+$/is;
const CREDENTIALS_IN_URL = /(:\/\/)[^/\s@]+@/g;
/** Long, without spaces or dots, with letters and digits: more likely a key than a name. */
const OPAQUE = /^(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_+=-]{32,}$/;

/** Shows what a server is started or reached with: what looks like a secret is left out, known secrets are masked by others. */
export function describeServer({ command, args = [], url }: McpServerConfig): string {
  if (command !== undefined) return [command, ...withoutSecrets(args)].join(" ");
  return url === undefined ? "" : describeAddress(url);
}

/** Shows an address without user, password, query and fragment; a path as it is. */
export function describeAddress(address: string): string {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(address) || parseUrl(address) === undefined) return address;
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname === "/" ? "" : pathname}`;
}

function withoutSecrets(args: readonly string[]): string[] {
  return args.map((arg, at) => {
    const before = args[at - 1];
    if (before !== undefined && SECRET_FLAG.test(before) && !arg.startsWith("-")) return "***";
    if (OPAQUE.test(arg)) return "***";
    return arg.replace(SECRET_ASSIGNMENT, "$1***").replace(CREDENTIALS_IN_URL, "$1***@");
  });
}
