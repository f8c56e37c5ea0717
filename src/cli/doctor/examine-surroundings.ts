import { constants } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import { stateFolder } from "../../gateway/embedded/state-folder.ts";
import type { Io } from "../io.ts";
import { type Diagnosis, fine, note, problem } from "./diagnosis.ts";

const LEAST_NODE = [20, 19] as const;

/** Looks at what Waybill runs on: Node, itself, where it keeps state. */
export async function examineSurroundings(io: Io): Promise<readonly Diagnosis[]> {
  return [
    examineNode(process.versions.node),
    fine("waybill", PACKAGE_VERSION, "this version"),
    await examineState(io),
  ];
}

/** Judges a version of Node. */
export function examineNode(version: string): Diagnosis {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [wantedMajor, wantedMinor] = LEAST_NODE;
  const isEnough = major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
  if (isEnough) return fine("node", version, "new enough");
  const wanted = LEAST_NODE.join(".");
  return problem(
    "node",
    version,
    `Waybill needs Node ${wanted} or newer.`,
    `Install Node ${wanted} or newer.`,
  );
}

async function examineState(io: Io): Promise<Diagnosis> {
  const folder = stateFolder({ env: io.env });
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK);
    return fine("state", folder, "can be written");
  } catch (cause) {
    const { code = "unknown" } = cause as { code?: string };
    const fix = "Make the folder writable, or name another in WAYBILL_STATE_DIR.";
    return problem("state", folder, `The folder for state cannot be written (${code}).`, fix);
  }
}

/** Packages that are used where they are installed. */
export interface WantedPackages {
  readonly docs: boolean;
  readonly telemetry: boolean;
}

/** Looks for packages that are optional, where something asks for them. */
export function examinePackages(
  { docs, telemetry }: WantedPackages,
  isInstalled: (name: string) => boolean = isThere,
): readonly Diagnosis[] {
  const found: Diagnosis[] = [];
  if (docs) {
    const name = "swagger-ui-dist";
    const fix = `Run: npm install ${name}`;
    found.push(
      isInstalled(name)
        ? fine("package", name, "installed; /docs can try operations out")
        : note("package", name, "not installed; /docs is a plain list", fix),
    );
  }
  if (!telemetry) return found;
  for (const name of ["@opentelemetry/api", "@opentelemetry/sdk-node"]) {
    const fix = "Run: npm install @opentelemetry/api @opentelemetry/sdk-node";
    const message = "OTEL_* asks for telemetry, and the package is not installed; nothing is exported.";
    found.push(
      isInstalled(name) ? fine("package", name, "installed") : problem("package", name, message, fix),
    );
  }
  return found;
}

function isThere(name: string): boolean {
  const { resolve } = createRequire(import.meta.url);
  try {
    resolve(name);
    return true;
  } catch (cause) {
    // Installed, and not to be loaded that way.
    return (cause as { code?: unknown }).code === "ERR_PACKAGE_PATH_NOT_EXPORTED";
  }
}
