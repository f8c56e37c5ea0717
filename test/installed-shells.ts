import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Shells that people paste commands into, as far as this machine has them. */
export const SHELLS = ["bash", "zsh", "fish"].filter((name) =>
  (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, name))),
);

/** What a shell prints for a line that is pasted into it. */
export function runInShell(
  shell: string,
  line: string,
  options: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
) {
  return execFileSync(shell, ["-c", line], { encoding: "utf8", ...options });
}
