import { CallError, isCallError } from "../../../core/errors/errors.ts";
import { toPlatformSignal } from "../../../core/execution/cancellation.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import { invalidParams, type Params, quoted, resourceNotFound } from "../../protocol/messages.ts";
import type {
  McpCompletionRequest,
  McpPrompt,
  McpPromptMessages,
  McpProvider,
  McpProviderOptions,
} from "../../provider.ts";
import type { ToolNaming } from "../mcp-server-options.ts";
import type { PeerRequest, RequestReporter } from "../peer-request.ts";
import { forOlderRevision } from "../results/plain-format.ts";
import { type GivenResults, isResultUri, type StoredResults } from "../results/stored-results.ts";
import type { MayGoOn, SuspendableRun } from "../suspended-calls.ts";
import { assignToolNames, nameBesides } from "../tools/served-tools.ts";
import { type LocalRequestOptions, ProviderLists, type ProviderWarning } from "./provider-set.ts";
import { compareKeys, type Page, pageOf, type ResourceDirectory } from "./resource-directory.ts";
import type { ResourceSubscriptions } from "./resource-subscriptions.ts";

/** What a server offers besides tools. */
export interface ServedProviders {
  readonly resources: ResourceDirectory;
  readonly prompts: PromptDirectory;
  readonly subscriptions: ResourceSubscriptions;
  readonly stored: StoredResults | undefined;
  readonly given: GivenResults;
  readonly pageSize: number;
}

/** Answers one request. */
export type RequestAnswer = (params: Params, request: PeerRequest) => unknown;

/** The answers to requests about resources. */
export function resourceAnswers(served: ServedProviders): Readonly<Record<string, RequestAnswer>> {
  const { resources, pageSize } = served;
  return {
    "resources/list": async ({ cursor }, request) => {
      const { items, ...rest } = await resources.list(cursor, pageSize, quietOptions(request));
      return { resources: items, ...rest };
    },
    "resources/templates/list": async ({ cursor }, request) => {
      const { items, ...rest } = await resources.listTemplates(cursor, pageSize, quietOptions(request));
      return { resourceTemplates: items, ...rest };
    },
    "resources/read": (params, request) => readResource(served, textOf(params, "uri"), request),
  };
}

/** The answers to requests about changes of resources, which 2025 clients make. */
export function subscriptionAnswers({
  subscriptions,
}: ServedProviders): Readonly<Record<string, RequestAnswer>> {
  return {
    "resources/subscribe": async (params, request) => {
      const uri = textOf(params, "uri");
      await orNotFound(uri, () => subscriptions.add(request.peer, uri, quietOptions(request)));
      return {};
    },
    "resources/unsubscribe": async (params, request) => {
      const uri = textOf(params, "uri");
      await orNotFound(uri, () => subscriptions.remove(request.peer, uri, quietOptions(request)));
      return {};
    },
  };
}

/** The answers to requests about prompts. */
export function promptAnswers({
  prompts,
  resources,
  pageSize,
}: ServedProviders): Readonly<Record<string, RequestAnswer>> {
  return {
    "prompts/list": async ({ cursor }, request) => {
      const { items, ...rest } = await prompts.list(cursor, pageSize, quietOptions(request));
      return { prompts: items, ...rest };
    },
    "prompts/get": (params, request) => {
      const name = textOf(params, "name");
      const args = textsOf(params["arguments"]);
      return request.run(
        "prompts/get",
        name,
        async (run, exchange) => {
          const options = optionsOf(request, { run, exchange }, name);
          const { provider, filled } = await capably(request, () => prompts.get(name, args, options));
          const own = await resources.ownMessages(provider.namespace, filled, options);
          return forOlderRevision(own, request.revision);
        },
        stillFinds((options) => prompts.find(name, options)),
      );
    },
  };
}

/** The answer to a request for suggestions. */
export function completionAnswers(served: ServedProviders): Readonly<Record<string, RequestAnswer>> {
  return { "completion/complete": (params, request) => complete(served, params, request) };
}

function readResource(served: ServedProviders, uri: string, request: PeerRequest): unknown {
  return request.run(
    "resources/read",
    uri,
    async (run, exchange) => {
      // What an imported server keeps is not in the store here, whose addresses may begin the same.
      const isGiven = isResultUri(uri) && !served.given.isForeign(request.owner, uri);
      const stored = isGiven ? undefined : await served.stored?.read(uri, request);
      if (stored !== undefined) return stored;
      if (served.given.isForeign(request.owner, uri)) throw resourceNotFound(uri);
      const options = optionsOf(request, { run, exchange }, uri);
      return await capably(request, () => orNotFound(uri, () => served.resources.read(uri, options)));
    },
    stillFinds((options) => served.resources.find(uri, options)),
  );
}

/** Whether what a caller asked for is still there for them. */
function stillFinds(find: (options: McpProviderOptions) => Promise<unknown>): MayGoOn {
  return (identity) =>
    find({ identity }).then(
      () => true,
      () => false,
    );
}

async function complete(served: ServedProviders, params: Params, request: PeerRequest): Promise<unknown> {
  const { ref, argument, context } = params;
  if (!isPlainObject(ref) || !isPlainObject(argument))
    throw invalidParams("A completion needs a ref and an argument.");
  const named = { name: textOf(argument, "name"), value: textOf(argument, "value") };
  const known = isPlainObject(context) ? textsOf(context["arguments"]) : undefined;
  const options = quietOptions(request);
  const asked: Omit<McpCompletionRequest, "ref"> = {
    argument: named,
    ...(known !== undefined && { context: { arguments: known } }),
  };
  if (ref["type"] === "ref/prompt") {
    const { provider, name } = await served.prompts.find(textOf(ref, "name"), options);
    return await provider.complete({ ...asked, ref: { type: "ref/prompt", name } }, options);
  }
  if (ref["type"] !== "ref/resource") throw invalidParams("A ref is a ref/prompt or a ref/resource.");
  const { provider, uri } = await served.resources.findTemplate(textOf(ref, "uri"), options);
  return await provider.complete({ ...asked, ref: { type: "ref/resource", uri } }, options);
}

function optionsOf(
  { identity, party }: PeerRequest,
  { run, exchange }: { readonly run: SuspendableRun; readonly exchange: RequestReporter },
  logger: string,
): LocalRequestOptions {
  return {
    signal: toPlatformSignal(run.signal),
    caller: run.caller,
    identity,
    party,
    onProgress: (value) => exchange.progress(value),
    onLog: (line) => exchange.log(line, logger),
    onServerLog: (log) => exchange.message(log.level, log.data, log.logger),
  };
}

function quietOptions({ identity, party, signal }: PeerRequest): LocalRequestOptions {
  return { signal: toPlatformSignal(signal), identity, party };
}

function textOf(params: Params, field: string): string {
  const value = params[field];
  if (typeof value === "string") return value;
  throw invalidParams(`The request needs a "${field}", a string.`);
}

function textsOf(value: unknown): Readonly<Record<string, string>> | undefined {
  if (value === undefined) return undefined;
  if (isPlainObject(value) && Object.values(value).every((text) => typeof text === "string")) {
    return value as Record<string, string>;
  }
  throw invalidParams("Arguments must be an object of strings.");
}

async function orNotFound<T>(uri: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    if (isCallError(thrown) && thrown.code === "NOT_FOUND") throw resourceNotFound(uri);
    throw thrown;
  }
}

async function capably<T>(request: PeerRequest, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    if (thrown instanceof CallError) request.assertCapable(thrown);
    throw thrown;
  }
}

interface OwnedPrompt {
  readonly provider: McpProvider;
  readonly prompt: McpPrompt;
}

type Lists = readonly (readonly [McpProvider, readonly McpPrompt[]])[];

/** The prompts of all providers: those of this process under their own names, others under names made like those of tools. */
export class PromptDirectory {
  readonly #lists: ProviderLists<McpPrompt>;
  readonly #naming: ToolNaming;

  constructor(providers: () => readonly McpProvider[], naming: ToolNaming, warn: ProviderWarning) {
    this.#naming = naming;
    this.#lists = new ProviderLists(() => providers().filter(({ capabilities }) => capabilities.prompts), {
      what: "prompts",
      list: (provider, options) => provider.listPrompts(options),
      warn,
    });
  }

  /** One page of all prompts, sorted by name. */
  async list(cursor: unknown, pageSize: number, options: McpProviderOptions): Promise<Page<McpPrompt>> {
    const named = this.#name(await this.#lists.all(options));
    const items = [...named].map(([name, { prompt }]) => ({ ...prompt, name }));
    const sorted = items.toSorted((a, b) => compareKeys(a.name, b.name));
    return pageOf(sorted, ({ name }) => name, { cursor, pageSize });
  }

  /** Finds the prompt a name stands for; throws -32602 where there is none. */
  async find(name: string, options: McpProviderOptions): Promise<{ provider: McpProvider; name: string }> {
    const found =
      this.#name(await this.#lists.recent(options)).get(name) ??
      this.#name(await this.#lists.all(options)).get(name);
    if (found === undefined) throw invalidParams(`Unknown prompt: ${quoted(name)}.`);
    return { provider: found.provider, name: found.prompt.name };
  }

  /** Fills in a prompt, and says who did. */
  async get(
    name: string,
    args: Readonly<Record<string, string>> | undefined,
    options: McpProviderOptions,
  ): Promise<{ readonly provider: McpProvider; readonly filled: McpPromptMessages }> {
    const { provider, name: own } = await this.find(name, options);
    return { provider, filled: await provider.getPrompt(own, args, options) };
  }

  /** Forgets what a provider listed: it has said that it changed. */
  forget(provider: McpProvider): void {
    this.#lists.forget(provider);
  }

  #name(lists: Lists): ReadonlyMap<string, OwnedPrompt> {
    const named = new Map<string, OwnedPrompt>();
    const foreign = new Map<string, OwnedPrompt>();
    for (const [provider, prompts] of lists) {
      for (const prompt of prompts) {
        if (provider.namespace === "") named.set(prompt.name, { provider, prompt });
        else foreign.set(`${provider.namespace}.${prompt.name}`, { provider, prompt });
      }
    }
    const { byId, taken } = assignToolNames(foreign.keys(), this.#naming);
    const isTaken = new Set([...taken, ...named.keys()]);
    for (const [id, name] of byId) {
      const owned = foreign.get(id) as OwnedPrompt;
      named.set(named.has(name) ? nameBesides(id, isTaken, this.#naming) : name, owned);
    }
    return named;
  }
}
