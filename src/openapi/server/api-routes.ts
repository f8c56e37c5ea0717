import { type CallError, isCallError } from "../../core/errors/errors.ts";
import { readIdempotencyKey } from "../../core/idempotency/idempotent-calls.ts";
import { CallSlots } from "../../core/limits/call-slots.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import type { AnswerHeaders, AuthenticatedRequest, HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { createNegotiation, type Negotiation, type Representation } from "./accept.ts";
import { accessRefusal } from "./access-first.ts";
import type { Admission } from "./admission.ts";
import { type GenericCall, readGenericCall, runBatch } from "./batch.ts";
import { CallRunner, fingerprint } from "./call-runner.ts";
import { type HttpHandlerBounds, readHandlerBounds } from "./check-handler-options.ts";
import { createDocsPage, pageCredentials } from "./docs-page.ts";
import type { OpenApiDocument } from "./document/openapi-document.ts";
import type { HttpHandlerOptions } from "./http-handler-options.ts";
import { idOfPath, type QueryParameter, readQuery } from "./input-place.ts";
import { nothingThere } from "./nothing-there.ts";
import { readPatience } from "./patience.ts";
import { PostedBodies } from "./posted-bodies.ts";
import { refuseMethod } from "./problem-answer.ts";
import type { PostedInput } from "./read-input.ts";
import { readReserved } from "./reserved-query.ts";
import { type Route, RouteTable } from "./route-table.ts";
import { ServedDocument } from "./served-document.ts";
import { StreamRoutes } from "./stream-routes.ts";
import type { Warn } from "./warnings.ts";
import { nextPageLink, withEntityTag } from "./write-answer.ts";

const READ = { allow: "GET, HEAD, OPTIONS" };
const POSTED = { allow: "POST, OPTIONS" };

/** Everything an API serves to callers it knows. */
export class ApiRoutes {
  readonly #executor: Executor;
  readonly #bounds: HttpHandlerBounds;
  readonly #negotiation: Negotiation;
  readonly #table: RouteTable;
  readonly #runner: CallRunner;
  readonly #streams: StreamRoutes;
  readonly #bodies: PostedBodies;
  readonly #document: ServedDocument;
  readonly #docs: ReturnType<typeof createDocsPage> | undefined;
  readonly #explainMissing: HttpHandlerOptions["explainMissing"];
  readonly #stopHearing: () => void;

  constructor(
    executor: Executor,
    options: HttpHandlerOptions,
    { admission, warn }: { readonly admission: Admission; readonly warn: Warn },
  ) {
    const { challenge, decides } = admission;
    this.#executor = executor;
    this.#explainMissing = options.explainMissing;
    this.#bounds = readHandlerBounds(options.limits);
    this.#negotiation = createNegotiation(options.formats ?? [], options.formatOf);
    this.#table = new RouteTable(executor, options.basePath ?? "/api");
    const { isCurrent = () => true, onReplay } = options;
    const { bodyBytes } = this.#bounds;
    const slots = new CallSlots(this.#bounds, decides);
    const running = { bounds: this.#bounds, slots, challenge, isShared: decides, onReplay, warn };
    this.#runner = new CallRunner(executor, running);
    this.#bodies = new PostedBodies({ slots, bodyBytes, isCurrent });
    this.#streams = new StreamRoutes({
      executor,
      limits: this.#bounds,
      isShared: decides,
      negotiation: this.#negotiation,
      runner: this.#runner,
      bodies: this.#bodies,
      isCurrent,
      warn,
    });
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

  /** Ends all subscriptions; whoever reads is told why. */
  endStreams(error: CallError): void {
    this.#streams.end(error);
  }

  /** Ends the subscriptions of callers who are not let in any more. */
  recheck(): void {
    this.#streams.recheck();
  }

  /** Ends the calls that go on although their clients have left. */
  abortCalls(error: CallError): void {
    this.#runner.abort(error);
  }

  close(): void {
    this.#stopHearing();
    this.#streams.drop();
  }

  #answerOperation(route: Route, caller: AuthenticatedRequest): Promise<HttpAnswer> | HttpAnswer {
    const { operation, place, allow } = route;
    const answer = (): Promise<HttpAnswer> => {
      if (operation.type === "subscription") return this.#streams.answer(route, caller);
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

  /** Whoever may not call an operation at all hears that alone, whatever else is wrong with the request. */
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
    route: Route,
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
    const answer = await this.#runner.run({
      caller,
      operationId: route.operation.id,
      input,
      representation,
      timeoutMs: this.#patienceOf(request),
      onEnd: route.hasCursor ? onEnd : undefined,
    });
    const headers = answer.headers as AnswerHeaders;
    headers["cache-control"] ??= answer.status < 300 ? "private, no-cache" : "no-store";
    if (link !== undefined) headers["link"] = link;
    return this.#tagged(request, answer);
  }

  async #answerPost(route: Route, caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const representation = this.#representationFor(caller);
    const posted = await this.#bodies.read(caller);
    const call = { operationId: route.operation.id, input: posted.value };
    return this.#runPosted(caller, call, representation, posted);
  }

  async #answerCall(caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const posted = await this.#bodies.read(caller);
    const call = readGenericCall(posted.value);
    const operation = this.#executor.get(call.operationId);
    const answer = async (): Promise<HttpAnswer> =>
      this.#runPosted(caller, call, this.#representationFor(caller), posted);
    if (operation === undefined || operation.visibility === "internal") return answer();
    return this.#accessFirst(operation, caller, () =>
      operation.type === "subscription" ? this.#streams.answerCall(call, caller) : answer(),
    );
  }

  async #runPosted(
    caller: AuthenticatedRequest,
    call: GenericCall,
    representation: Representation,
    { bytes, isWire }: PostedInput,
  ): Promise<HttpAnswer> {
    const { request } = caller;
    const key = readIdempotencyKey(request.header("idempotency-key"));
    const patience = this.#patienceOf(request);
    const answer = await this.#runner.run({
      caller,
      operationId: call.operationId,
      input: call.input,
      representation,
      timeoutMs: Math.min(patience, call.timeoutMs ?? patience),
      ...(key !== undefined && { idempotencyKey: key, fingerprint: `${isWire} ${fingerprint(bytes)}` }),
    });
    (answer.headers as AnswerHeaders)["cache-control"] ??= "no-store";
    return answer;
  }

  async #answerBatch(caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const { request } = caller;
    const representation = this.#representationFor(caller);
    const idempotencyKey = readIdempotencyKey(request.header("idempotency-key"));
    const { value } = await this.#bodies.read(caller);
    const timeoutMs = this.#patienceOf(request);
    const limit = this.#bounds.batch;
    return runBatch(this.#runner, value, { caller, representation, timeoutMs, idempotencyKey, limit });
  }

  /** Answers with the API page; nothing for other paths. Whoever was refused gets it too, but not the document. */
  async answerDocs(
    caller: AuthenticatedRequest,
    readDocument?: () => Promise<OpenApiDocument>,
  ): Promise<HttpAnswer | undefined> {
    const page = await this.#docs?.(caller.request.path, readDocument);
    return page && refuseOr(caller, READ, () => page);
  }

  async #answerOther(caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const page = await this.answerDocs(caller, () => this.#document.value(caller.identity));
    if (page !== undefined) return page;
    const { basePath } = this.#table;
    throw this.#explain(caller, basePath) ?? nothingThere(caller, this.#executor, basePath);
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

/** Answers with what is allowed where that is asked, or where the method is not among it. */
function refuseOr(
  { request, requestId }: AuthenticatedRequest,
  allowed: { readonly allow: string; readonly operationId?: string },
  answer: () => Promise<HttpAnswer> | HttpAnswer,
): Promise<HttpAnswer> | HttpAnswer {
  const { method } = request;
  const { allow } = allowed;
  if (method === "OPTIONS") return { status: 204, headers: { allow }, body: undefined };
  // Only methods that are known come here, and none is a part of another.
  if (allow.includes(method)) return answer();
  return refuseMethod(allowed, requestId);
}
