import { relative } from "node:path";
import type { ConfigError, LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Io } from "../io.ts";
import type { ReadTarget } from "../session.ts";
import { type Diagnosis, fine, note, problem } from "./diagnosis.ts";

/** Says which config is used, and what is odd about it. */
export function examineConfig(io: Io, { loaded, kind }: ReadTarget): readonly Diagnosis[] {
  const subject = describe(io, loaded, kind);
  const envFiles = [...loaded.files.keys()].filter((file) => file !== loaded.path);
  return [
    fine("config", subject, kind === "config" ? "valid" : "no file is needed"),
    ...envFiles.map((file) => fine("config", shown(io, file), "read for references")),
    // What a reference of a source lacks is told of the source.
    ...loaded.warnings.map((warning) => note("config", subject, loaded.secrets.mask(warning))),
  ];
}

/** Lists the mistakes of a config that cannot be used. */
export function examineMistakes({ issues }: ConfigError): readonly Diagnosis[] {
  return issues.map((issue) => problem("config", "", issue, "Correct the config at the place named."));
}

function describe(io: Io, { path }: LoadedConfig, kind: ReadTarget["kind"]): string {
  if (path !== undefined) return shown(io, path);
  return kind === "embedded" ? "the embedded default" : "the command line";
}

function shown(io: Io, path: string): string {
  const near = relative(io.cwd, path);
  return near.startsWith("..") ? path : near;
}
