import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { type CommandRun, runCommandLine } from "./run-command-line.ts";

/** What `TOKEN` is in the environment of the doctor. */
export const SECRET = "sk-very-secret-0123456789";

/** A folder that a doctor looks at. */
export interface DoctorFolder {
  run(...args: readonly string[]): Promise<CommandRun>;
  setConfig(config: object): Promise<void>;
  /** Writes JSON. */
  write(name: string, content: object): Promise<void>;
}

/** Gives each test of a file a folder of its own. */
export function useDoctorFolder(): DoctorFolder {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-doctor-"));
  });
  afterEach(() => rm(folder, { recursive: true }));
  const write = (name: string, content: object) => writeFile(join(folder, name), JSON.stringify(content));
  return {
    run: (...args) =>
      runCommandLine(["doctor", ...args], {
        cwd: folder,
        env: { PATH: process.env["PATH"], WAYBILL_STATE_DIR: join(folder, "state"), TOKEN: SECRET },
      }),
    setConfig: (config) => write("waybill.config.json", config),
    write,
  };
}
