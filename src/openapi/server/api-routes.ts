import { CallError, isCallError } from "../../core/errors/errors.ts";
import type { IdempotencyStore } from "../../core/idempotency/idempotency-store.ts";
import { readIdempotencyKey } from "../../core/idempotency/idempotent-calls.ts";
import { CallSlots } from "../../core/limits/call-slots.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { readBounds } from "../../core/options/check-options.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import { nearestName } from "../../core/text/nearest-name.ts";
import type { AnswerHeaders, AuthenticatedRequest, HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import type { Admission } from "./admission.ts";
import {
  accessRefusal,
  CallRunner,
  fingerprint,
  type GenericCall,
  readGenericCall,
  runBatch,
  type WantedCall,
} from "./call-runner.ts";
import { createDocsPage, pageCredentials } from "./docs-page.ts";
import type { OpenApiDocument } from "./document/openapi-document.ts";
import { EventStreams } from "./event-streams.ts";
import { HTTP_BOUNDS, type HttpHandlerBounds, type HttpHandlerOptions } from "./http-handler-options.ts";
import {
  answerIndex,
  answerOperationFacts,
  answerWithProgress,
  idInPath,
  noSuchOperation,
  OPERATIONS_PATH,
  type OperationDirectory,
} from "./operation-routes.ts";
import { refuseOr, requestError, type Warn } from "./problem-answer.ts";
import { PostedBodies, type PostedInput, readPatience, readReserved } from "./read-request.ts";
import {
  idOfPath,
  type OperationRoute,
  operationPath,
  type QueryParameter,
  RouteTable,
  readQuery,
} from "./route-table.ts";
import type { SharedStreams } from "./shared-streams.ts";
import { TASKS_PATH, TaskRoutes } from "./task-routes.ts";
import { ServedDocument } from "./to-openapi.ts";
import {
  createNegotiation,
  type Negotiation,
  nextPageLink,
  type Representation,
  withEntityTag,
} from "./write-answer.ts";

const READ = { allow: "GET, HEAD, OPTIONS" };
const POSTED = { allow: "POST, OPTIONS" };

/** What an API stands on. */
interface ApiRoutesParts {
  readonly admission: Admission;
  readonly warn: Warn;
  /** Where idempotency keys are kept. @default in this process */
  readonly keys: IdempotencyStore | undefined;
  /** What replicas share of subscriptions. @default nothing */
  readonly streams: SharedStreams | undefined;
}

/** Everything an API serves to callers it knows. */
export class ApiRoutes {
  readonly #executor: Executor;
  readonly #bounds: HttpHandlerBounds;
  readonly #negotiation: Negotiation;
  readonly #table: RouteTable;
  readonly runner: CallRunner;
  readonly streams: EventStreams;
  readonly #bodies: PostedBodies;
  readonly #document: ServedDocument;
  readonly #docs: ReturnType<typeof createDocsPage> | undefined;
  readonly #explainMissing: HttpHandlerOptions["explainMissing"];
  readonly #directory: OperationDirectory | undefined;
  readonly #tasks: TaskRoutes | undefined;
  readonly #stopHearing: () => void;

  constructor(
    executor: Executor,
    options: HttpHandlerOptions,
    { admission, warn, keys, streams }: ApiRoutesParts,
  ) {
    const { challenge, decides, stepUp } = admission;
    this.#executor = executor;
    this.#explainMissing = options.explainMissing;
    this.#directory = options.directory;
    this.#bounds = readBounds(options.limits, HTTP_BOUNDS);
    this.#negotiation = createNegotiation(options.formats ?? [], options.formatOf);
    this.#table = new RouteTable(executor, options.basePath ?? "/api");
    const { isCurrent = () => true, onReplay } = options;
    const { bodyBytes } = this.#bounds;
    const slots = new CallSlots(this.#bounds, decides);
    const running = {
      bounds: this.#bounds,
      slots,
      challenge,
      stepUp,
      isShared: decides,
      keys,
      onReplay,
      warn,
    };
    this.runner = new CallRunner(executor, running);
    this.#bodies = new PostedBodies({ slots, bodyBytes, isCurrent });
    this.streams = new EventStreams({
      executor,
      limits: this.#bounds,
      isShared: decides,
      negotiation: this.#negotiation,
      runner: this.runner,
      bodies: this.#bodies,
      isCurrent,
      warn,
      shared: streams,
    });
    const { tasks } = options;
    this.#tasks =
      tasks &&
      new TaskRoutes({ tasks, executor, runner: this.runner, slots, negotiation: this.#negotiation });
    this.#document = new ServedDocument(executor, options);
    const title = options.info?.title ?? "Waybill";
    const page = { title, documentPath: "/openapi.json", credentials: pageCredentials(options) };
    this.#docs = options.docs === false ? undefined : createDocsPage(page);
    this.#stopHearing = executor.onChange(() => {
      this.#table.clear();
      this.#document.clear();
    });
  }

  /** Answers a request; what is thrown is a `CallError`, or a fault of this side. */
  answer(caller: AuthenticatedRequest): Promise<HttpAnswer> | HttpAnswer {
    const { request } = caller;
    const route = this.#table.find(request.path);
    if (route !== undefined) return this.#answerOperation(route, caller);
    switch (request.path) {
      case "/call":
        return refuseOr(caller, POSTED, () => this.#answerCall(caller));
      case "/batch":
        return refuseOr(caller, POSTED, () => this.#answerBatch(caller));
      case "/openapi.json":
        return refuseOr(caller, READ, async () =>
          this.#tagged(request, await this.#document.answer(caller.identity, request.origin)),
        );
      default:
        return this.#answerOther(caller);
    }
  }

  close(): void {
    this.#stopHearing();
    this.streams.drop();
  }

  #answerOperation(route: OperationRoute, caller: AuthenticatedRequest): Promise<HttpAnswer> | HttpAnswer {
    const { operation, place, allow } = route;
    const answer = (): Promise<HttpAnswer> => {
      if (operation.type === "subscription") return this.streams.answer(route, caller);
      return place.place === "query"
        ? this.#answerGet(route, place.parameters, caller)
        : this.#answerPost(route, caller);
    };
    const allowed = { allow, operationId: operation.id };
    if (operation.access === undefined) return refuseOr(caller, allowed, answer);
    if (allow.includes(caller.request.method) && caller.request.method !== "OPTIONS")
      return this.#accessFirst(operation, caller, answer);
    const refusal = accessRefusal(this.#executor, operation, caller.identity);
    if (refusal !== undefined) throw refusal;
    return refuseOr(caller, allowed, answer);
  }

  /** A caller who may not call an operation at all hears that alone, whatever else is wrong with the request. */
  async #accessFirst(
    operation: AnyOperation,
    { identity }: AuthenticatedRequest,
    answer: () => Promise<HttpAnswer>,
  ): Promise<HttpAnswer> {
    try {
      return await answer();
    } catch (thrown) {
      if (!isCallError(thrown)) throw thrown;
      throw accessRefusal(this.#executor, operation, identity) ?? thrown;
    }
  }

  async #answerGet(
    route: OperationRoute,
    parameters: readonly QueryParameter[],
    caller: AuthenticatedRequest,
  ): Promise<HttpAnswer> {
    const { request, identity } = caller;
    const reserved = readReserved(request.query);
    const representation = this.#negotiation.choose(request.header("accept"), reserved.format, identity);
    const { input } = readQuery(reserved.rest, parameters);
    let link: string | undefined;
    const onEnd = (call: EndedCall): void => {
      link = nextPageLink(call, request.query);
    };
    const wanted: WantedCall = {
      caller,
      operationId: route.operation.id,
      input,
      representation,
      timeoutMs: this.#patienceOf(request),
      onEnd: route.hasCursor ? onEnd : undefined,
    };
    const answer = await this.#run(wanted);
    const headers = answer.headers as AnswerHeaders;
    headers["cache-control"] ??= answer.status < 300 ? "private, no-cache" : "no-store";
    if (link !== undefined) headers["link"] = link;
    return this.#tagged(request, answer);
  }

  async #answerPost(route: OperationRoute, caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const representation = this.#representationFor(caller);
    const posted = await this.#bodies.read(caller);
    const call = { operationId: route.operation.id, input: posted.value };
    const wanted = this.#wanted(caller, { call, posted }, representation);
    const answer = await this.#run(wanted);
    (answer.headers as AnswerHeaders)["cache-control"] ??= "no-store";
    return answer;
  }

  async #answerCall(caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const posted = await this.#bodies.read(caller);
    const call = readGenericCall(posted.value);
    const operation = this.#executor.get(call.operationId);
    const answer = async (): Promise<HttpAnswer> => {
      if (this.#negotiation.prefersEvents(caller.request.header("accept"))) {
        const whole = this.#wanted(caller, { call, posted }, { kind: "envelope" });
        return answerWithProgress((hears) => this.runner.run({ ...whole, hears }));
      }
      const wanted = this.#wanted(caller, { call, posted }, this.#representationFor(caller));
      const answered = await this.#run(wanted);
      (answered.headers as AnswerHeaders)["cache-control"] ??= "no-store";
      return answered;
    };
    if (operation === undefined || operation.visibility === "internal") return answer();
    return this.#accessFirst(operation, caller, () =>
      operation.type === "subscription" ? this.streams.answerCall(call, caller) : answer(),
    );
  }

  /** Runs a call; one whose client would rather not wait may be answered with a task. */
  #run(wanted: WantedCall): Promise<HttpAnswer> {
    const isLater = this.#tasks !== undefined && wanted.caller.request.header("prefer") !== undefined;
    return (isLater ? this.#tasks?.runLater(wanted) : undefined) ?? this.runner.run(wanted);
  }

  #wanted(
    caller: AuthenticatedRequest,
    { call, posted }: { readonly call: GenericCall; readonly posted: PostedInput },
    representation: Representation,
  ): WantedCall {
    const { request } = caller;
    const { bytes, isWire } = posted;
    const key = readIdempotencyKey(request.header("idempotency-key"));
    const patience = this.#patienceOf(request);
    const { operationId, input, timeoutMs = patience } = call;
    return {
      caller,
      operationId,
      input,
      representation,
      timeoutMs: Math.min(patience, timeoutMs),
      idempotencyKey: key,
      fingerprint: key === undefined ? undefined : `${isWire} ${fingerprint(bytes)}`,
    };
  }

  async #answerBatch(caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const { request } = caller;
    const representation = this.#representationFor(caller);
    const idempotencyKey = readIdempotencyKey(request.header("idempotency-key"));
    const { value } = await this.#bodies.read(caller);
    const timeoutMs = this.#patienceOf(request);
    const limit = this.#bounds.batch;
    return runBatch(this.runner, value, { caller, representation, timeoutMs, idempotencyKey, limit });
  }

  /** Answers with the API page; nothing for other paths. Callers who were refused get it too, but not the document. */
  async answerDocs(
    caller: AuthenticatedRequest,
    readDocument?: () => Promise<OpenApiDocument>,
  ): Promise<HttpAnswer | undefined> {
    const page = await this.#docs?.(caller.request.path, readDocument);
    return page && refuseOr(caller, READ, () => page);
  }

  async #answerOther(caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const facts = this.#answerFacts(caller) ?? this.#tasks?.answer(caller);
    if (facts !== undefined) return facts;
    const page = await this.answerDocs(caller, () => this.#document.value(caller.identity));
    if (page !== undefined) return page;
    const { basePath } = this.#table;
    throw this.#explain(caller, basePath) ?? nothingThere(caller, this.#executor, basePath);
  }

  /** Answers what there is, and what is known of one operation; nothing for other paths. */
  #answerFacts(caller: AuthenticatedRequest): Promise<HttpAnswer> | HttpAnswer | undefined {
    const directory = this.#directory;
    const { request, identity } = caller;
    if (directory === undefined) return undefined;
    const id = idInPath(request.path);
    if (id === undefined && request.path !== OPERATIONS_PATH) return undefined;
    const listing = { directory, executor: this.#executor };
    return refuseOr(caller, READ, () => {
      const answer =
        id === undefined ? answerIndex(listing, caller) : answerOperationFacts(listing, caller, id);
      if (answer === undefined) throw this.#explainMissing?.(id ?? "", identity) ?? noSuchOperation();
      return this.#tagged(request, answer);
    });
  }

  #explain({ request, identity }: AuthenticatedRequest, basePath: string): CallError | undefined {
    const id = idOfPath(request.path, basePath);
    return id === undefined ? undefined : this.#explainMissing?.(id, identity);
  }

  #representationFor({ request, identity }: AuthenticatedRequest): Representation {
    return this.#negotiation.choose(request.header("accept"), readReserved(request.query).format, identity);
  }

  #patienceOf(request: HttpRequest): number {
    return Math.min(readPatience(request, this.#bounds.timeoutMs), this.#bounds.timeoutMs);
  }

  #tagged(request: HttpRequest, answer: HttpAnswer): HttpAnswer {
    return withEntityTag(answer, request.header("if-none-match"));
  }
}

const OWN_PATHS = [
  "/batch",
  "/call",
  "/docs",
  "/health",
  "/openapi.json",
  "/operations",
  "/ready",
  TASKS_PATH,
];
const SHOWN_CHARACTERS = 200;
/** How many paths of about the same length are compared; each takes some microseconds. */
const COMPARED = 200;
/** The most letters that are wrong in a name which is still recognised. */
const SLIPS = 2;

/** Says that nothing is at an address, and which one may be meant: of the operations, only those that the caller may see. */
function nothingThere(
  { request, identity }: AuthenticatedRequest,
  executor: Executor,
  basePath: string,
): CallError {
  const { path, method } = request;
  const asked = path.slice(0, SHOWN_CHARACTERS);
  const isOperation = path.startsWith(`${basePath}/`);
  const paths = executor.list({ identity }).map((operation) => operationPath(operation, basePath));
  const near = findNear(asked, basePath, isOperation ? paths : [...OWN_PATHS, ...paths]);
  const hint =
    near !== undefined
      ? ` Did you mean ${JSON.stringify(near)}?`
      : method === "GET"
        ? " See /openapi.json for what is there."
        : "";
  const what = isOperation ? "no operation" : "nothing";
  const message = `There is ${what} at ${JSON.stringify(asked)}.${hint}`;
  return isOperation
    ? new CallError("OPERATION_NOT_FOUND", message, { stack: false })
    : requestError("NOT_FOUND", message);
}

function findNear(asked: string, basePath: string, paths: readonly string[]): string | undefined {
  const whole = paths.includes(basePath + asked) ? basePath + asked : undefined;
  const alike = paths.filter((path) => Math.abs(path.length - asked.length) <= SLIPS).slice(0, COMPARED);
  return whole ?? nearestName(asked, alike);
}
