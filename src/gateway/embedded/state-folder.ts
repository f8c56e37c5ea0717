import { homedir } from "node:os";
import { join } from "node:path";

/** What decides where state is kept. */
export interface StateFolderOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** @default that of the user */
  readonly home?: string | undefined;
  /** @default process.platform */
  readonly platform?: NodeJS.Platform | undefined;
}

/** The folder for what outlives a process: `WAYBILL_STATE_DIR`, or `waybill` where the platform keeps such things. */
export function stateFolder(options: StateFolderOptions): string {
  const { env, home = homedir(), platform = process.platform } = options;
  const own = given(env["WAYBILL_STATE_DIR"]);
  if (own !== undefined) return own;
  if (platform === "win32") {
    return join(given(env["LOCALAPPDATA"]) ?? join(home, "AppData", "Local"), "waybill");
  }
  return join(given(env["XDG_STATE_HOME"]) ?? join(home, ".local", "state"), "waybill");
}

/** An empty variable is one that is not set. */
function given(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
