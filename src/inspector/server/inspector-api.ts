import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import { CallError } from "../../core/errors/errors.ts";
import { toSchemaIssues } from "../../core/execution/execution.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import { type OperationSchema, toOperationSchema } from "../../core/schema/any-schema.ts";
import { OperationSearch } from "../../core/search/operation-search.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import type { Approver } from "../../gateway/approvals/approvals.ts";
import { clientBlocks } from "../../gateway/client-block.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { callerKey } from "../../gateway/serve/gateway-auth.ts";
import { servedPaths } from "../../gateway/serve/serve-settings.ts";
import { HEAVY_TOKENS, roundTokens, toolWeight } from "../../gateway/tool-weight.ts";
import type { NodeRequest } from "../../http/node-exchange.ts";
import type {
  AnswerRequest,
  CallView,
  DecideRequest,
  FindAnswer,
  FindRequest,
  Hello,
  IssueView,
  ReplicasAnswer,
  RetryAnswer,
  RetryRequest,
  SearchAnswer,
  SourceLogAnswer,
  SourcesAnswer,
  StartAnswer,
} from "../protocol.ts";
import { badRequest, noLongerLetIn } from "./answers.ts";
import { CallLog } from "./calls/call-log.ts";
import { BusTally, findCalls, viewOfCall } from "./calls/call-views.ts";
import { LiveFeeds } from "./calls/live-feeds.ts";
import { SourceLogs } from "./calls/source-logs.ts";
import { maskJson } from "./calls/written-json.ts";
import type { DecodeJob } from "./decode/decode-results.ts";
import { DecodeQueue, DecodeWorker } from "./decode/decode-worker.ts";
import type { InspectorOptions } from "./inspector.ts";
import {
  DECODED_BODY_BYTES,
  KEPT_CALLS,
  KEPT_CHARACTERS,
  KEPT_CHARACTERS_EACH,
  LARGE_BODY_BYTES,
  MOST_FIND_CHARACTERS,
  MOST_INPUT_VALUES,
  SMALL_BODY_BYTES,
} from "./inspector-limits.ts";
import {
  completionIn,
  originOf,
  type Posted,
  parsePosted,
  promptIn,
  readBody,
  readRunRequest,
  resourceIn,
  textIn,
} from "./read-posted.ts";
import { OpenQuestions, OperationRuns } from "./runs/run-operation.ts";
import { SourceOffers } from "./source-offers.ts";
import { findVisible, type Viewer } from "./viewer.ts";
import { OperationRows, viewOfOperation, viewsOfSources } from "./views.ts";

/** A request of a page. */
export interface PageRequest {
  readonly request: NodeRequest;
  readonly viewer: Viewer;
}

/** What a page is answered: JSON text, JSON that holds no secret any more, a value to be written, or nothing where it was a stream. */
export type PageAnswer =
  | { readonly json: string }
  | { readonly masked: Uint8Array }
  | { readonly value: unknown }
  | undefined;

type Get = (request: PageRequest, query: URLSearchParams) => PageAnswer | Promise<PageAnswer>;
interface Post {
  mostBytes(): number;
  answer(posted: Uint8Array, request: PageRequest): PageAnswer | Promise<PageAnswer>;
}
type PostedAnswer = (posted: Posted, request: PageRequest) => PageAnswer | Promise<PageAnswer>;

/** Sources that the first view weighs, the heaviest ones. */
const MOST_WEIGHED = 5;

/** All that a page may ask, by path. */
export class InspectorApi {
  readonly #options: InspectorOptions;
  readonly #log: CallLog;
  readonly #bus = new BusTally();
  readonly #stopObserving: () => void;
  readonly #rows: OperationRows;
  readonly #search = new OperationSearch();
  readonly #feeds: LiveFeeds;
  readonly #questions = new OpenQuestions();
  readonly #runs: OperationRuns;
  readonly #decodes = new DecodeQueue();
  readonly #inputs = new DecodeQueue();
  readonly #finds = new DecodeQueue();
  readonly #logs = new SourceLogs();
  readonly #offers: SourceOffers;
  readonly #stopWatching: () => void;
  readonly #thread = new DecodeWorker();
  readonly #retries = new Map<string, Promise<void>>();
  readonly #gets: ReadonlyMap<string, Get>;
  readonly #posts: ReadonlyMap<string, Post>;
  /** All that was ever secret here. */
  readonly #secrets = new SecretMask();
  #lastSecrets: SecretMask | undefined;
  #isClosed = false;

  constructor(options: InspectorOptions) {
    const { gateway, observer, loaded, telemetry, writeTimeoutMs } = options;
    const questions = this.#questions;
    const mask = (json: string): string => this.mask(json);
    const log = new CallLog(observer, {
      onChange: (call) => {
        this.#learnSecrets();
        this.#feeds.take(call);
      },
    });
    this.#options = options;
    this.#offers = new SourceOffers(gateway, options.onRead);
    this.#stopWatching = gateway.watchTraffic((wire) => this.#logs.take(wire));
    this.#log = log;
    this.#stopObserving = observer.listen({ bus: (call) => this.#bus.take(call) });
    this.#feeds = new LiveFeeds({
      log,
      gateway,
      loaded,
      write: (event) => `${mask(JSON.stringify(event))}\n`,
    });
    this.#rows = new OperationRows(gateway, (revision) => this.#feeds.takeOperations(revision));
    this.#runs = new OperationRuns({ gateway, log, questions, loaded, telemetry, mask, writeTimeoutMs });
    this.#learnSecrets();
    this.#gets = this.#createGets();
    this.#posts = this.#createPosts();
  }

  /** Takes secrets out of JSON, those of earlier configs too: all that goes to a page goes through here. */
  mask(json: string): string {
    const secrets = this.#knownSecrets();
    return maskJson(json, (text) => secrets.mask(text));
  }

  /** Answers what is asked at a path below the API. */
  async answer(path: string, request: PageRequest): Promise<PageAnswer> {
    const asked = request.request;
    const get = this.#gets.get(path);
    const post = this.#posts.get(path);
    if (this.#isClosed || (get === undefined && post === undefined)) {
      throw nothingHere();
    }
    const isRead = asked.method === "GET" || asked.method === "HEAD";
    if (get !== undefined && isRead) return await get(request, new URLSearchParams(asked.query));
    if (post === undefined || asked.method !== "POST") throw wrongMethod(post === undefined);
    const posted = await readBody(asked, post.mostBytes());
    // It may have been closed while the request was still arriving.
    if (this.#isClosed) throw nothingHere();
    if (!request.viewer.isCurrent()) throw noLongerLetIn();
    return await post.answer(posted, request);
  }

  /** Answers nothing new, lets calls under way end for that time, and forgets all. */
  async close(timeoutMs: number): Promise<void> {
    this.#isClosed = true;
    this.#feeds.close();
    this.#offers.close();
    this.#rows.close();
    this.#questions.close();
    try {
      await this.#runs.close(timeoutMs);
    } finally {
      this.#stopObserving();
      this.#stopWatching();
      this.#log.close();
      this.#logs.close();
      await this.#thread.close();
    }
  }

  /** What is remembered of calls is masked only when it is told, and may hold what was secret when they ran. */
  #learnSecrets(): void {
    const { secrets } = this.#options.loaded();
    if (secrets === this.#lastSecrets) return;
    if (this.#lastSecrets !== undefined) this.#secrets.addAll(this.#lastSecrets);
    this.#secrets.addAll(secrets);
    this.#lastSecrets = secrets;
  }

  #knownSecrets(): SecretMask {
    this.#learnSecrets();
    // More may be added to the config in use at any time.
    this.#secrets.addAll(this.#options.loaded().secrets);
    return this.#secrets;
  }

  #createGets(): ReadonlyMap<string, Get> {
    const { gateway, loaded, command } = this.#options;
    return new Map<string, Get>([
      [
        "hello",
        ({ viewer }) => ({
          value: { ...helloOf(loaded(), command, viewer), hasApprovals: gateway.approvals.isUsed },
        }),
      ],
      [
        "start",
        async ({ viewer }, query) => ({ value: await this.#start(query.get("origin") ?? "", viewer) }),
      ],
      ["live", (request) => this.#follow(request)],
      ["sources", ({ viewer }) => ({ value: this.#sources(viewer) })],
      ["log", ({ viewer }, query) => ({ value: this.#logOf(query, viewer) })],
      [
        "offers",
        async ({ viewer, request }) => ({ value: await this.#offers.list(viewer, request.response) }),
      ],
      ["operations", ({ viewer }) => ({ json: this.#rows.jsonFor(viewer.identity) })],
      [
        "search",
        async ({ viewer }, query) => ({ value: await this.#find(query.get("query") ?? "", viewer) }),
      ],
      [
        "operation",
        ({ viewer }, query) => {
          const operation = findVisible(gateway, query.get("id") ?? "", viewer);
          return { value: viewOfOperation(operation, gateway, loaded()) };
        },
      ],
      [
        "approvals",
        async ({ viewer }) => ({ value: { approvals: await gateway.approvals.list(approverOf(viewer)) } }),
      ],
      ["replicas", async ({ viewer }) => ({ value: await this.#replicas(viewer) })],
      ["call", ({ viewer }, query) => ({ value: this.#findCall(query.get("seq") ?? "", viewer) })],
    ]);
  }

  #createPosts(): ReadonlyMap<string, Post> {
    const { loaded } = this.#options;
    const large = (answer: PostedAnswer): Post => ({
      mostBytes: () => loaded().config.limits?.bodyBytes ?? LARGE_BODY_BYTES,
      answer: async (posted, request) => answer(await this.#readInput(posted, request), request),
    });
    const small = (answer: PostedAnswer): Post => ({
      mostBytes: () => SMALL_BODY_BYTES,
      answer: (posted, request) => answer(parsePosted(posted), request),
    });
    const decoded = (kind: DecodeJob["kind"]): Post => ({
      mostBytes: () => DECODED_BODY_BYTES,
      answer: (posted, { request }) => this.#decode({ kind, posted }, request.response),
    });
    return new Map<string, Post>([
      [
        "sources/retry",
        small((posted, { viewer }) => this.#retry(textIn<RetryRequest>(posted, "source"), viewer)),
      ],
      ["validate", large((posted, { viewer }) => this.#validate(posted, viewer))],
      ["run", large((posted, request) => this.#run(posted, request))],
      ["answer", small((posted, { viewer }) => this.#answerQuestion(posted, viewer))],
      [
        "offers/read",
        small((posted, { viewer, request }) =>
          this.#offers.read(resourceIn(posted), viewer, request.response),
        ),
      ],
      [
        "offers/prompt",
        small((posted, { viewer, request }) =>
          this.#offers.prompt(promptIn(posted), viewer, request.response),
        ),
      ],
      [
        "offers/complete",
        small((posted, { viewer, request }) =>
          this.#offers.complete(completionIn(posted), viewer, request.response),
        ),
      ],
      [
        "offers/follow",
        small(async (posted, { viewer, request }) => {
          await this.#offers.follow(resourceIn(posted), viewer, request.response);
          return undefined;
        }),
      ],
      [
        "calls/find",
        small((posted, request) => this.#findCalls(textIn<FindRequest>(posted, "text"), request)),
      ],
      ["approvals/decide", small((posted, { viewer }) => this.#decide(posted, viewer))],
      ["formats", decoded("formats")],
      ["decode", decoded("decode")],
    ]);
  }

  async #find(query: string, { identity }: Viewer): Promise<SearchAnswer> {
    const found = await this.#search.find(this.#options.gateway.executor.list({ identity }), query);
    return { operations: found.map(({ id }) => id) };
  }

  /** Traffic on the bus is everybody's, so that only operators are told. */
  #sources(viewer: Viewer): SourcesAnswer {
    const sources = viewsOfSources({ gateway: this.#options.gateway, log: this.#log }, viewer);
    const bus = viewer.isOperator ? this.#bus.traffic() : [];
    return bus.length === 0 ? { sources } : { sources, bus };
  }

  async #replicas({ isOperator }: Viewer): Promise<ReplicasAnswer> {
    if (!isOperator)
      throw new CallError("ACCESS_DENIED", "Replicas are shown to operators.", { stack: false });
    const { replicas, gateway } = this.#options;
    if (replicas === undefined) return { replicas: [] };
    return { own: gateway.state.replica, replicas: await replicas() };
  }

  #follow({ request, viewer }: PageRequest): PageAnswer {
    if (request.method === "HEAD") return { value: {} };
    this.#feeds.open(request.response, viewer);
    return undefined;
  }

  #findCall(seq: string, viewer: Viewer): CallView {
    const known = { log: this.#log, logs: this.#logs };
    const view = /^\d{1,15}$/.test(seq) ? viewOfCall(known, Number(seq), viewer) : undefined;
    if (view !== undefined) return view;
    throw new CallError("NOT_FOUND", "This call is not remembered.", { stack: false });
  }

  async #start(origin: string, viewer: Viewer): Promise<StartAnswer> {
    const { config } = this.#options.loaded();
    const path = servedPaths(config.serve).mcp;
    const { name = "waybill" } = config;
    const clients =
      path === undefined
        ? []
        : clientBlocks({ name, url: originOf(origin) + path, isAuthOn: viewer.isAuthOn });
    // What others may call is nothing to those who may not see it.
    if (!viewer.isOperator) return { clients };
    const weight = await toolWeight(this.#options.gateway, this.#options.loaded());
    const { tools: count, tokens, isCatalogue } = weight;
    const sources = weight.sources
      .slice(0, MOST_WEIGHED)
      .map((source) => ({ name: source.name, tokens: roundTokens(source.tokens) }));
    const isHeavy = tokens > HEAVY_TOKENS;
    return { clients, tools: { count, tokens: roundTokens(tokens), isHeavy, isCatalogue, sources } };
  }

  /** What passes to and from a server may be of anybody's call. */
  #logOf(query: URLSearchParams, { isOperator }: Viewer): SourceLogAnswer {
    if (!isOperator)
      throw new CallError("ACCESS_DENIED", "Only operators may read the log of a source.", { stack: false });
    return { lines: this.#logs.linesOf(query.get("source") ?? "", Number(query.get("after")) || 0) };
  }

  async #findCalls(text: string, { viewer, request }: PageRequest): Promise<PageAnswer> {
    if (text.trim() === "" || text.length > MOST_FIND_CHARACTERS)
      throw badRequest(`"text" must have from 1 to ${MOST_FIND_CHARACTERS} characters.`);
    const mask = (kept: string): string => this.#knownSecrets().mask(kept);
    return await this.#finds.run(request.response, async () => {
      const seqs = await findCalls(text, { log: this.#log, viewer, mask });
      return { value: { seqs } satisfies FindAnswer };
    });
  }

  /** A source that is being tried is not tried a second time meanwhile. */
  async #retry(name: string, viewer: Viewer): Promise<PageAnswer> {
    const { gateway } = this.#options;
    if (!viewer.isOperator)
      throw new CallError("ACCESS_DENIED", "Only operators may have a source tried again.", { stack: false });
    const source = gateway.sources.find((one) => one.name === name);
    if (source === undefined) throw new CallError("NOT_FOUND", "There is no such source.", { stack: false });
    const startedAt = performance.now();
    const trying = this.#retries.get(name) ?? source.retry().finally(() => this.#retries.delete(name));
    this.#retries.set(name, trying);
    await trying;
    const tookMs = Math.round(performance.now() - startedAt);
    const shown = viewsOfSources({ gateway, log: this.#log }, viewer).find((one) => one.name === name);
    if (shown === undefined) throw new CallError("NOT_FOUND", "The source is gone.", { stack: false });
    return { value: { source: shown, tookMs } satisfies RetryAnswer };
  }

  /** Large inputs are read one after the other, and others are answered in between. */
  async #readInput(posted: Uint8Array, { request, viewer }: PageRequest): Promise<Posted> {
    if (posted.length <= SMALL_BODY_BYTES) return parsePosted(posted, MOST_INPUT_VALUES);
    const read = await this.#inputs.run(request.response, async () => {
      await setImmediate();
      return parsePosted(posted, MOST_INPUT_VALUES);
    });
    if (this.#isClosed) throw nothingHere();
    if (!viewer.isCurrent()) throw noLongerLetIn();
    return read;
  }

  async #validate(posted: Posted, viewer: Viewer): Promise<PageAnswer> {
    const { operation: id, input } = readRunRequest(posted);
    const operation = findVisible(this.#options.gateway, id, viewer);
    return { value: { issues: await validateInput(operation, input) } };
  }

  async #run(posted: Posted, { viewer, request }: PageRequest): Promise<PageAnswer> {
    await this.#runs.run(readRunRequest(posted), viewer, request.response);
    return undefined;
  }

  /** Not even read here: all that takes long is done by another thread. */
  async #decode(job: Omit<DecodeJob, "secrets">, response: ServerResponse): Promise<PageAnswer> {
    return await this.#decodes.run(response, async () => {
      const secrets = [...this.#knownSecrets().values];
      return { masked: await this.#thread.run({ ...job, secrets }) };
    });
  }

  async #decide(posted: Posted, viewer: Viewer): Promise<PageAnswer> {
    const [id, decision] = [textIn<DecideRequest>(posted, "id"), textIn<DecideRequest>(posted, "decision")];
    if (decision !== "approve" && decision !== "deny")
      throw badRequest('"decision" must be "approve" or "deny".');
    const comment = posted["comment"] === undefined ? undefined : textIn<DecideRequest>(posted, "comment");
    const { approvals } = this.#options.gateway;
    await approvals.decide(id, { isApproved: decision === "approve", comment }, approverOf(viewer));
    return { value: {} };
  }

  #answerQuestion(posted: Posted, { identity }: Viewer): PageAnswer {
    const [requestId, key] = [
      textIn<AnswerRequest>(posted, "requestId"),
      textIn<AnswerRequest>(posted, "key"),
    ];
    const { action, content } = posted as Partial<AnswerRequest>;
    this.#questions.answer({ requestId, key, action, content } as AnswerRequest, callerKey(identity));
    return { value: {} };
  }
}

function approverOf({ identity }: Viewer): Approver {
  return { identity, via: "inspector" };
}

function nothingHere(): CallError {
  return new CallError("NOT_FOUND", "The inspector has nothing at this address.", { stack: false });
}

function wrongMethod(isRead: boolean): CallError {
  return badRequest(isRead ? "This address can only be read." : "This address is posted to.", 405);
}

/** Introduces a gateway to a page. */
function helloOf(
  loaded: LoadedConfig,
  command: Hello["command"],
  viewer: Viewer,
): Omit<Hello, "hasApprovals"> {
  const { config } = loaded;
  const subject = viewer.identity?.subject;
  return {
    name: config.name ?? "waybill",
    version: PACKAGE_VERSION,
    isAuthOn: viewer.isAuthOn,
    ...(subject !== undefined && { subject }),
    isOperator: viewer.isOperator,
    places: servedPaths(config.serve),
    kept: { calls: KEPT_CALLS, characters: KEPT_CHARACTERS, charactersEach: KEPT_CHARACTERS_EACH },
    // Flags hold paths and commands of the machine the gateway runs on.
    command: viewer.isOperator ? command : { ...command, flags: "" },
  };
}

/** Says where an input misses the schema of an operation; nothing is run but the check of the schema's own library, where it has one. */
async function validateInput(operation: AnyOperation, input: unknown): Promise<readonly IssueView[]> {
  if (operation.inputSchema === undefined) return [];
  const schema = compiled(operation);
  if (!schema.check(input)) return schema.errors(input);
  if (schema.validate === undefined) return [];
  try {
    const { issues } = await schema.validate(input);
    return issues === undefined ? [] : toSchemaIssues(issues, input);
  } catch (cause) {
    const message = `The schema of "${operation.id}" failed while it read the input.`;
    throw new CallError("VALIDATION_ERROR", message, { cause, stack: false });
  }
}

function compiled({ id, inputSchema = {} }: AnyOperation): OperationSchema {
  try {
    return toOperationSchema(inputSchema, "input");
  } catch (cause) {
    throw new CallError("NOT_IMPLEMENTED", `The input schema of "${id}" cannot be used.`, {
      cause,
      stack: false,
    });
  }
}
