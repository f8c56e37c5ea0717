import { findImports } from "./find-imports.ts";
import { findRawResults } from "./find-raw-results.ts";
import type { LintRule, SyntaxNode } from "./rule-types.ts";
import type { ScopeSource } from "./scope-types.ts";
import { createScopes } from "./scopes.ts";

/** Options of the rule `no-raw-mcp-text`. */
export interface NoRawMcpTextOptions {
  /** Modules that export the deprecated builder, spelt as they are imported. @default ["waybill/formats"] */
  readonly modules?: readonly string[];
  /** Names of deprecated exports. @default ["buildToolResponse"] */
  readonly names?: readonly string[];
}

const DEFAULTS = { modules: ["waybill/formats"], names: ["buildToolResponse"] } as const;

const INSTEAD = "use buildStructuredResponse or composeToolPayload";

const NAMES_SCHEMA = { type: "array", items: { type: "string", minLength: 1 }, uniqueItems: true };

/** Flags the deprecated text builder however it is imported, and tool results with text written by hand. */
export const noRawMcpText: LintRule = {
  meta: {
    type: "suggestion",
    docs: { description: "Disallow the deprecated text builder and tool results with text written by hand." },
    messages: {
      deprecated: `\`{{name}}\` is deprecated: ${INSTEAD} instead.`,
      reExport: `This exports all of a module again, the deprecated {{names}} with it: export names, and ${INSTEAD}.`,
      rawResult: `This tool result is text written by hand: ${INSTEAD} instead.`,
    },
    schema: [
      {
        type: "object",
        properties: { modules: NAMES_SCHEMA, names: NAMES_SCHEMA },
        additionalProperties: false,
      },
    ],
  },
  create(context) {
    const options = (context.options[0] ?? {}) as NoRawMcpTextOptions;
    const names = options.names ?? DEFAULTS.names;
    const report = (node: SyntaxNode, messageId: string, data: Record<string, string> = {}) => {
      context.report({ node, messageId, data } as never);
    };
    const scopes = createScopes(context.sourceCode as ScopeSource);
    const imports = findImports(scopes, {
      modules: new Set(options.modules ?? DEFAULTS.modules),
      names: new Set(names),
      events: {
        onMember: (node, name) => report(node, "deprecated", { name }),
        onReExport: (node) => report(node, "reExport", { names: names.map((n) => `\`${n}\``).join(", ") }),
      },
    });
    const results = findRawResults(scopes, (node) => report(node, "rawResult"));
    return {
      ...imports,
      ...results,
      CallExpression: (node) => {
        imports.CallExpression(node);
        results.CallExpression(node);
      },
    };
  },
};
