import { noRawMcpText } from "./no-raw-mcp-text.ts";
import type { LintPlugin } from "./rule-types.ts";

/** The plugin for ESLint and oxlint: the rule `waybill/no-raw-mcp-text`. */
export const plugin: LintPlugin = {
  meta: { name: "waybill" },
  rules: { "no-raw-mcp-text": noRawMcpText },
};

export type { NoRawMcpTextOptions } from "./no-raw-mcp-text.ts";
export type { LintContext, LintPlugin, LintRule, SyntaxNode } from "./rule-types.ts";
export { noRawMcpText };

// biome-ignore lint/style/noDefaultExport: oxlint loads the default export of a plugin and nothing else.
export default plugin;
