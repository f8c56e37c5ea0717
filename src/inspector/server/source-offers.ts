import type { ServerResponse } from "node:http";
import { CallError } from "../../core/errors/errors.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { callerKey } from "../../gateway/serve/gateway-auth.ts";
import { liveProviders } from "../../gateway/serve/gateway-mcp.ts";
import type { ReadRecord } from "../../gateway/serve/observe/observer.ts";
import type { McpProvider, McpProviderOptions } from "../../mcp/provider.ts";
import type {
  CompleteRequest,
  FollowEvent,
  OffersAnswer,
  PromptRequest,
  ResourceRequest,
} from "../protocol.ts";
import { badRequest, failureOf, LINES_HEADERS } from "./answers.ts";
import { writtenJson } from "./calls/written-json.ts";
import {
  ACCESS_INTERVAL_MS,
  LONGEST_FEED_MS,
  MOST_FOLLOWED,
  MOST_FOLLOWED_EACH,
  MOST_OFFERED,
  MOST_OFFERS_ASKED,
  MOST_OFFERS_ASKED_EACH,
  MOST_RESULT_CHARACTERS,
  MOST_WAITING_BYTES,
  OFFER_TIMEOUT_MS,
} from "./inspector-limits.ts";
import type { Viewer } from "./viewer.ts";

const MOST_NAME = 500;
const MOST_TEXT = 2_000;
const MOST_ADDRESS = 4_000;
const MOST_ARGUMENTS = 100;
const MOST_COMPLETIONS = 100;

/** What stands for one who follows a resource. */
interface Follower {
  readonly viewer: Viewer;
  end(): void;
}

/** How much of something pages may have at a time: all of them together, and one caller of it. */
interface Room {
  readonly most: number;
  readonly mostEach: number;
  readonly message: string;
}

const FOLLOWING: Room = {
  most: MOST_FOLLOWED,
  mostEach: MOST_FOLLOWED_EACH,
  message: "Pages follow as many resources as they may; stop following one of them.",
};
const ASKING: Room = {
  most: MOST_OFFERS_ASKED,
  mostEach: MOST_OFFERS_ASKED_EACH,
  message: "As many requests for resources and prompts as may run at a time run already; try again later.",
};

/** Throws where one more has no room; where nobody is told apart, one caller may have all of it. */
function assertRoom(
  taken: Iterable<{ readonly viewer: Viewer }>,
  { isAuthOn, identity }: Viewer,
  room: Room,
): void {
  const own = callerKey(identity);
  const all = [...taken];
  const owned = all.filter(({ viewer }) => callerKey(viewer.identity) === own).length;
  if (all.length < room.most && (!isAuthOn || owned < room.mostEach)) return;
  throw new CallError("RESOURCE_EXHAUSTED", room.message, { stack: false });
}

/** What the MCP servers of a gateway offer besides tools, as a caller may use it. */
export class SourceOffers {
  readonly #providers: ReturnType<typeof liveProviders>;
  readonly #followers = new Set<Follower>();
  readonly #asking = new Set<{ readonly viewer: Viewer }>();

  constructor(
    gateway: Pick<Gateway, "sources" | "onSources" | "policies">,
    onRead?: (record: ReadRecord) => void,
  ) {
    this.#providers = liveProviders(gateway, onRead);
  }

  /** Lists all that the caller may use; a source that does not answer takes nothing from the others. */
  async list(viewer: Viewer, response: ServerResponse): Promise<OffersAnswer> {
    return await this.#ask(viewer, response, async (options) => {
      const providers = this.#providersFor(viewer);
      const sources = await Promise.all(providers.map((provider) => listOf(provider, options)));
      return { sources };
    });
  }

  async read(
    { source, uri }: ResourceRequest,
    viewer: Viewer,
    response: ServerResponse,
  ): Promise<{ json: string }> {
    return await this.#ask(viewer, response, async (options) =>
      toJson(await this.#find(source, viewer).readResource(uri, options)),
    );
  }

  /** Fills in a prompt. */
  async prompt(
    { source, name, arguments: given }: PromptRequest,
    viewer: Viewer,
    response: ServerResponse,
  ): Promise<{ json: string }> {
    return await this.#ask(viewer, response, async (options) =>
      toJson(await this.#find(source, viewer).getPrompt(name, given, options)),
    );
  }

  /** Suggests values for an argument of a prompt or a template; none where the server suggests none. */
  async complete(
    { source, ref, argument, given }: CompleteRequest,
    viewer: Viewer,
    response: ServerResponse,
  ): Promise<{ value: { values: readonly string[] } }> {
    return await this.#ask(viewer, response, async (options) => {
      const provider = this.#find(source, viewer);
      if (!provider.capabilities.completions) return { value: { values: [] } };
      const request = { ref, argument, ...(given !== undefined && { context: { arguments: given } }) };
      const { completion } = await provider.complete(request, options);
      const values = completion.values.filter((value) => typeof value === "string");
      return {
        value: { values: values.slice(0, MOST_COMPLETIONS).map((value) => value.slice(0, MOST_NAME)) },
      };
    });
  }

  /** Tells a page each time a resource changes, until it leaves or has to ask again. */
  async follow({ source, uri }: ResourceRequest, viewer: Viewer, response: ServerResponse): Promise<void> {
    assertRoom(this.#followers, viewer, FOLLOWING);
    const provider = this.#find(source, viewer);
    if (!provider.capabilities.resourceSubscriptions)
      throw badRequest(
        `The source "${source.slice(0, MOST_NAME)}" tells nobody of changes to its resources.`,
      );
    const follower: Follower = { viewer, end: () => response.end() };
    // From here on it counts: others may ask while the server answers.
    this.#followers.add(follower);
    try {
      await this.#begin({ provider, uri, follower }, response);
    } catch (thrown) {
      this.#followers.delete(follower);
      throw thrown;
    }
  }

  async #begin(
    {
      provider,
      uri,
      follower,
    }: { readonly provider: McpProvider; readonly uri: string; readonly follower: Follower },
    response: ServerResponse,
  ): Promise<void> {
    const { viewer } = follower;
    const options = { identity: viewer.identity, timeoutMs: OFFER_TIMEOUT_MS };
    await provider.subscribeResource(uri, options);
    const leave = (): void => void provider.unsubscribeResource(uri, options).catch(() => {});
    // A reader who has gone by now says nothing any more.
    if (response.destroyed) {
      this.#followers.delete(follower);
      return leave();
    }
    const tell = (event: FollowEvent): void => {
      if (!viewer.isCurrent()) response.end();
      else if (response.writableLength < MOST_WAITING_BYTES) response.write(`${JSON.stringify(event)}\n`);
    };
    response.writeHead(200, LINES_HEADERS);
    tell({ type: "following" });
    const stop = provider.onEvent((event) => {
      if (event.type === "resource-updated" && event.uri === uri) tell({ type: "updated", at: Date.now() });
    });
    const look = setInterval(() => viewer.isCurrent() || response.end(), ACCESS_INTERVAL_MS).unref();
    const timer = setTimeout(() => response.end(), LONGEST_FEED_MS).unref();
    response.once("close", () => {
      this.#followers.delete(follower);
      clearInterval(look);
      clearTimeout(timer);
      stop();
      leave();
    });
  }

  /** Ends all that is followed. */
  close(): void {
    for (const { end } of this.#followers) end();
  }

  #providersFor({ identity }: Viewer): readonly McpProvider[] {
    return this.#providers.current.filter((provider) => provider.isFor?.(identity) !== false);
  }

  #find(source: string, viewer: Viewer): McpProvider {
    const provider = this.#providersFor(viewer).find(({ namespace }) => namespace === source);
    if (provider !== undefined) return provider;
    throw new CallError("NOT_FOUND", "There is no such source.", { stack: false });
  }

  async #ask<T>(
    viewer: Viewer,
    response: ServerResponse,
    run: (options: McpProviderOptions) => Promise<T>,
  ): Promise<T> {
    assertRoom(this.#asking, viewer, ASKING);
    const leaving = new AbortController();
    const leave = (): void => leaving.abort();
    const asked = { viewer };
    response.once("close", leave);
    this.#asking.add(asked);
    try {
      return await run({ identity: viewer.identity, signal: leaving.signal, timeoutMs: OFFER_TIMEOUT_MS });
    } finally {
      this.#asking.delete(asked);
      response.off("close", leave);
    }
  }
}

type SourceOffersView = OffersAnswer["sources"][number];

async function listOf(provider: McpProvider, options: McpProviderOptions): Promise<SourceOffersView> {
  const { namespace: source, capabilities } = provider;
  const { resources: hasResources, prompts: hasPrompts, resourceSubscriptions, completions } = capabilities;
  const none: SourceOffersView = {
    source,
    resources: [],
    templates: [],
    prompts: [],
    more: 0,
    ...(resourceSubscriptions && { canFollow: true }),
    ...(completions && { canComplete: true }),
  };
  try {
    const [resources, templates, prompts] = await Promise.all([
      hasResources ? provider.listResources(options) : [],
      hasResources ? provider.listResourceTemplates(options) : [],
      hasPrompts ? provider.listPrompts(options) : [],
    ]);
    const kept = (list: readonly unknown[]): number => Math.max(0, list.length - MOST_OFFERED);
    return {
      ...none,
      resources: resources
        .slice(0, MOST_OFFERED)
        .map((one) => ({ ...textsOf(one), uri: textOf(one.uri, MOST_ADDRESS) })),
      templates: templates
        .slice(0, MOST_OFFERED)
        .map((one) => ({ ...textsOf(one), uriTemplate: textOf(one.uriTemplate, MOST_ADDRESS) })),
      prompts: prompts.slice(0, MOST_OFFERED).map((one) => ({
        ...textsOf(one),
        arguments: (Array.isArray(one.arguments) ? one.arguments : [])
          .slice(0, MOST_ARGUMENTS)
          .map((argument) => ({
            name: textOf(argument.name, MOST_NAME),
            description: textOf((argument as { description?: unknown }).description, MOST_TEXT),
            ...(argument.required === true && { required: true }),
          })),
      })),
      more: kept(resources) + kept(templates) + kept(prompts),
    };
  } catch (thrown) {
    return { ...none, error: failureOf(thrown) };
  }
}

function textsOf(one: { readonly name: string; readonly [field: string]: unknown }) {
  const title = textOf(one["title"], MOST_NAME);
  const description = textOf(one["description"], MOST_TEXT);
  const mimeType = textOf(one["mimeType"], MOST_NAME);
  return {
    name: textOf(one.name, MOST_NAME),
    ...(title !== "" && { title }),
    ...(description !== "" && { description }),
    ...(mimeType !== "" && { mimeType }),
  };
}

function textOf(value: unknown, most: number): string {
  return typeof value === "string" ? value.slice(0, most) : "";
}

function toJson(value: unknown): { json: string } {
  const written = writtenJson(value, MOST_RESULT_CHARACTERS);
  if ("text" in written) return { json: written.text };
  const message = `The answer has more than ${MOST_RESULT_CHARACTERS.toLocaleString("en")} characters, the most that are sent to pages.`;
  throw new CallError("TOO_LARGE", message, { stack: false });
}
