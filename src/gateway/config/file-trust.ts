import { lstat, stat } from "node:fs/promises";

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
export async function isOwn(path: string): Promise<boolean> {
  const own = ownIds();
  if (own === undefined) return true;
  const facts = await lstat(path).catch(() => undefined);
  return facts !== undefined && own.has(facts.uid);
}

/** This user and root, who can do everything anyway; with sudo, whoever asked for it. Nothing on Windows. */
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

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
