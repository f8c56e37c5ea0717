import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { operationJson } from "../../gateway/operation-json.ts";
import { sampleInput } from "../../gateway/sample-input.ts";
import { schemaOf } from "../../gateway/schema-of.ts";
import { mcpSettings } from "../../gateway/serve/gateway-mcp.ts";
import { toToolName } from "../../mcp/server/tool-name.ts";
import { operationPath, placeOf } from "../../openapi/server/input-place.ts";
import type { OperationView } from "../protocol.ts";

/** Where the gateway serves operations over HTTP. */
const API_PATH = "/api";

/** Tells all that is known of an operation, and how it is called from elsewhere. */
export function viewOfOperation(
  operation: AnyOperation,
  source: string | undefined,
  loaded: LoadedConfig,
): OperationView {
  const tool = toolOf(operation, loaded);
  const isServed = loaded.config.serve?.http !== false;
  return {
    ...(operationJson(operation, source) as unknown as OperationView),
    ...sampleOf(operation),
    ...(isServed && { http: httpOf(operation) }),
    ...(tool !== undefined && { tool }),
  };
}

function sampleOf(operation: AnyOperation): Pick<OperationView, "sample"> {
  const schema = schemaOf(operation, "input");
  const sample = schema === undefined ? undefined : sampleInput(schema);
  return sample?.isAccepted ? { sample: sample.value } : {};
}

function httpOf(operation: AnyOperation): NonNullable<OperationView["http"]> {
  const method = placeOf(operation).place === "query" ? "GET" : "POST";
  return { method, path: operationPath(operation, API_PATH) };
}

function toolOf({ id }: AnyOperation, loaded: LoadedConfig): string | undefined {
  const settings = mcpSettings(loaded);
  if (settings === undefined || settings.catalogue === true) return undefined;
  return toToolName(id, { dots: settings.dots ?? false });
}
