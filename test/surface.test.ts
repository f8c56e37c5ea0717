import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { ROOT, runNode } from "./run-node.ts";
import { walk } from "./source-files.ts";

/** Everything a user can import, by subpath. A name added or lost here is a change for the changelog. */
const SURFACE: Readonly<
  Record<string, { readonly values: readonly string[]; readonly types: readonly string[] }>
> = {
  ".": {
    values: [
      "CallError",
      "ERROR_CODES",
      "HTTPResponseMetaSchema",
      "LocalResponseMetaSchema",
      "MCPContentBlockSchema",
      "MCPResponseMetaSchema",
      "OperationRegistry",
      "RESPONSE_SOURCES",
      "ResponseEnvelopeSchema",
      "ResponseMetaSchema",
      "SCHEMA_LIMITS",
      "SchemaError",
      "ToolResultError",
      "Type",
      "WIRE_LIMITS",
      "compileSchema",
      "createClient",
      "decodeEnvelope",
      "defineOperation",
      "encodeEnvelope",
      "fromWire",
      "httpEnvelope",
      "isCallError",
      "isResponseEnvelope",
      "localEnvelope",
      "mcpEnvelope",
      "outcomeOf",
      "rawData",
      "toCallError",
      "toProblem",
      "toWire",
      "toolError",
      "unwrap",
      "withCursor",
    ],
    types: [
      "AccessControl",
      "AnyOperation",
      "AnySchema",
      "Authority",
      "CallAbove",
      "CallErrorJSON",
      "CallErrorOptions",
      "CallHook",
      "CallOrigin",
      "ChangeListener",
      "Client",
      "CompiledSchema",
      "CursoredValue",
      "EnvCall",
      "ErrorCategory",
      "ErrorCode",
      "ErrorDeclaration",
      "ErrorTraits",
      "ExecuteOptions",
      "Executor",
      "GatedFeature",
      "HTTPEnvelopeMeta",
      "HTTPResponseMeta",
      "HookedCall",
      "Hooks",
      "Identity",
      "InputOf",
      "JsonSchema",
      "JsonSchemaObject",
      "JsonValue",
      "ListOptions",
      "LocalResponseMeta",
      "LogLevel",
      "LogRecord",
      "MCPAnnotations",
      "MCPAudioBlock",
      "MCPContentBlock",
      "MCPEnvelopeMeta",
      "MCPImageBlock",
      "MCPResourceBlock",
      "MCPResourceContent",
      "MCPResourceLinkBlock",
      "MCPResponseMeta",
      "MCPTextBlock",
      "Metadata",
      "NestedCallOptions",
      "NormalizationReport",
      "Normalized",
      "ObtainedFrom",
      "Operation",
      "OperationAnnotations",
      "OperationContext",
      "OperationEnv",
      "OperationMap",
      "OperationSource",
      "OperationSpec",
      "OperationType",
      "Outcome",
      "OutputOf",
      "OutputPolicy",
      "PageFacts",
      "Pager",
      "PagesOptions",
      "Problem",
      "ProgressRecord",
      "RegisterOptions",
      "RegistryChange",
      "RegistryLimits",
      "RegistryOptions",
      "RegistryWarning",
      "ResourceRule",
      "ResponseEnvelope",
      "ResponseMeta",
      "ResponseSource",
      "ResultFacts",
      "SchemaIssue",
      "SchemaLimits",
      "SchemaOptions",
      "StandardSchema",
      "SubscribeHook",
      "SubscribeOptions",
      "Tier",
      "TieredErrorCode",
      "ToolErrorOptions",
      "WireOptions",
    ],
  },
  "./formats": {
    values: [
      "CUT_DATA_LIMITS",
      "ENVELOPE_CAPABILITY",
      "ENVELOPE_LIMITS",
      "ENVELOPE_PREFIX",
      "FORMATS",
      "FORMAT_NAMES",
      "FormatError",
      "MCP_ERROR_CATEGORIES",
      "McpErrorPayloadSchema",
      "RESULT_META_KEY",
      "TIERED_ERROR_CODES",
      "TIERS",
      "ToolResponseMetaSchema",
      "WorkflowEnvelopePayloadSchema",
      "buildStructuredResponse",
      "buildToolResponse",
      "composeToolPayload",
      "createMemoryStore",
      "createTieredEnvelopeSchema",
      "createToolCaller",
      "createToolResponseEnvelopeSchema",
      "cutData",
      "cutText",
      "decodeToolResult",
      "encodeResult",
      "estimateTokens",
      "isFormatError",
      "isMcpErrorPayload",
      "isTieredEnvelope",
      "parseEnvelopeBlock",
      "parseTieredEnvelope",
      "previewToolPayload",
      "renderToolError",
      "toErrorPayload",
      "toReadResourceResult",
      "toToolResult",
      "toolOutputSchema",
      "transcode",
    ],
    types: [
      "BuildResponseOptions",
      "CallToolResult",
      "Candidate",
      "CarrierOf",
      "Codec",
      "ComposeToolPayloadOptions",
      "CutData",
      "CutDataOptions",
      "CutText",
      "CutTextOptions",
      "DataCut",
      "DataSchema",
      "DecodeOptions",
      "Decoded",
      "DecodedError",
      "DecodedToolResult",
      "DefaultToolResponseData",
      "EnvelopeBlockOptions",
      "EnvelopeSchema",
      "ErrorPayloadOptions",
      "ExposeError",
      "ExposedError",
      "FormatErrorCode",
      "FormatName",
      "HTTPFacts",
      "McpErrorCategory",
      "McpErrorPayload",
      "MemoryStore",
      "MemoryStoreOptions",
      "Oddity",
      "ParsedEnvelope",
      "PreviewLimits",
      "PreviewToolPayloadOptions",
      "RangeRequest",
      "RateLimit",
      "ReadOptions",
      "ReadResourceResult",
      "Residual",
      "ResultEntry",
      "ResultError",
      "ResultRange",
      "ResultStore",
      "RetryAdvice",
      "StoredResult",
      "TieredEnvelope",
      "TieredError",
      "TokenUsage",
      "Tolerated",
      "ToolCaller",
      "ToolCallerOptions",
      "ToolEnvelope",
      "ToolEnvelopeMeta",
      "ToolFormat",
      "ToolPayload",
      "ToolResponseEnvelope",
      "ToolResponseMeta",
      "ToolResponseStatus",
      "ToolResult",
      "ToolResultOptions",
      "TranscodeOptions",
      "UpgradeHint",
      "WorkflowEnvelopePayload",
      "WorkflowStep",
    ],
  },
  "./lint": {
    values: ["default", "noRawMcpText", "plugin"],
    types: ["LintContext", "LintPlugin", "LintRule", "NoRawMcpTextOptions", "SyntaxNode"],
  },
};

const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const subpaths = Object.keys(manifest.exports).filter((subpath) => subpath !== "./package.json");

async function exportedValues(subpath: string): Promise<string[]> {
  const name = subpath.replace(/^\./, "waybill");
  const script = `console.log(JSON.stringify(Object.keys(await import("${name}"))))`;
  const child = await runNode(["--input-type=module", "--eval", script]);
  expect(child).toMatchObject({ code: 0, stderr: "" });
  return JSON.parse(child.stdout);
}

/** Names that exist for the type checker alone, as the built declarations mark them. */
function exportedTypes(subpath: string): string[] {
  const path = manifest.exports[subpath].types;
  const names: string[] = [];
  walk({ path, text: readFileSync(join(ROOT, path), "utf8") }, (node) => {
    if (ts.isExportSpecifier(node) && node.isTypeOnly) names.push(node.name.text);
  });
  return names;
}

describe("the exported surface", () => {
  it("is listed for every subpath of the package", () => {
    expect(Object.keys(SURFACE)).toEqual(subpaths);
  });

  it.each(subpaths)("of %s holds exactly the listed values", async (subpath) => {
    expect((await exportedValues(subpath)).sort()).toEqual([...(SURFACE[subpath]?.values ?? [])].sort());
  });

  it.each(subpaths)("of %s holds exactly the listed types", (subpath) => {
    expect(exportedTypes(subpath).sort()).toEqual([...(SURFACE[subpath]?.types ?? [])].sort());
  });

  it("has at most 40 values at the root", () => {
    expect(SURFACE["."]?.values.length).toBeLessThanOrEqual(40);
  });
});
