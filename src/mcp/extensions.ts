import { toJsonTextOrNone } from "../core/json/json-text.ts";
import { isPlainObject } from "../core/json/json-value.ts";

/** Extensions of MCP by name, with their settings. */
export type McpExtensions = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The extension for pages that tools show: MCP Apps. */
export const UI_EXTENSION = "io.modelcontextprotocol/ui";

/** Characters of an extension's settings, written as JSON, that are passed on. */
const MAX_SETTINGS = 2_000;

/**
 * What servers are told where it is not known whose client a request is for, and by sessions that many share. Only extensions that
 * need no method of their own pass through: what they add travels in tools, results and resources.
 */
export const PASSED_EXTENSIONS: McpExtensions = {
  [UI_EXTENSION]: { mimeTypes: ["text/html;profile=mcp-app"] },
};

/** Reads which of those a client or server has by its capabilities; settings that are no short object count as empty. */
export function readExtensions(capabilities: unknown): McpExtensions {
  const declared = isPlainObject(capabilities) ? capabilities["extensions"] : undefined;
  if (!isPlainObject(declared)) return {};
  const found = Object.keys(PASSED_EXTENSIONS).filter(
    (name) => Object.hasOwn(declared, name) && isPlainObject(declared[name]),
  );
  return Object.fromEntries(found.map((name) => [name, settingsOf(declared[name])]));
}

function settingsOf(settings: unknown): Readonly<Record<string, unknown>> {
  const text = toJsonTextOrNone(settings);
  return text === undefined || text.length > MAX_SETTINGS ? {} : (settings as Record<string, unknown>);
}
