import {
  httpEnvelope,
  type ResponseEnvelope,
  type ResultFacts,
  withFacts,
} from "../../core/envelope/envelope.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { lightSignalIfAny } from "../../core/execution/call-context.ts";
import { LightSignal } from "../../core/execution/cancellation.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import type { AnyOperation, OperationAnnotations, Pager } from "../../core/operation/operation-types.ts";
import { withCursor } from "../../core/operation/with-cursor.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import type { SourceSecrets } from "../../core/secrets/secret-mask.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { isSequence, parseMediaType } from "../media-types.ts";
import type { Authorizer } from "./auth/authorizer.ts";
import { mergePatch } from "./document/overlays.ts";
import type { OutgoingRequest, RequestDraft, StreamedResponse, WholeResponse } from "./http-message.ts";
import type { OpenApiOptions, OperationOverlay, PagingRule } from "./openapi-options.ts";
import { findPaging, type Paging } from "./paging/find-paging.ts";
import type { IndexedOperation, OperationPlan } from "./plan.ts";
import { toInputSchema } from "./request/plan-input.ts";
import { createRequestBuilder, finishRequest, type RequestBuilder } from "./request/request-builder.ts";
import { resolveServer } from "./request/server-address.ts";
import { successResponses, toOutputSchema } from "./response/output-schema.ts";
import {
  createResponseReader,
  type EnvelopeMeta,
  envelopeMeta,
  type ResponseReader,
} from "./response/read-response.ts";
import { readStream, type StreamItem, type StreamOptions } from "./response/read-stream.ts";
import type { HttpTransport } from "./transport/create-transport.ts";
import { createWaybillBuilder, DEPRECATED, type WaybillFacts } from "./waybill-facts.ts";

/** How an operation is named and what is changed about it. */
export interface ImportedNames {
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  readonly overlay: OperationOverlay;
  /** What Waybill wrote about it, where Waybill serves it. */
  readonly waybill: WaybillFacts | undefined;
}

/** Methods that may be sent twice without doing more than once (RFC 9110), and QUERY. */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"]);
const READING = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "QUERY"]);

/** One operation of a document: known by name from the start, read in full when somebody looks at it or calls it. */
export class ImportedOperation {
  readonly operation: AnyOperation;
  readonly #described: IndexedOperation;
  readonly #names: ImportedNames;
  readonly #settings: ImportSettings;
  #caller: OperationCaller | undefined;
  readonly #idempotent: boolean;
  #input: { readonly schema: JsonSchema } | undefined;
  #output: { readonly schema: JsonSchema | undefined } | undefined;

  constructor(described: IndexedOperation, names: ImportedNames, settings: ImportSettings) {
    this.#described = described;
    this.#names = names;
    this.#idempotent = names.overlay.idempotent ?? IDEMPOTENT.has(described.method);
    this.#settings = settings;
    this.operation = this.#define();
  }

  /** What the document gets wrong about it. */
  get notes(): readonly string[] {
    return this.#described.plan().notes;
  }

  #define(): AnyOperation {
    const { namespace, name, overlay, waybill } = this.#names;
    const { type, description } = this.#described;
    const imported = this;
    const spec = waybill === undefined ? this.#spec() : { version: this.#names.version, ...waybill.spec };
    return Object.freeze({
      namespace,
      name,
      id: `${namespace}.${name}` as const,
      type,
      source: "http" as const,
      ...spec,
      ...this.#overlaid(),
      // What a document says is foreign text, and what an overlay says the user's own.
      ...(spec.title !== undefined && { title: cleanText(spec.title).text }),
      description: cleanText(spec.description ?? description).text,
      ...(overlay.title !== undefined && { title: overlay.title }),
      ...(overlay.description !== undefined && { description: overlay.description }),
      get inputSchema() {
        return imported.#inputSchema();
      },
      get outputSchema() {
        return imported.#outputSchema();
      },
      handler: (input: unknown, context: OperationContext) =>
        type === "subscription"
          ? imported.#calling().stream(input, context)
          : imported.#calling().call(input, context),
    }) as AnyOperation;
  }

  /** What an overlay says of whether it reads, and may be sent twice, wins over whatever a document does. */
  #overlaid(): Partial<AnyOperation> {
    const { overlay, waybill } = this.#names;
    const { readOnly, idempotent, stream } = overlay;
    if (waybill === undefined || (readOnly ?? idempotent ?? stream) === undefined) return {};
    const hints = {
      ...(readOnly !== undefined && { readOnly }),
      ...(idempotent !== undefined && { idempotent }),
    };
    return { type: this.#described.type, annotations: { ...waybill.spec.annotations, ...hints } };
  }

  /** What a document says of an operation that Waybill does not serve. */
  #spec(): Partial<AnyOperation> {
    const { title, tags, deprecated } = this.#described;
    return {
      version: this.#names.version,
      ...(title !== undefined && { title }),
      ...(tags.length > 0 && { tags }),
      annotations: this.#annotations(),
      ...(deprecated && { _meta: DEPRECATED }),
      pager: this.#pager(),
    };
  }

  #annotations(): OperationAnnotations {
    const { method, type } = this.#described;
    return {
      readOnly: type !== "mutation" && (READING.has(method) || this.#names.overlay.readOnly === true),
      ...(method === "DELETE" && { destructive: true }),
      idempotent: this.#idempotent,
      openWorld: true,
    };
  }

  /** The pager is asked for only after a call, when the document has been read anyway. */
  #pager(): Pager {
    return { next: (envelope, input) => this.#calling().nextPage(envelope, input) };
  }

  /** What calls it, made when it is first called. */
  #calling(): OperationCaller {
    const { waybill, overlay } = this.#names;
    this.#caller ??= new OperationCaller(
      {
        id: this.operation.id,
        described: this.#described,
        waybill,
        idempotent: this.#idempotent,
        paging: overlay.paging,
        outputSchema: () => this.#outputSchema(),
      },
      this.#settings,
    );
    return this.#caller;
  }

  #inputSchema(): JsonSchema {
    this.#input ??= { schema: this.#readInputSchema() };
    return this.#input.schema;
  }

  #readInputSchema(): JsonSchema {
    const { overlay, waybill } = this.#names;
    const schema = waybill === undefined ? toInputSchema(this.#described.plan()) : waybill.inputSchema();
    return overlay.input === undefined
      ? (schema as JsonSchema)
      : (mergePatch(schema, overlay.input) as JsonSchema);
  }

  #outputSchema(): JsonSchema | undefined {
    this.#output ??= { schema: this.#readOutputSchema() };
    return this.#output.schema;
  }

  #readOutputSchema(): JsonSchema | undefined {
    const { overlay, waybill } = this.#names;
    const stream = this.#described.type === "subscription";
    const schema =
      waybill === undefined ? toOutputSchema(this.#described.plan(), { stream }) : waybill.outputSchema();
    return overlay.output === undefined ? schema : (mergePatch(schema, overlay.output) as JsonSchema);
  }
}

/** What all operations of one source share. */
export interface ImportSettings {
  readonly transport: HttpTransport;
  /** Nothing where there are no credentials. */
  readonly authorizer: Authorizer | undefined;
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
  readonly described: IndexedOperation;
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
    const { transport, authorizer, secrets } = this.#settings;
    try {
      const { plan, read, paging } = this.#ready();
      const signal = lightSignalIfAny(context) ?? NEVER;
      const send = (request: OutgoingRequest, repeatable: boolean) =>
        transport.send(request, { signal, repeatable });
      let response = await this.#once(input, context, { send, lastEventId: undefined, refused: false });
      if (response.status === 401 && authorizer?.mayRetry(plan) === true)
        response = await this.#once(input, context, { send, lastEventId: undefined, refused: true });
      const envelope = read(response);
      const page = paging?.factsOf(envelope, input);
      return secrets.maskEnvelope(page === undefined ? envelope : withFacts(envelope, { page }));
    } catch (thrown) {
      throw secrets.maskError(thrown);
    }
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
      if (response.status !== 401 || authorizer?.mayRetry(plan) !== true) return response;
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
    return findPaging(plan, this.#operation.outputSchema(), { rule: this.#operation.paging, origin });
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
    if (authorizer === undefined) return finish();
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

/** One yield of a stream. */
export interface StreamYield {
  readonly envelope: ResponseEnvelope;
  readonly cursor: string | undefined;
}

/** What reading a stream needs besides the stream. */
export interface StreamItemsOptions {
  readonly plan: OperationPlan;
  readonly read: ResponseReader;
  readonly reading: StreamOptions;
}

/** How often a stream that was cut is taken up again without a single item in between. */
const RESUMES = 3;

/**
 * Reads a stream item by item. One that Waybill serves and that was cut is taken up again where it was cut, which is what its
 * event ids are for; any other cut is thrown.
 */
async function* streamItems(
  open: (lastEventId: string | undefined) => Promise<StreamedResponse | WholeResponse>,
  { plan, read, reading }: StreamItemsOptions,
): AsyncGenerator<StreamYield> {
  let lastEventId: string | undefined;
  for (let fruitless = 0; ; fruitless += 1) {
    const response = await open(lastEventId);
    if (!isStreamed(response)) {
      yield { envelope: read(response), cursor: undefined };
      return;
    }
    const items = readStream(response, plan, reading);
    const meta = envelopeMeta(response);
    try {
      for await (const item of items) {
        fruitless = 0;
        yield { envelope: toEnvelope(item, meta), cursor: item.cursor };
      }
      return;
    } catch (thrown) {
      lastEventId = items.lastEventId ?? lastEventId;
      const isCut = isCallError(thrown) && thrown.code === "UNAVAILABLE";
      if (!isCut || plan.waybill === undefined || lastEventId === undefined || fruitless >= RESUMES)
        throw thrown;
    }
  }
}

function isStreamed(response: StreamedResponse | WholeResponse): response is StreamedResponse {
  return response.status < 400 && !(response.body instanceof Uint8Array);
}

function toEnvelope({ data, event, error, said }: StreamItem, meta: EnvelopeMeta): ResponseEnvelope {
  const facts: ResultFacts = {
    obtained: "body",
    ...(event !== undefined && { event }),
    ...(said !== undefined && { said }),
    ...error,
  };
  return httpEnvelope(data, { ...meta, isError: error !== undefined, waybill: facts });
}
