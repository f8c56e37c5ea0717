import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { isPlainObject } from "../../core/json/json-value.ts";

/** What is kept for one server: tokens, and what this client is known by. */
export type StoredAuthorization = Readonly<Record<string, unknown>>;

/** Where tokens are kept from one run to the next. */
export interface TokenStore {
  load(): Promise<StoredAuthorization | undefined>;
  save(stored: StoredAuthorization): Promise<void>;
}

/** Keeps tokens for as long as the process lives. */
export function createMemoryTokenStore(): TokenStore {
  let held: StoredAuthorization | undefined;
  return {
    load: async () => held,
    save: async (stored) => {
      held = stored;
    },
  };
}

/** Keeps tokens in a file that only its owner may read, and that is replaced whole; one that cannot be read counts as none. */
export function createFileTokenStore(path: string): TokenStore {
  let last: Promise<void> = Promise.resolve();
  return {
    load: () => readStored(path),
    save: (stored) => {
      last = last.catch(() => {}).then(() => replaceFile(path, `${JSON.stringify(stored)}\n`));
      return last;
    },
  };
}

async function readStored(path: string): Promise<StoredAuthorization | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const value: unknown = JSON.parse(text);
    return isPlainObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { mode: 0o600, flag: "wx" });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
