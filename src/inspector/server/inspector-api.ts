import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import { CallError } from "../../core/errors/errors.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import { callerKey } from "../../gateway/serve/caller-key.ts";
import type { NodeRequest } from "../../http/node-exchange.ts";
import type { AnswerAsk, CallView, RetryAnswer, RetryAsk, SourcesAnswer } from "../protocol.ts";
import type { LookAsk } from "./answer-look.ts";
import { CallLog } from "./call-log.ts";
import { BusTally } from "./call-stats.ts";
import { badRequest, noLongerLetIn } from "./failure-of.ts";
import { findVisible } from "./find-visible.ts";
import { helloOf } from "./hello-of.ts";
import {
  LARGE_BODY_BYTES,
  LOOKED_BODY_BYTES,
  MOST_INPUT_VALUES,
  SMALL_BODY_BYTES,
} from "./inspector-limits.ts";
import type { InspectorOptions } from "./inspector-options.ts";
import { LiveFeeds } from "./live-feeds.ts";
import { LookQueue } from "./look-queue.ts";
import { LookThread } from "./look-thread.ts";
import { maskJson } from "./mask-json.ts";
import { OpenQuestions } from "./open-questions.ts";
import { OperationRows } from "./operation-rows.ts";
import { type Posted, parsePosted, readAsk, readRunAsk, textIn } from "./read-ask.ts";
import { OperationRuns } from "./run-operation.ts";
import { validateInput } from "./validate-input.ts";
import { viewOfCall } from "./view-of-call.ts";
import { viewOfOperation } from "./view-of-operation.ts";
import { viewsOfSources } from "./view-of-source.ts";
import type { Viewer } from "./viewer.ts";

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

/** All that a page may ask, by path. */
export class InspectorApi {
  readonly #options: InspectorOptions;
  readonly #log: CallLog;
  readonly #bus = new BusTally();
  readonly #stopObserving: () => void;
  readonly #rows: OperationRows;
  readonly #feeds: LiveFeeds;
  readonly #questions = new OpenQuestions();
  readonly #runs: OperationRuns;
  readonly #looks = new LookQueue();
  readonly #inputs = new LookQueue();
  readonly #thread = new LookThread();
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
    const posted = await readAsk(asked, post.mostBytes());
    // It may have been closed while the request was still arriving.
    if (this.#isClosed) throw nothingHere();
    if (!request.viewer.isCurrent()) throw noLongerLetIn();
    return await post.answer(posted, request);
  }

  /** Answers nothing new, lets calls under way end for that time, and forgets all. */
  async close(timeoutMs: number): Promise<void> {
    this.#isClosed = true;
    this.#feeds.close();
    this.#rows.close();
    this.#questions.close();
    try {
      await this.#runs.close(timeoutMs);
    } finally {
      this.#stopObserving();
      this.#log.close();
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
      ["hello", ({ viewer }) => ({ value: helloOf(loaded(), command, viewer) })],
      ["live", (request) => this.#follow(request)],
      ["sources", ({ viewer }) => ({ value: this.#sources(viewer) })],
      ["operations", ({ viewer }) => ({ json: this.#rows.jsonFor(viewer.identity) })],
      [
        "operation",
        ({ viewer }, query) => {
          const operation = findVisible(gateway, query.get("id") ?? "", viewer);
          return { value: viewOfOperation(operation, gateway, loaded()) };
        },
      ],
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
    const looked = (look: LookAsk["look"]): Post => ({
      mostBytes: () => LOOKED_BODY_BYTES,
      answer: (posted, { request }) => this.#look({ look, posted }, request.response),
    });
    return new Map<string, Post>([
      [
        "sources/retry",
        small((posted, { viewer }) => this.#retry(textIn<RetryAsk>(posted, "source"), viewer)),
      ],
      ["validate", large((posted, { viewer }) => this.#validate(posted, viewer))],
      ["run", large((posted, request) => this.#run(posted, request))],
      ["answer", small((posted, { viewer }) => this.#answerQuestion(posted, viewer))],
      ["formats", looked("formats")],
      ["decode", looked("decode")],
    ]);
  }

  /** Traffic on the bus is everybody's, so that only operators are told. */
  #sources(viewer: Viewer): SourcesAnswer {
    const sources = viewsOfSources({ gateway: this.#options.gateway, log: this.#log }, viewer);
    const bus = viewer.isOperator ? this.#bus.traffic() : [];
    return bus.length === 0 ? { sources } : { sources, bus };
  }

  #follow({ request, viewer }: PageRequest): PageAnswer {
    if (request.method === "HEAD") return { value: {} };
    this.#feeds.open(request.response, viewer);
    return undefined;
  }

  #findCall(seq: string, viewer: Viewer): CallView {
    const view = /^\d{1,15}$/.test(seq) ? viewOfCall(this.#log, Number(seq), viewer) : undefined;
    if (view !== undefined) return view;
    throw new CallError("NOT_FOUND", "This call is not remembered.", { stack: false });
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
    const { operation: id, input } = readRunAsk(posted);
    const operation = findVisible(this.#options.gateway, id, viewer);
    return { value: { issues: await validateInput(operation, input) } };
  }

  async #run(posted: Posted, { viewer, request }: PageRequest): Promise<PageAnswer> {
    await this.#runs.run(readRunAsk(posted), viewer, request.response);
    return undefined;
  }

  /** Not even read here: all that takes long is done by another thread. */
  async #look(ask: Omit<LookAsk, "secrets">, response: ServerResponse): Promise<PageAnswer> {
    return await this.#looks.run(response, async () => {
      const secrets = [...this.#knownSecrets().values];
      return { masked: await this.#thread.look({ ...ask, secrets }) };
    });
  }

  #answerQuestion(posted: Posted, { identity }: Viewer): PageAnswer {
    const [requestId, key] = [textIn<AnswerAsk>(posted, "requestId"), textIn<AnswerAsk>(posted, "key")];
    const { action, content } = posted as Partial<AnswerAsk>;
    this.#questions.answer({ requestId, key, action, content } as AnswerAsk, callerKey(identity));
    return { value: {} };
  }
}

function nothingHere(): CallError {
  return new CallError("NOT_FOUND", "The inspector has nothing at this address.", { stack: false });
}

function wrongMethod(isRead: boolean): CallError {
  return badRequest(isRead ? "This address can only be read." : "This address is posted to.", 405);
}
