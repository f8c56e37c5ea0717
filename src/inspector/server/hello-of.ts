import { PACKAGE_VERSION } from "../../core/package-version.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { servedPaths } from "../../gateway/serve/served-paths.ts";
import type { Hello } from "../protocol.ts";
import { KEPT_CALLS, KEPT_CHARACTERS, KEPT_CHARACTERS_EACH } from "./inspector-limits.ts";
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
    places: servedPaths(config.serve),
    kept: { calls: KEPT_CALLS, characters: KEPT_CHARACTERS, charactersEach: KEPT_CHARACTERS_EACH },
    // Flags hold paths and commands of the machine the gateway runs on.
    command: viewer.isOperator ? command : { ...command, flags: "" },
  };
}
