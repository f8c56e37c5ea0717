import { cleanText } from "../../core/text/clean-text.ts";
import { parseUrl } from "../../core/text/parse-url.ts";

const LOOPBACK = /^(?:(?:[^.]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * Tells whether an address is safe to show to a person who is to open it: `https`, or `http` on this machine, nothing before the
 * host that could be taken for one, and no character that hides something or that parsers drop.
 */
export function isWebAddress(url: string): boolean {
  if (parseUrl(url) === undefined || /[\s\\]/.test(url)) return false;
  const cleaned = cleanText(url);
  if (cleaned.findings.length > 0 || cleaned.text !== url) return false;
  const { protocol, hostname, username, password } = new URL(url);
  if (username !== "" || password !== "" || /^[^/?#]*\/\/[^/?#]*@/.test(url)) return false;
  return protocol === "https:" || (protocol === "http:" && LOOPBACK.test(hostname));
}
