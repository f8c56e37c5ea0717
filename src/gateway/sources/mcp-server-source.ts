import { resolve } from "node:path";
import type { McpConnectionOptions } from "../../mcp/client/connection-options.ts";
import type { McpSourceOptions } from "../../mcp/client/from-mcp.ts";
import type { McpConnection, McpConnectionState } from "../../mcp/client/mcp-connection.ts";
import type { McpSource } from "../../mcp/client/mcp-source.ts";
import type { ServerLog } from "../../mcp/index.ts";
import { actOnServer } from "../callers/act-on-server.ts";
import { actingServer } from "../callers/acting-source.ts";
import { createCallerTokens } from "../callers/caller-tokens.ts";
import { findDistrust } from "../config/config-files.ts";
import type { McpServerConfig } from "../config/gateway-config.ts";
import { type LoadedConfig, mountEnv } from "../config/loaded-config.ts";
import { ChangedTools } from "../lock/changed-tools.ts";
import { sourceError } from "../missing-operation.ts";
import { type FileWatch, stampOf, watchFile } from "../watch-stamps.ts";
import { RetriedSource } from "./retried-source.ts";
import { describeServer, secretsIn } from "./shown-text.ts";
import {
  asFault,
  type Backing,
  type BackingFacts,
  type BackingWatcher,
  type Source,
  type SourceContext,
  SourceFault,
  unlessAborted,
} from "./source.ts";
import { checkLogin, followLogin, loginOfServer, loginWording, type SourceLogin } from "./source-login.ts";
import { ProviderSlot, SourceProvider } from "./source-provider.ts";

/** Credentials, and whose they are: no other authorization server is shown them. */
type OAuthConfig = NonNullable<McpServerConfig["oauth"]>;

/** Makes a source of an MCP server: a process that is started, or an address. */
export function createMcpSource(name: string, server: McpServerConfig, around: SourceContext): Source {
  const { loaded, reconnect } = around;
  const login = loginOfServer(name, server, loaded);
  const following = login && followLogin(login, () => source);
  const slot = new ProviderSlot(name, () =>
    sourceError(source, "cannot be asked", `it is ${source.state.status}.`),
  );
  const source: Source = new RetriedSource({
    name,
    kind: "mcp",
    target: around.shown(describeServer(server)),
    secrets: loaded.secrets,
    reconnect,
    provider: new SourceProvider(slot),
    isMadeAnew: true,
    warn: around.warnerOf(name),
    ...(login !== undefined && { wording: loginWording(name) }),
    open: (signal, watcher) => {
      following?.begin();
      const plan = { name, server, around, slot, watcher, lock: readLock(loaded, server), login };
      return openServer(plan, signal);
    },
    onState: (state) => {
      slot.setUp(state.status === "up");
      following?.onState(state);
    },
  });
  return source;
}

interface ServerPlan {
  readonly name: string;
  readonly server: McpServerConfig;
  readonly around: SourceContext;
  readonly slot: ProviderSlot;
  readonly watcher: BackingWatcher;
  /** Where approved tools are kept, if it is locked, with the stamp from before they were read. */
  readonly lock: Pick<FileWatch, "path" | "stamp"> | undefined;
  readonly login: SourceLogin | undefined;
}

/** Connects and lists. The parts of `fromMcp`, so that closing ends an attempt at once and states are heard of. */
async function openServer(plan: ServerPlan, signal: AbortSignal): Promise<Backing> {
  const [{ checkConnectionOptions }, { McpConnection }, { checkImportOptions, importServer }] =
    await Promise.all([
      import("../../mcp/client/connection-options.ts"),
      import("../../mcp/client/mcp-connection.ts"),
      import("../../mcp/client/from-mcp.ts"),
    ]);
  const options = await toOptions(plan);
  asFault(() => {
    checkConnectionOptions(options);
    checkImportOptions(options);
  });
  signal.throwIfAborted();
  const onWire = plan.around.wireOf?.(plan.name);
  const connection = new McpConnection(options, onWire);
  const acting = actingServer(plan.name, plan.server, plan.around.loaded);
  const { logins } = plan.around;
  const link =
    acting === undefined
      ? connection
      : actOnServer({
          source: acting,
          logins,
          tokens: createCallerTokens(acting),
          own: connection,
          options,
          onWire,
        });
  const end = (): void => void connection.close();
  signal.addEventListener("abort", end, { once: true });
  try {
    await connection.open();
    const importing = importServer(link, options, signal);
    const source = await unlessAborted(importing, signal, (late) => late.close());
    return new McpBacking(source, connection, plan);
  } catch (thrown) {
    await connection.close();
    throw thrown;
  } finally {
    signal.removeEventListener("abort", end);
  }
}

async function toOptions({ name, server, around, login }: ServerPlan): Promise<McpSourceOptions> {
  const { loaded, reconnect, propagate, onServerLog } = around;
  const { recoverJson, keepIds, instructions, said, maskResults } = server;
  const lockFile = lockPath(loaded, server);
  const distrust = lockFile === undefined ? undefined : await findDistrust(lockFile);
  if (distrust !== undefined) throw new SourceFault(`The lock file "${lockFile}" ${distrust}`);
  const { createResultReader } = await import("../../formats/index.ts");
  const started = { ...server, env: { ...server.env, ...mountEnv(loaded) } };
  return {
    ...(await toMcpConnection(started, loaded.baseDir, login)),
    namespace: name,
    onWarning: around.warnerOf(name),
    reader: createResultReader(),
    ...(onServerLog !== undefined && { onLog: (log: ServerLog) => onServerLog(name, log) }),
    ...(reconnect !== undefined && { reconnect }),
    ...(propagate !== undefined && { propagate }),
    ...(recoverJson !== undefined && { recoverJson }),
    ...(keepIds !== undefined && { keepIds }),
    ...(instructions !== undefined && { instructions }),
    ...(said !== undefined && { said }),
    ...(maskResults !== undefined && { maskResults }),
    secrets: secretsIn(server, loaded.secrets),
    ...(lockFile !== undefined && { pin: { lockFile } }),
  };
}

/** How a server is connected to; a `SourceFault` where that cannot work. */
export async function toMcpConnection(
  server: McpServerConfig,
  baseDir: string,
  login?: SourceLogin,
): Promise<McpConnectionOptions> {
  const { type, command, args, env, cwd, inheritEnv, url, headers, bearer, oauth, allowHttp } = server;
  const { protocol, connectTimeoutMs } = server;
  const settings = {
    ...(protocol !== undefined && { protocol }),
    ...(connectTimeoutMs !== undefined && { connectTimeoutMs }),
  };
  if (command !== undefined) {
    return {
      ...settings,
      command,
      cwd: resolve(baseDir, cwd ?? "."),
      ...(args !== undefined && { args }),
      ...(env !== undefined && { env }),
      ...(inheritEnv !== undefined && { inheritEnv }),
    };
  }
  if (url === undefined) throw new SourceFault("It has neither a command nor a url");
  return {
    ...settings,
    url,
    // Any other type leaves it to the server: hosts write "http" for both transports.
    ...(type === "sse" && { type }),
    ...(headers !== undefined && { headers }),
    ...(bearer !== undefined && { auth: { bearer } }),
    ...(oauth !== undefined && oauth.login !== true && { auth: { oauth2: await toOAuth(oauth) } }),
    ...(login !== undefined && { auth: { oauth2: await toLoginStore(login) } }),
    ...(allowHttp !== undefined && { allowHttp }),
  };
}

async function toLoginStore(login: SourceLogin) {
  checkLogin(login);
  const { createLoginStore } = await import("../../http/oauth/login.ts");
  return createLoginStore(login.kept, login.client);
}

async function toOAuth({ clientId, clientSecret, scope, issuer }: OAuthConfig) {
  if (clientId === undefined) throw new SourceFault("oauth needs a clientId, or login: true");
  const { createOAuthStore } = await import("../../http/oauth/oauth-store.ts");
  return asFault(() => createOAuthStore({ clientId, clientSecret, scope, issuer }));
}

function readLock(loaded: LoadedConfig, server: McpServerConfig): ServerPlan["lock"] {
  const path = lockPath(loaded, server);
  return path === undefined ? undefined : { path, stamp: stampOf(path) };
}

/** Where the approved tools of a server are kept, if it is locked. */
export function lockPath(loaded: LoadedConfig, server: McpServerConfig): string | undefined {
  const { lock = false } = loaded.config;
  return (server.lock ?? lock !== false) ? lockFileOf(loaded) : undefined;
}

/** Where approved tools are kept, whether or not anybody asks for it. */
export function lockFileOf({ config, baseDir }: LoadedConfig): string {
  return resolve(baseDir, typeof config.lock === "string" ? config.lock : "waybill.lock.json");
}

/** A server that is connected; it reconnects by itself. */
class McpBacking implements Backing {
  readonly #source: McpSource;
  readonly #plan: ServerPlan;
  readonly #stop: () => void;
  readonly #stopWatching: (() => void) | undefined;
  readonly #changed: ChangedTools;

  constructor(source: McpSource, connection: McpConnection, plan: ServerPlan) {
    this.#source = source;
    this.#plan = plan;
    this.#changed = new ChangedTools((text) => plan.around.loaded.secrets.mask(text));
    this.#stop = connection.onEvent((event) => event.type === "state" && this.#mirror(event.state));
    plan.slot.put(source);
    const warn = plan.around.warnerOf(plan.name);
    // What is approved elsewhere holds here as well.
    const listener = (): void => {
      source.refresh().catch((cause) => warn("What was approved is not known.", cause));
    };
    this.#stopWatching = plan.lock && watchFile({ ...plan.lock, listener });
    this.#mirror(connection.state);
  }

  get operations() {
    return this.#source.operations;
  }

  facts(): BackingFacts {
    const { server, unusable, notes, refused } = this.#source;
    const { shown } = this.#plan.around;
    const { name, title, version } = server.serverInfo ?? {};
    const called = typeof title === "string" && title !== "" ? title : name;
    return {
      unusable: unusable.map(({ tool, reason }) => ({ name: shown(tool), reason: shown(reason) })),
      notes: notes.map(({ tool, note }) => ({ name: shown(tool), note: shown(note) })),
      protocol: shown(server.protocolVersion),
      ...(typeof called === "string" && { title: shown(called) }),
      ...(typeof version === "string" && { version: shown(version) }),
      ...(refused !== undefined && { changed: this.#changed.write(refused) }),
    };
  }

  onChange(listener: () => void): void {
    this.#source.onChange(listener);
  }

  refresh(): Promise<void> {
    return this.#source.refresh();
  }

  async close(): Promise<void> {
    this.#stop();
    this.#stopWatching?.();
    this.#plan.slot.remove(this.#source);
    await this.#source.close();
  }

  /** An attempt to connect again changes nothing until it is known how it ends. */
  #mirror(state: McpConnectionState): void {
    const { watcher } = this.#plan;
    if (state.status === "ready") watcher.up();
    else if (state.status === "down")
      watcher.down(new Error(`${capital(state.reason)}.`, { cause: state.cause }), state.retryAt);
  }
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
