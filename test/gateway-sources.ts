import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { SecretMask } from "../src/core/secrets/secret-mask.ts";
import type { GatewayConfig, LoadedConfig, Source, SourceState } from "../src/gateway/index.ts";
import { createSources, type SourcesOptions } from "../src/gateway/sources/create-sources.ts";

/** Ends something with the test, the last first. */
export function atEnd(close: () => unknown): void {
  // A hook of this module would be one of the first file alone that imports it.
  onTestFinished(async () => void (await close()));
}

/** Attempts follow each other quickly, so that tests need not wait. */
const QUICK = { delayMs: 30, maxDelayMs: 120 } as const;

/** A config as if it had been read. */
export function loadedConfig(config: GatewayConfig, extra: Partial<LoadedConfig> = {}): LoadedConfig {
  const secrets = new SecretMask();
  return { config, baseDir: process.cwd(), files: new Map(), faults: {}, warnings: [], secrets, ...extra };
}

/** Makes the sources of a config, which end with the test. */
export function makeSources(loaded: LoadedConfig, options: SourcesOptions = {}): Source[] {
  const sources = createSources(loaded, { reconnect: QUICK, ...options }).map(({ source }) => source);
  for (const source of sources) atEnd(() => source.close());
  return sources;
}

/** Makes the one source of a config, and notes its states. */
export function makeSource(loaded: LoadedConfig, options?: SourcesOptions) {
  const [source] = makeSources(loaded, options);
  if (source === undefined) throw new Error("The config has no source.");
  const states: SourceState[] = [];
  source.onState((state) => states.push(state));
  return { source, states };
}

/** The reason of a source that is down. */
export function reasonOf({ state }: Source): string {
  if (state.status !== "down") throw new Error(`It is ${state.status}.`);
  return state.reason;
}

/** A folder of its own for a test, with files. */
export function makeFolder(files: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), "waybill-sources-"));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}
