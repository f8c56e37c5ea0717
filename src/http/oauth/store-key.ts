import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { link, mkdir, open, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { withFileLock } from "./file-lock.ts";

/** Where a key is kept: by the system, or in a file that only its owner may read. */
export type KeyPlace = "keychain" | "secret-service" | "file";

/** What tokens are encrypted with. */
export interface StoreKey {
  readonly place: KeyPlace;
  /** 32 of them. */
  readonly bytes: Buffer;
}

/** What decides where the key is kept. */
export interface StoreKeyOptions {
  /** The folder of the tokens; a key file lies beside them. */
  readonly folder: string;
  /** `WAYBILL_KEYRING=off` keeps the key in a file whatever the system offers. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** @default process.platform */
  readonly platform?: NodeJS.Platform | undefined;
  /** The program that keeps secrets on macOS. @default "/usr/bin/security", whatever PATH says */
  readonly keychain?: string | undefined;
}

/** Why a key, or what was encrypted with it, cannot be used. */
export class StoreFault extends Error {
  override readonly name = "StoreFault";
  readonly reason: "keyring" | "foreign" | "damaged" | "other-key";

  constructor(reason: StoreFault["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Milliseconds that a program which keeps keys has to answer: one that asks a person first does not. */
const ANSWER_MS = 5_000;
/** Bytes of an answer. */
const MOST_BYTES = 4_096;
const KEY_BYTES = 32;
const KEY_FILE = "key";

/** Finds the key that new tokens are encrypted with: the file if there is one, else that of the system, else a new file. */
export async function currentKey(options: StoreKeyOptions): Promise<StoreKey> {
  const { folder } = options;
  const known = (await readKeyFile(folder)) ?? (await askKeyring(options).catch(() => undefined));
  if (known !== undefined) return known;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return await withFileLock(join(folder, "key.lock"), async () => {
    const kept = await readKeyFile(folder);
    if (kept !== undefined) return kept;
    // One that does not answer may have a key that other tokens need: none is put in its place.
    const asked = await askKeyring(options).catch(() => "silent" as const);
    if (asked === "silent") return await makeKeyFile(folder);
    return asked ?? (await makeInKeyring(options)) ?? (await makeKeyFile(folder));
  });
}

/** Finds the key that is kept in one place; rejects with a `StoreFault` where it cannot be had. */
export async function keyAt(place: KeyPlace, options: StoreKeyOptions): Promise<StoreKey> {
  if (place === "file") {
    const key = await readKeyFile(options.folder);
    if (key !== undefined) return key;
    throw new StoreFault("other-key", `The key file "${join(options.folder, KEY_FILE)}" is gone.`);
  }
  if (keyringOf(options)?.place !== place) {
    throw new StoreFault("keyring", `The key is kept by the ${KEY_PLACES[place]}, which is not used here.`);
  }
  const key = await askKeyring(options);
  if (key !== undefined) return key;
  throw new StoreFault("other-key", `The key is gone from the ${KEY_PLACES[place]}.`);
}

/** How the places are called. */
export const KEY_PLACES: Readonly<Record<KeyPlace, string>> = {
  keychain: "macOS keychain",
  "secret-service": "secret service (secret-tool)",
  file: "key file",
};

/** Opens a file that must be the user's own and nobody else's to read or write; undefined where there is none. */
export async function readOwnFile(path: string, mostBytes: number): Promise<string | undefined> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new StoreFault("foreign", `"${path}" cannot be opened (${code}).`);
  }
  try {
    const { uid, mode, size } = await file.stat();
    const user = process.getuid?.();
    if (user !== undefined && uid !== user)
      throw new StoreFault("foreign", `"${path}" belongs to another user.`);
    if (user !== undefined && (mode & 0o077) !== 0) {
      throw new StoreFault("foreign", `Others may read or write "${path}"; its mode must be 600.`);
    }
    if (size > mostBytes) throw new StoreFault("damaged", `"${path}" is too large.`);
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

async function readKeyFile(folder: string): Promise<StoreKey | undefined> {
  const path = join(folder, KEY_FILE);
  const text = await readOwnFile(path, MOST_BYTES);
  if (text === undefined) return undefined;
  const bytes = toKey(text);
  if (bytes === undefined) throw new StoreFault("damaged", `The key file "${path}" is damaged.`);
  return { place: "file", bytes };
}

/** Written whole or not at all, and never over another. */
async function makeKeyFile(folder: string): Promise<StoreKey> {
  const bytes = randomBytes(KEY_BYTES);
  const draft = join(folder, `${KEY_FILE}.${randomBytes(8).toString("hex")}`);
  try {
    await writeFile(draft, `${bytes.toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
    await link(draft, join(folder, KEY_FILE));
  } finally {
    await rm(draft, { force: true });
  }
  return { place: "file", bytes };
}

function toKey(text: string): Buffer | undefined {
  const bytes = Buffer.from(text.trim(), "base64url");
  return bytes.length === KEY_BYTES ? bytes : undefined;
}

/** A program of the system that keeps secrets. */
interface Keyring {
  readonly place: KeyPlace;
  readonly program: string;
  readonly look: readonly string[];
  readonly keep: readonly string[];
  /** What `keep` reads: a secret never stands on a command line, which other users can see. */
  toInput(secret: string): string;
}

function keyringOf({
  env,
  folder,
  platform = process.platform,
  keychain = "/usr/bin/security",
}: StoreKeyOptions): Keyring | undefined {
  if (env["WAYBILL_KEYRING"] === "off") return undefined;
  // Another folder has a key of its own.
  const account = `tokens-${createHash("sha256").update(folder).digest("hex").slice(0, 16)}`;
  if (platform === "darwin") {
    const named = ["-s", "waybill", "-a", account];
    return {
      place: "keychain",
      program: keychain,
      look: ["find-generic-password", ...named, "-w"],
      keep: ["-i"],
      toInput: (secret) => `add-generic-password ${named.join(" ")} -w ${secret}\n`,
    };
  }
  if (platform !== "linux") return undefined;
  const named = ["service", "waybill", "account", account];
  return {
    place: "secret-service",
    program: "secret-tool",
    look: ["lookup", ...named],
    keep: ["store", "--label=Waybill: key of kept logins", ...named],
    toInput: (secret) => secret,
  };
}

/** Nothing where the keyring has no key; a `StoreFault` where it does not answer. */
async function askKeyring(options: StoreKeyOptions): Promise<StoreKey | undefined> {
  const keyring = keyringOf(options);
  if (keyring === undefined) return undefined;
  const { place, program, look } = keyring;
  const { code, out } = await run(program, look, { input: "", env: options.env });
  if (code === undefined) {
    throw new StoreFault("keyring", `The ${KEY_PLACES[place]} does not answer; it may be locked.`);
  }
  const bytes = code === 0 ? toKey(out) : undefined;
  return bytes === undefined ? undefined : { place, bytes };
}

async function makeInKeyring(options: StoreKeyOptions): Promise<StoreKey | undefined> {
  const keyring = keyringOf(options);
  if (keyring === undefined) return undefined;
  const secret = randomBytes(KEY_BYTES).toString("base64url");
  const { code } = await run(keyring.program, keyring.keep, {
    input: keyring.toInput(secret),
    env: options.env,
  });
  if (code !== 0) return undefined;
  // Only what it gives back is kept there.
  const kept = await askKeyring(options).catch(() => undefined);
  return kept?.bytes.equals(Buffer.from(secret, "base64url")) === true ? kept : undefined;
}

/** What reaches the session of the user, and nothing else. */
const PASSED_ON = /^(?:PATH|HOME|USER|LOGNAME|LANG|DISPLAY|WAYLAND_DISPLAY|DBUS_.*|XDG_.*)$/;

interface Ran {
  /** Undefined where it could not be started, or did not end in time. */
  readonly code: number | undefined;
  readonly out: string;
}

function run(
  program: string,
  args: readonly string[],
  { input, env }: { readonly input: string; readonly env: StoreKeyOptions["env"] },
): Promise<Ran> {
  return new Promise((resolve) => {
    const passed = Object.fromEntries(Object.entries(env).filter(([name]) => PASSED_ON.test(name)));
    const child = spawn(program, args, {
      env: passed,
      stdio: ["pipe", "pipe", "ignore"],
      timeout: ANSWER_MS,
      killSignal: "SIGKILL",
    });
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out = (out + text).slice(0, MOST_BYTES);
    });
    child.on("error", () => resolve({ code: undefined, out: "" }));
    child.on("close", (code) => resolve({ code: code ?? undefined, out }));
    child.stdin.on("error", () => {
      // It reads nothing.
    });
    child.stdin.end(input);
  });
}
