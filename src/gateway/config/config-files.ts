import { lstat, readdir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { shellWord } from "../../core/text/clean-text.ts";
import { ConfigError } from "./loaded-config.ts";

/** What of a file says who may change it. */
interface Ownership {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/**
 * Says why a file must not decide what runs: it belongs to another user, or others can change it. Gives the reason and what to do about
 * it, without a subject and a full stop; nothing for a file that is fine or missing, and nothing on Windows, where files have no such facts.
 */
export async function findDistrust(path: string): Promise<string | undefined> {
  const own = ownIds();
  if (own === undefined) return undefined;
  const [link, file] = await Promise.all([
    lstat(path).catch(() => undefined),
    stat(path).catch(() => undefined),
  ]);
  if (link === undefined || file === undefined) return undefined;
  const stranger = [file, link].find(({ uid }) => !own.has(uid));
  const fix = (command: string): string => `run "${command} ${shellWord(path)}" if you trust what it holds`;
  if (stranger !== undefined) {
    const [what, flag] = stranger === file ? ["", ""] : ["is a link that ", "-h "];
    return `${what}belongs to another user (uid ${stranger.uid}), who could run anything as you: ${fix(`chown ${flag}${process.getuid?.()}`)}`;
  }
  if (!isOpenToOthers(file, own)) return undefined;
  const mode = (file.mode & 0o777).toString(8);
  return `can be changed by other users (mode ${mode}), who could run anything as you: ${fix("chmod go-w")}`;
}

/** Tells whether a folder or file belongs to this user or to root; always so on Windows. */
async function isOwn(path: string): Promise<boolean> {
  const own = ownIds();
  if (own === undefined) return true;
  const facts = await lstat(path).catch(() => undefined);
  return facts !== undefined && own.has(facts.uid);
}

/** This user and root, who can do everything anyway; with sudo, the user who asked for it. Nothing on Windows. */
function ownIds(): ReadonlySet<number> | undefined {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  const { SUDO_UID: asked = "" } = process.env;
  return new Set([0, uid, ...(uid === 0 && /^\d{1,10}$/.test(asked) ? [Number(asked)] : [])]);
}

/** A group of the same number as its only member, which many systems give every user, is nobody else's. */
function isOpenToOthers({ mode, gid }: Ownership, own: ReadonlySet<number>): boolean {
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !own.has(gid));
}

/** Names of config files, of any format. */
export const CONFIG_FILE = /^waybill\.config\.(?:ts|mts|js|mjs|json|yaml|yml)$/;

/**
 * Finds the `waybill.config.*` of a folder. Within a repository of this user (a folder above holds `.git`) the nearest one counts, as far
 * as the root of the repository; elsewhere only the folder itself is looked at. Two in one folder are a `ConfigError`.
 */
export async function findConfig(from: string): Promise<string | undefined> {
  const start = resolve(from);
  const root = (await repositoryOf(start)) ?? start;
  for (let folder = start; ; folder = dirname(folder)) {
    const found = (await namesIn(folder)).filter((name) => CONFIG_FILE.test(name)).sort();
    if (found.length > 1) {
      const all = found.join(" and ");
      throw new ConfigError([`There are ${all} in ${folder}; keep one of them, or name one with --config.`]);
    }
    if (found[0] !== undefined) return join(folder, found[0]);
    if (folder === root) return undefined;
  }
}

/** The root of the repository that a folder is in; one that belongs to another user is none. */
async function repositoryOf(start: string): Promise<string | undefined> {
  for (let folder = start; ; folder = dirname(folder)) {
    if ((await namesIn(folder)).includes(".git"))
      return (await isOwn(folder)) && (await isOwn(join(folder, ".git"))) ? folder : undefined;
    if (dirname(folder) === folder) return undefined;
  }
}

function namesIn(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch(() => []);
}
