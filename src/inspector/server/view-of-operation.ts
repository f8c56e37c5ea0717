import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { operationJson } from "../../gateway/operation-json.ts";
import { sampleInput } from "../../gateway/sample-input.ts";
import { schemaOf } from "../../gateway/schema-of.ts";
import { mcpSettings } from "../../gateway/serve/gateway-mcp.ts";
import { assignToolNames } from "../../mcp/server/tool-name.ts";
import { operationPath, placeOf } from "../../openapi/server/input-place.ts";
import type { OperationView } from "../protocol.ts";

/** Where the gateway serves operations over HTTP. */
const API_PATH = "/api";

/** Tells all that is known of an operation of a gateway, and how it is called from elsewhere. */
export function viewOfOperation(
  operation: AnyOperation,
  gateway: Pick<Gateway, "executor" | "sourceOf">,
  loaded: LoadedConfig,
): OperationView {
  const source = gateway.sourceOf(operation.id);
  const tool = toolOf(operation, gateway.executor.operations, loaded);
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

function toolOf(
  { id }: AnyOperation,
  operations: Iterable<AnyOperation>,
  loaded: LoadedConfig,
): string | undefined {
  const settings = mcpSettings(loaded);
  if (settings === undefined || settings.catalogue === true) return undefined;
  const served = [...operations].filter(({ visibility }) => visibility !== "internal");
  const { byId } = assignToolNames(
    served.map((operation) => operation.id),
    { dots: settings.dots ?? false },
  );
  return byId.get(id);
}
