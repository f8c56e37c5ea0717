import { isAbsolute, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { OpenApiOptions, OpenApiSource } from "../../openapi/index.ts";
import type { OpenApiConfig } from "../config/gateway-config.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import { stampOf } from "../file-stamps.ts";
import { RetriedSource } from "./retried-source.ts";
import { describeAddress } from "./shown-target.ts";
import { secretsIn, type Wording } from "./shown-text.ts";
import type { Source } from "./source.ts";
import { asFault } from "./source-fault.ts";
import type { Backing, BackingFacts } from "./source-plan.ts";
import type { Surroundings } from "./surroundings.ts";
import { unlessAborted } from "./unless-aborted.ts";
import { watchFile } from "./watch-file.ts";

/** Operations of a document up to which what is odd about each is looked for: each has to be read for it. */
const MOST_NOTED = 500;

/** Makes a source of an HTTP API. Its document is read again when the file changes, or when it is retried. */
export function createOpenApiSource(name: string, api: OpenApiConfig, around: Surroundings): Source {
  const { loaded, reconnect } = around;
  const warn = around.warnerOf(name);
  return new RetriedSource({
    name,
    kind: "openapi",
    target: around.shown(describeAddress(api.document)),
    secrets: loaded.secrets,
    reconnect,
    warn,
    wording: wordingOf(name, loaded),
    open: async (signal) => {
      const [{ fromOpenApi }, { checkOpenApiOptions }] = await Promise.all([
        import("../../openapi/client/from-openapi.ts"),
        import("../../openapi/client/check-options.ts"),
      ]);
      const document = toDocument(api.document, loaded.baseDir);
      const secrets = secretsIn(api, loaded.secrets);
      const options = { ...toApiOptions(api), namespace: name, secrets, onWarning: warn };
      asFault(() => checkOpenApiOptions(document, options));
      const stamp = stampOf(document);
      const reading = fromOpenApi(document, options);
      const source = await unlessAborted(reading, signal, (late) => late.close());
      return new OpenApiBacking(source, { document, stamp, around, warn });
    },
  });
}

/** Names the fields of the config, or whatever else says who is asking. */
function wordingOf(name: string, { authHint, privateHint }: LoadedConfig): Wording {
  const place = `openapi.${name}`;
  return [
    [/Give headers, or auth\.bearer or auth\.basic.*$/, authHint ?? `Set ${place}.auth or ${place}.headers.`],
    [/name it in the option allowPrivate/, privateHint ?? `name it in ${place}.allowPrivate`],
  ];
}

/** An absolute path, or an address. */
export function toDocument(document: string, baseDir: string): string {
  if (/^https?:/i.test(document)) return document;
  return resolve(baseDir, /^file:/i.test(document) ? fileURLToPath(document) : document);
}

/** How an API is called. */
export function toApiOptions(api: OpenApiConfig): Omit<OpenApiOptions, "namespace" | "onWarning"> {
  const { document: _, disabled: __, policy: ___, ...options } = api;
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

interface DocumentPlan {
  readonly document: string;
  /** Its stamp from before it was read. */
  readonly stamp: string;
  readonly around: Surroundings;
  warn(message: string, cause?: unknown): void;
}

/** A document that was read. */
class OpenApiBacking implements Backing {
  readonly #source: OpenApiSource;
  readonly #plan: DocumentPlan;
  readonly #stopWatching: () => void;
  #notes: BackingFacts["notes"] | undefined;

  constructor(source: OpenApiSource, plan: DocumentPlan) {
    this.#source = source;
    this.#plan = plan;
    source.onChange(() => {
      this.#notes = undefined;
    });
    const { document: path, stamp, around } = plan;
    const isWatched = isAbsolute(path) && around.loaded.watchDocuments !== false;
    const listener = (): void => this.#reread();
    this.#stopWatching = isWatched ? watchFile({ path, stamp, listener }) : () => {};
  }

  get operations() {
    return this.#source.operations;
  }

  facts(): BackingFacts {
    const { title, version, unusable } = this.#source;
    const { shown } = this.#plan.around;
    this.#notes ??= this.#findNotes();
    return {
      unusable: unusable.map(({ name, reason }) => ({ name: shown(name), reason: shown(reason) })),
      notes: this.#notes,
      title: shown(title),
      version: shown(version),
    };
  }

  onChange(listener: () => void): void {
    this.#source.onChange(listener);
  }

  refresh(): Promise<void> {
    return this.#source.refresh();
  }

  async close(): Promise<void> {
    this.#stopWatching();
    await this.#source.close();
  }

  #findNotes(): BackingFacts["notes"] {
    const { operations } = this.#source;
    const { shown } = this.#plan.around;
    if (operations.length > MOST_NOTED) return [];
    return this.#source.notes.map(({ operationId, note }) => ({
      name: shown(operationId),
      note: shown(note),
    }));
  }

  #reread(): void {
    this.#source.refresh().catch((cause: unknown) => {
      this.#plan.warn("Its document has changed and cannot be used; everything stays as it was.", cause);
    });
  }
}
