import { existsSync, realpathSync } from "node:fs";
import { delimiter, join, relative } from "node:path";
import type { Io } from "./io.ts";

/**
 * How this command is started again from the same folder: `waybill` where the shell finds this very script under that name, `npx
 * waybill` where npm does, else node and the script.
 */
export function spelledCommand(io: Io): string {
  const { script } = io;
  if (script === undefined) return "waybill";
  const real = realPath(script);
  const isHere = (path: string): boolean => existsSync(path) && realPath(path) === real;
  const local = ancestors(io.cwd).some((folder) => isHere(join(folder, "node_modules", ".bin", "waybill")));
  // npm and npx put folders of their own into PATH, which the next shell does not have.
  const found = (io.env["PATH"] ?? "")
    .split(delimiter)
    .filter((folder) => folder !== "" && !/[\\/](?:node_modules[\\/]\.bin|_npx|node-gyp-bin)/.test(folder))
    .some((folder) => isHere(join(folder, "waybill")));
  if (found) return "waybill";
  if (local || /[\\/]_npx[\\/]/.test(real)) return "npx waybill";
  const path = relative(realPath(io.cwd), real);
  const shown = path.startsWith("..") ? real : path;
  return `node ${/^[\w@%+=:,./\\-]+$/.test(shown) ? shown : JSON.stringify(shown)}`;
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function ancestors(folder: string): readonly string[] {
  const parent = join(folder, "..");
  return parent === folder ? [folder] : [folder, ...ancestors(parent)];
}
