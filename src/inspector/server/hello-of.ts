import { PACKAGE_VERSION } from "../../core/package-version.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { mcpSettings } from "../../gateway/serve/gateway-mcp.ts";
import type { Hello } from "../protocol.ts";
import { KEPT_CALLS, KEPT_CHARACTERS, KEPT_CHARACTERS_EACH } from "./inspector-limits.ts";
import { API_PATH } from "./view-of-operation.ts";
import type { Viewer } from "./viewer.ts";

/** Introduces a gateway to a page. */
export function helloOf(loaded: LoadedConfig, command: Hello["command"], viewer: Viewer): Hello {
  const { config } = loaded;
  const subject = viewer.identity?.subject;
  return {
    name: config.name ?? "waybill",
    version: PACKAGE_VERSION,
    isAuthOn: viewer.isAuthOn,
    ...(subject !== undefined && { subject }),
    isOperator: viewer.isOperator,
    places: placesOf(loaded),
    kept: { calls: KEPT_CALLS, characters: KEPT_CHARACTERS, charactersEach: KEPT_CHARACTERS_EACH },
    // Flags hold paths and commands of the machine the gateway runs on.
    command: viewer.isOperator ? command : { ...command, flags: "" },
  };
}

function placesOf(loaded: LoadedConfig): Hello["places"] {
  const { http = true, metrics = true } = loaded.config.serve ?? {};
  const hasDocs = http === true || (http !== false && http.docs !== false);
  return {
    ...(mcpSettings(loaded) !== undefined && { mcp: "/mcp" }),
    ...(http !== false && { api: API_PATH, document: "/openapi.json" }),
    ...(hasDocs && { docs: "/docs" }),
    ...(metrics && { metrics: "/metrics" }),
  };
}
