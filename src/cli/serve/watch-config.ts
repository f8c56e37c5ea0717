import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { type FileStamps, stampsOf } from "../../gateway/file-stamps.ts";
import { findFiles } from "../../gateway/glob.ts";
import { watchStamps } from "../../gateway/watch-stamps.ts";
import { importedFiles } from "./imported-files.ts";

/** What a config is made of. */
export interface ConfigParts {
  /** As it was before any of it was loaded. */
  readonly stamps: FileStamps;
  /** Looks at it as it is now, modules that have come included. */
  look(): Promise<FileStamps>;
}

/** Who hears what. */
export interface ConfigListeners {
  /** Hears that something has changed; not told again before it has ended. */
  onChange(): Promise<void>;
  /** Hears why nothing can be followed for now. */
  onFault(cause: unknown): void;
}

/** Watches what a config is made of. */
export interface ConfigWatch {
  /** Watches what this config is made of from now on. */
  expect(parts: ConfigParts): void;
  /** Watches files besides: a config that cannot be used may wait for them. */
  expectAlso(files: FileStamps): void;
  close(): void;
}

/**
 * Finds what a config is made of: its files, modules of operations, and what modules in TypeScript import. Nothing else that lies beside
 * them counts: modules may write files of their own. Called before modules are loaded, so that a change while they are is one.
 * Documents are watched by their sources.
 */
export async function findParts({ config, path, files, baseDir }: LoadedConfig): Promise<ConfigParts> {
  const { operations = [] } = config;
  const patterns = typeof operations === "string" ? [operations] : operations;
  const find = (): Promise<string[]> => findFiles(patterns, baseDir);
  // Where they cannot be found, the source says why, and so does every look.
  const found = await find().catch(() => []);
  const imported = await importedFiles(path === undefined ? found : [path, ...found]);
  const stamps = new Map([...(await stampsOf([...imported, ...found])), ...files]);
  const look = async (): Promise<FileStamps> => {
    const own = await stampsOf([...files.keys(), ...imported]);
    try {
      return new Map([...(await stampsOf(await find())), ...own]);
    } catch (cause) {
      // The config itself may have mended what keeps its modules from being found.
      if (Array.from(own).every(([file, stamp]) => stamps.get(file) === stamp)) throw cause;
      return new Map([...stamps, ...own]);
    }
  };
  return { stamps, look };
}

/** Tells of changes to what a config is made of, one at a time. */
export function watchConfig(parts: ConfigParts, { onChange, onFault }: ConfigListeners): ConfigWatch {
  let current = parts;
  let others: FileStamps = new Map();
  const look = async (): Promise<FileStamps> =>
    new Map([...(await stampsOf(others.keys())), ...(await current.look())]);
  const watch = watchStamps({ known: parts.stamps, look, onChange, onFault });
  return {
    expect(next) {
      current = next;
      others = new Map();
      watch.expect(next.stamps);
    },
    expectAlso(files) {
      // Those of an earlier attempt are still among what is known.
      others = new Map([...others, ...files]);
      watch.expectAlso(files);
    },
    close: () => watch.close(),
  };
}
