import { createHash, createHmac, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { chmod, lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { get } from "node:http";
import { join } from "node:path";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { stateFolder } from "../../gateway/embedded/state-folder.ts";
import { isSameSecret } from "../../http/oauth/oauth-store.ts";
import type { RemoteAddress } from "./remote-gateway.ts";

/** What a gateway that runs writes down for commands of the same user: where it is, and what it can prove to know. */
export interface RunningGateway {
  /** On the loopback interface. */
  readonly url: string;
  readonly pid: number;
  /** Of the config as it is served, everything it refers to included. */
  readonly digest: string;
  /** 256 bits, in hexadecimal; new for each process. It is never sent. */
  readonly secret: string;
}

/** Where proofs are asked for. */
export const PROOF_PATH = "/proof";

const ADDRESS = /^http:\/\/(?:127\.0\.0\.1|\[::1\]):[1-9]\d{0,4}$/;
const DIGITS = /^[0-9a-f]{64}$/;
const MOST_BYTES = 4_096;
/** Files of one config that are looked at; more than one is there only where several gateways serve it. */
const MOST_FILES = 8;
/** Milliseconds that a gateway has to prove itself. */
const PROOF_MS = 2_000;

/** A digest of a config as it was read: with another version, or where any file or variable it refers to says something else, it is another. */
export function digestOfConfig({ config, path, faults }: LoadedConfig): string {
  const text = JSON.stringify([PACKAGE_VERSION, path, config, faults]);
  return createHash("sha256").update(text).digest("hex");
}

/** Proves that a gateway knows the secret: nothing else can make this, and it fits this question, place and config alone. */
export function gatewayProof({ url, pid, digest, secret }: RunningGateway, nonce: string): string {
  return sign(secret, ["waybill gateway", url, String(pid), digest, nonce]);
}

/** Makes what a command shows in place of the secret, once the gateway has proven itself. */
export function callerToken({ secret, url }: Pick<RunningGateway, "secret" | "url">): string {
  const nonce = randomBytes(32).toString("hex");
  return `${nonce}.${sign(secret, ["waybill caller", url, nonce])}`;
}

/** Tells whether a token was made with the secret of this gateway. */
export function isCallerToken(
  token: string,
  { secret, url }: Pick<RunningGateway, "secret" | "url">,
): boolean {
  const [nonce = "", signature = ""] = token.split(".", 2);
  return DIGITS.test(nonce) && isSameSecret(signature, sign(secret, ["waybill caller", url, nonce]));
}

/** A question to a gateway that can only be answered with its secret. */
export function isNonce(text: string | null): text is string {
  return text !== null && DIGITS.test(text);
}

function sign(secret: string, parts: readonly string[]): string {
  return createHmac("sha256", Buffer.from(secret, "hex")).update(JSON.stringify(parts)).digest("hex");
}

type Environment = Readonly<Record<string, string | undefined>>;

function folderOf(env: Environment): string {
  return join(stateFolder({ env }), "gateways");
}

function prefixOf(path: string): string {
  return `${createHash("sha256").update(path).digest("hex").slice(0, 24)}.`;
}

/** Writes down that a gateway runs for the config at `path`, for its user alone; returns the name of the file. */
export async function writeRunning(env: Environment, path: string, running: RunningGateway): Promise<string> {
  const folder = folderOf(env);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if (!(await isPrivateFolder(folder))) await chmod(folder, 0o700);
  if (!(await isPrivateFolder(folder))) throw new Error(`The folder ${folder} is not this user's alone.`);
  const file = join(folder, `${prefixOf(path)}${running.pid}.json`);
  const beside = `${file}.${randomBytes(6).toString("hex")}`;
  const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW = 0 } = constants;
  const handle = await open(beside, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o600);
  try {
    await handle.writeFile(JSON.stringify(running));
  } finally {
    await handle.close();
  }
  await rename(beside, file);
  return file;
}

/** Removes what was written; what is gone is gone. */
export async function removeRunning(file: string): Promise<void> {
  await rm(file, { force: true }).catch(() => {});
}

/**
 * Finds a gateway of this user that serves exactly this config now, and has proven that it does: its address, and a token for it. Files
 * of gateways that are gone, or cannot prove what they say, are removed.
 */
export async function findRunning(
  env: Environment,
  loaded: LoadedConfig,
): Promise<(RemoteAddress & { readonly pid: number }) | undefined> {
  if (loaded.path === undefined) return undefined;
  const folder = folderOf(env);
  const prefix = prefixOf(loaded.path);
  const names = await readdir(folder).catch(() => []);
  const mine = names.filter((name) => name.startsWith(prefix)).slice(0, MOST_FILES);
  if (mine.length === 0 || !(await isPrivateFolder(folder))) return undefined;
  const digest = digestOfConfig(loaded);
  // A gateway that was killed while it wrote leaves a file that is not renamed yet; one that is alive is about to rename it.
  for (const name of mine.filter((name) => !name.endsWith(".json"))) {
    const pid = Number(name.slice(prefix.length).split(".", 1)[0]);
    if (!isAlive(pid)) await removeRunning(join(folder, name));
  }
  for (const name of mine.filter((name) => name.endsWith(".json"))) {
    const file = join(folder, name);
    const running = await readRunning(file);
    if (running === undefined || !isAlive(running.pid)) {
      await removeRunning(file);
      continue;
    }
    // It is alive, and may take over the config as it is now at any moment: its file is its own.
    if (running.digest !== digest) continue;
    const proven = await hasProven(running);
    if (proven === true) return { base: running.url, token: callerToken(running), pid: running.pid };
    // It may have taken over another config while it was asked, and written its file anew.
    const isAsRead = JSON.stringify(await readRunning(file)) === JSON.stringify(running);
    if (proven === false && isAsRead) await removeRunning(file);
  }
  return undefined;
}

/** Reads a file, unless somebody else could have written or read it. */
async function readRunning(file: string): Promise<RunningGateway | undefined> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const handle = await open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const facts = await handle.stat();
    // Its gateway has just put another in its place.
    if (facts.nlink === 0) return await readRunning(file);
    const isSound = facts.isFile() && facts.nlink === 1 && facts.size <= MOST_BYTES && isOwnAlone(facts);
    return isSound ? parseRunning(await handle.readFile("utf8")) : undefined;
  } catch {
    return undefined;
  } finally {
    await handle.close();
  }
}

function parseRunning(text: string): RunningGateway | undefined {
  const value = parseJsonTextOrNone(text);
  if (!isPlainObject(value)) return undefined;
  const { url, pid, digest, secret } = value;
  const isRight =
    typeof url === "string" &&
    ADDRESS.test(url) &&
    parseUrl(url) !== undefined &&
    typeof pid === "number" &&
    Number.isSafeInteger(pid) &&
    pid > 1 &&
    typeof digest === "string" &&
    DIGITS.test(digest) &&
    typeof secret === "string" &&
    DIGITS.test(secret);
  return isRight ? { url, pid, digest, secret } : undefined;
}

async function isPrivateFolder(folder: string): Promise<boolean> {
  const facts = await lstat(folder).catch(() => undefined);
  return facts?.isDirectory() === true && isOwnAlone(facts);
}

/** Whether a file is this user's, and nobody else may look at it; where there are no users, it lies in the user's own folder. */
function isOwnAlone({ uid, mode }: { readonly uid: number; readonly mode: number }): boolean {
  return process.getuid === undefined || (uid === process.getuid() && (mode & 0o077) === 0);
}

/** Whether a process of this user is there. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Asks a gateway for its proof; nothing where it does not answer in time, which proves nothing either way. */
async function hasProven(running: RunningGateway): Promise<boolean | undefined> {
  const nonce = randomBytes(32).toString("hex");
  const answer = await answerOf(`${running.url}${PROOF_PATH}?nonce=${nonce}`);
  return answer === undefined ? undefined : isSameSecret(answer, gatewayProof(running, nonce));
}

/** The beginning of what an address answers, `""` where nobody is there, and nothing after a while. */
function answerOf(url: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, signal: AbortSignal.timeout(PROOF_MS) }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > MOST_BYTES) response.destroy();
      });
      response.on("close", () => resolve(response.statusCode === 200 ? text : ""));
    });
    request.on("error", ({ name }) =>
      resolve(name === "AbortError" || name === "TimeoutError" ? undefined : ""),
    );
  });
}
