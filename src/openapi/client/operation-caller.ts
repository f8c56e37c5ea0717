import { type ResponseEnvelope, withFacts } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { LightSignal } from "../../core/execution/abort-listeners.ts";
import { signalIfAny } from "../../core/execution/call-context.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import { withCursor } from "../../core/operation/with-cursor.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import type { SourceSecrets } from "../../core/secrets/source-secrets.ts";
import { isSequence, parseMediaType } from "../media-types.ts";
import type { Authorizer } from "./auth/authorizer.ts";
import type { OutgoingRequest, RequestDraft, Transport } from "./http-message.ts";
import type { OpenApiOptions, PagingRule } from "./openapi-options.ts";
import { findPaging, type Paging } from "./paging/find-paging.ts";
import type { DescribedOperation, OperationPlan } from "./plan.ts";
import { finishRequest } from "./request/finish-request.ts";
import { createRequestBuilder, type RequestBuilder } from "./request/request-builder.ts";
import { resolveServer } from "./request/server-address.ts";
import { successResponses } from "./response/declared-media.ts";
import { createResponseReader, type ResponseReader } from "./response/read-response.ts";
import { streamItems } from "./stream-items.ts";
import type { WaybillFacts } from "./waybill-facts.ts";
import { createWaybillBuilder } from "./waybill-request.ts";

/** What all operations of one source share. */
export interface ImportSettings {
  readonly transport: Transport;
  readonly authorizer: Authorizer;
  readonly options: OpenApiOptions;
  /** What of the API's words is passed on, and what is masked in its answers. */
  readonly secrets: SourceSecrets;
  /** Where the document was read from. */
  readonly location: URL | undefined;
  /** Whether credentials and headers may go to an origin. */
  origins(origin: string): boolean;
}

/** What calling one operation needs to know of it. */
export interface CalledOperation {
  readonly id: string;
  readonly described: DescribedOperation;
  readonly waybill: WaybillFacts | undefined;
  /** Sending it twice does no harm. */
  readonly idempotent: boolean;
  readonly paging: PagingRule | false | undefined;
  /** Asked for when it is first called. */
  outputSchema(): JsonSchema | undefined;
}

/** What a call works with, made when the operation is first called. */
interface Readied {
  readonly plan: OperationPlan;
  readonly build: RequestBuilder;
  readonly read: ResponseReader;
  readonly paging: Paging | undefined;
}

/** How a request is sent, and with what. */
interface Attempt<R> {
  readonly lastEventId: string | undefined;
  /** The credentials of the attempt before were refused. */
  readonly refused: boolean;
  send(request: OutgoingRequest, repeatable: boolean): Promise<R>;
}

const IDEMPOTENCY_HEADER = "idempotency-key";
const REQUEST_ID_HEADER = "x-request-id";

/** For calls that nobody can abort. */
const NEVER = new LightSignal() as unknown as AbortSignal;

/** Calls one operation of a document. */
export class OperationCaller {
  readonly #operation: CalledOperation;
  readonly #settings: ImportSettings;
  /** Codes it declares. */
  readonly #declared: ReadonlySet<string>;
  #readied: Readied | undefined;

  constructor(operation: CalledOperation, settings: ImportSettings) {
    this.#operation = operation;
    this.#settings = settings;
    this.#declared = codesOf(operation.waybill);
  }

  /** Sends a request and reads the response. */
  async call(input: unknown, context: OperationContext): Promise<ResponseEnvelope> {
    const { secrets } = this.#settings;
    try {
      return secrets.maskEnvelope(await this.#call(input, context));
    } catch (thrown) {
      throw secrets.maskError(thrown);
    }
  }

  async #call(input: unknown, context: OperationContext): Promise<ResponseEnvelope> {
    const { plan, read, paging } = this.#ready();
    const { transport, authorizer } = this.#settings;
    const signal = signalIfAny(context) ?? NEVER;
    const send = (request: OutgoingRequest, repeatable: boolean) =>
      transport.send(request, { signal, repeatable });
    let response = await this.#once(input, context, { send, lastEventId: undefined, refused: false });
    if (response.status === 401 && authorizer.mayRetry(plan))
      response = await this.#once(input, context, { send, lastEventId: undefined, refused: true });
    const envelope = read(response);
    const page = paging?.factsOf(envelope, input);
    return page === undefined ? envelope : withFacts(envelope, { page });
  }

  /** Sends a request and reads the response item by item. */
  async *stream(input: unknown, context: OperationContext): AsyncGenerator<unknown> {
    const { plan, read } = this.#ready();
    const { transport, authorizer, options } = this.#settings;
    const { signal } = context;
    const send = (request: OutgoingRequest, repeatable: boolean) =>
      transport.stream(request, { signal, repeatable });
    const open = async (lastEventId: string | undefined) => {
      const response = await this.#once(input, context, { send, lastEventId, refused: false });
      if (response.status !== 401 || !authorizer.mayRetry(plan)) return response;
      return this.#once(input, context, { send, lastEventId, refused: true });
    };
    const { eventBytes } = options.limits ?? {};
    const items = streamItems(open, { plan, read, reading: { ...this.#reading(), eventBytes } });
    const { secrets } = this.#settings;
    try {
      for await (const { envelope, cursor } of items) {
        const masked = secrets.maskEnvelope(envelope);
        yield cursor === undefined ? masked : withCursor(masked, secrets.maskResult(cursor));
      }
    } catch (thrown) {
      throw secrets.maskError(thrown);
    }
  }

  /** The input that asks for the page after this one. */
  nextPage(envelope: ResponseEnvelope, input: unknown): unknown {
    return this.#ready().paging?.pager.next(envelope, input);
  }

  #ready(): Readied {
    try {
      this.#readied ??= this.#makeReady();
      return this.#readied;
    } catch (cause) {
      // An option that fits the document as a whole may not fit what this operation says of itself.
      if (!(cause instanceof TypeError)) throw cause;
      throw new CallError("NOT_IMPLEMENTED", `"${this.#operation.id}" cannot be called: ${cause.message}`, {
        cause,
      });
    }
  }

  #makeReady(): Readied {
    const { options, location } = this.#settings;
    const { described, waybill } = this.#operation;
    const planned = described.plan();
    // What a document says of itself as Waybill's counts where it makes sense, and nowhere else.
    const plan = waybill === undefined ? { ...planned, waybill: undefined } : planned;
    const { baseUrl, server, serverVariables, headers, limits = {} } = options;
    const address = resolveServer(plan.servers, { baseUrl, server, serverVariables, location });
    const isOwn = address.refusal === undefined && this.#settings.origins(address.origin);
    const own = isOwn ? headers : undefined;
    const reaching = { baseUrl, server, serverVariables, headers: own, location, limits };
    const create = (wanted: OperationPlan) => createRequestBuilder(wanted, reaching);
    return {
      plan,
      build: waybill === undefined ? create(plan) : createWaybillBuilder(create, plan, waybill),
      read: createResponseReader(plan, this.#reading()),
      paging: this.#findPaging(plan),
    };
  }

  /** How responses are read; words of a server are believed where the user says that it is Waybill and theirs. */
  #reading() {
    const { options, secrets } = this.#settings;
    const { allowUndelimited = false, keepIds: trusted = false } = options;
    return { operationId: this.#operation.id, declared: this.#declared, allowUndelimited, trusted, secrets };
  }

  #findPaging(plan: OperationPlan): Paging | undefined {
    const { baseUrl } = this.#settings.options;
    const origin = baseUrl === undefined ? undefined : new URL(baseUrl).origin;
    return findPaging(plan, this.#operation.outputSchema(), this.#operation.paging, origin);
  }

  /** Builds and sends one request; nothing is waited for that need not be. */
  #once<R>(input: unknown, context: OperationContext, attempt: Attempt<R>): Promise<R> {
    const { plan, build } = this.#ready();
    const { authorizer, options } = this.#settings;
    const draft = build(input);
    this.#mark(draft, context, attempt.lastEventId);
    // Before credentials are added: a key that is one is no key for this.
    const repeatable = this.#operation.idempotent || (draft.headers[IDEMPOTENCY_HEADER] ?? "") !== "";
    const finish = () => attempt.send(finishRequest(draft, options.limits ?? {}), repeatable);
    const asked = { operationId: this.#operation.id, context, refused: attempt.refused };
    const authorizing = authorizer.authorize(plan, draft, asked);
    return authorizing === undefined ? finish() : authorizing.then(finish);
  }

  /** Headers that say something about the call rather than the input. */
  #mark(draft: RequestDraft, context: OperationContext, lastEventId: string | undefined): void {
    const { options } = this.#settings;
    const { traceparent, idempotencyKey } = context.metadata;
    if (options.trace === true && isHeaderText(traceparent)) draft.headers["traceparent"] = traceparent;
    if (this.#operation.waybill !== undefined) {
      draft.headers[REQUEST_ID_HEADER] = context.requestId;
      if (isHeaderText(idempotencyKey)) draft.headers[IDEMPOTENCY_HEADER] = idempotencyKey;
    }
    if (this.#operation.described.type === "subscription")
      draft.headers["accept"] = streamTypes(this.#ready().plan);
    if (lastEventId !== undefined) draft.headers["last-event-id"] = lastEventId;
  }
}

function codesOf(waybill: WaybillFacts | undefined): ReadonlySet<string> {
  const errors = waybill?.spec.errors ?? [];
  return new Set(Array.isArray(errors) ? errors.map(({ code }) => code) : Object.keys(errors));
}

function isHeaderText(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]{1,512}$/.test(value);
}

/** What a stream is asked for as: what the document says, and events where it says nothing of the kind. */
function streamTypes(plan: OperationPlan): string {
  const types = successResponses(plan).flatMap(({ content }) => content.map(({ mediaType }) => mediaType));
  const streams = types.filter((type) => isSequence(parseMediaType(type).kind));
  return [...new Set(streams.length > 0 ? streams : [...types, "text/event-stream"])].join(", ");
}
