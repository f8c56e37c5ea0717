import { isAbsolute, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Credential } from "../../openapi/client/auth/credentials.ts";
import type { OpenApiOptions, OpenApiSource } from "../../openapi/index.ts";
import { actOnApi, createCallerScopeNotes } from "../callers/act-on-api.ts";
import { actingApi, schemeOf } from "../callers/acting-source.ts";
import { createCallerTokens } from "../callers/caller-tokens.ts";
import type { OpenApiConfig } from "../config/gateway-config.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import { stampOf, watchFile } from "../watch-stamps.ts";
import { RetriedSource } from "./retried-source.ts";
import { describeAddress, secretsIn, type Wording } from "./shown-text.ts";
import {
  asFault,
  type Backing,
  type BackingFacts,
  type Source,
  type SourceContext,
  unlessAborted,
} from "./source.ts";
import {
  type ApiLogin,
  checkLogin,
  createLoginCredential,
  createScopeNotes,
  isLogin,
  loginOfApi,
  loginWording,
  type ScopeNotes,
  type SourceLogin,
} from "./source-login.ts";

/** Operations of a document up to which what is odd about each is looked for: each has to be read for it. */
const MOST_NOTED = 500;

/** Makes a source of an HTTP API. Its document is read again when the file changes, or when it is retried. */
export function createOpenApiSource(name: string, api: OpenApiConfig, around: SourceContext): Source {
  const { loaded, reconnect } = around;
  const warn = around.warnerOf(name);
  const acting = actingApi(name, api, loaded);
  const login = acting === undefined ? loginOfApi(name, api, loaded) : undefined;
  const callers =
    acting && ([schemeOf(acting, api), actOnApi(acting, around.logins, createCallerTokens(acting))] as const);
  const notes = acting ? createCallerScopeNotes(acting, around.logins) : login && createScopeNotes(login);
  return new RetriedSource({
    name,
    kind: "openapi",
    target: around.shown(describeAddress(api.document)),
    secrets: loaded.secrets,
    reconnect,
    warn,
    wording: { ...(login !== undefined && loginWording(name)), ...wordingOf(name, loaded) },
    ...(notes !== undefined && { review: notes.review }),
    open: async (signal) => {
      const [{ fromOpenApi }, { checkOpenApiOptions }] = await Promise.all([
        import("../../openapi/client/from-openapi.ts"),
        import("../../openapi/client/openapi-options.ts"),
      ]);
      const document = toDocument(api.document, loaded.baseDir);
      const secrets = secretsIn(api, loaded.secrets);
      const options = { ...toApiOptions(api, login, callers), namespace: name, secrets, onWarning: warn };
      asFault(() => checkOpenApiOptions(document, options));
      const stamp = stampOf(document);
      const reading = fromOpenApi(document, options);
      const source = await unlessAborted(reading, signal, (late) => late.close());
      return new OpenApiBacking(source, { document, stamp, around, warn, login, notes });
    },
  });
}

/** Names the fields of the config, or whatever else says who is asking. */
function wordingOf(name: string, { authHint, privateHint }: LoadedConfig): Wording {
  const place = `openapi.${name}`;
  return {
    "document-credentials": authHint ?? `Set ${place}.auth or ${place}.headers.`,
    "private-address": privateHint ?? `name it in ${place}.allowPrivate`,
  };
}

/** An absolute path, or an address. */
export function toDocument(document: string, baseDir: string): string {
  if (/^https?:/i.test(document)) return document;
  return resolve(baseDir, /^file:/i.test(document) ? fileURLToPath(document) : document);
}

/** How an API is called; with its login as one of its credentials, where it has one. */
export function toApiOptions(
  api: OpenApiConfig,
  login?: ApiLogin,
  /** What stands for the caller, and the name of the credential that it is. */
  callers?: readonly [scheme: string, credential: Credential],
): Omit<OpenApiOptions, "namespace" | "onWarning"> {
  const { document: _, disabled: __, policy: ___, identity: ____, auth, ...options } = api;
  // A person who logs in is nothing that the library knows of.
  const own: [string, Credential][] = Object.entries(auth ?? {}).flatMap(([name, credential]) =>
    isLogin(credential) ? [] : [[name, credential as Credential]],
  );
  if (login !== undefined) {
    checkLogin(login, api);
    own.push([login.scheme, createLoginCredential(login)]);
  }
  if (callers !== undefined) own.push([...callers]);
  const given = { ...options, ...(own.length > 0 && { auth: Object.fromEntries(own) }) };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

interface DocumentPlan {
  readonly document: string;
  /** Its stamp from before it was read. */
  readonly stamp: string;
  readonly around: SourceContext;
  readonly login: SourceLogin | undefined;
  readonly notes: ScopeNotes | undefined;
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
      ...(this.#plan.login?.kept.isThere === false && { login: "wanted" }),
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
    await Promise.all([this.#source.close(), this.#plan.notes?.settled()]);
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
