import { type ResponseEnvelope, withFacts } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import type { AnyOperation, OperationAnnotations, Pager } from "../../core/operation/operation-types.ts";
import { withCursor } from "../../core/operation/with-cursor.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import { isSequence, parseMediaType } from "../media-types.ts";
import type { Authorizer } from "./auth/authorizer.ts";
import { mergePatch } from "./document/merge-patch.ts";
import type { OutgoingRequest, RequestDraft, Transport, WholeResponse } from "./http-message.ts";
import type { OpenApiOptions, OperationOverlay, TransportLimits } from "./openapi-options.ts";
import { findPaging, type Paging } from "./paging/find-paging.ts";
import type { DescribedOperation, OperationPlan } from "./plan.ts";
import { finishRequest } from "./request/finish-request.ts";
import { toInputSchema } from "./request/input-schema.ts";
import { createRequestBuilder, type RequestBuilder } from "./request/request-builder.ts";
import { resolveServer } from "./request/server-address.ts";
import { successResponses } from "./response/declared-media.ts";
import { toOutputSchema } from "./response/output-schema.ts";
import { createResponseReader, type ResponseReader } from "./response/read-response.ts";
import { streamItems } from "./stream-items.ts";
import { DEPRECATED, type WaybillFacts } from "./waybill-facts.ts";
import { createWaybillBuilder } from "./waybill-request.ts";

/** What all operations of one source share. */
export interface ImportSettings {
  readonly transport: Transport;
  readonly authorizer: Authorizer;
  readonly options: OpenApiOptions;
  /** Where the document was read from. */
  readonly location: URL | undefined;
  /** Whether credentials and headers may go to an origin. */
  origins(origin: string): boolean;
}

/** How an operation is named and what is changed about it. */
export interface ImportedNames {
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  readonly overlay: OperationOverlay;
  /** What Waybill wrote about it, where Waybill serves it. */
  readonly waybill: WaybillFacts | undefined;
}

/** What a call works with, made when the operation is first called. */
interface Readied {
  readonly plan: OperationPlan;
  readonly build: RequestBuilder;
  readonly read: ResponseReader;
  readonly paging: Paging | undefined;
}

/** Methods that may be sent twice without doing more than once (RFC 9110), and QUERY. */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"]);
const READING = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "QUERY"]);
const IDEMPOTENCY_HEADER = "idempotency-key";

/** One operation of a document: known by name from the start, read in full when somebody looks at it or calls it. */
export class ImportedOperation {
  readonly operation: AnyOperation;
  readonly #described: DescribedOperation;
  readonly #names: ImportedNames;
  readonly #settings: ImportSettings;
  readonly #idempotent: boolean;
  /** Codes it declares. */
  readonly #declared: ReadonlySet<string>;
  #readied: Readied | undefined;
  #input: { readonly schema: JsonSchema } | undefined;
  #output: { readonly schema: JsonSchema | undefined } | undefined;

  constructor(described: DescribedOperation, names: ImportedNames, settings: ImportSettings) {
    this.#described = described;
    this.#names = names;
    this.#settings = settings;
    this.#idempotent = names.overlay.idempotent ?? IDEMPOTENT.has(described.method);
    this.#declared = codesOf(names.waybill?.spec.errors ?? []);
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
    return Object.freeze({
      namespace,
      name,
      id: `${namespace}.${name}` as const,
      type,
      description,
      source: "http" as const,
      ...(waybill === undefined ? this.#spec() : { version: this.#names.version, ...waybill.spec }),
      ...this.#overlaid(),
      ...(overlay.title !== undefined && { title: overlay.title }),
      ...(overlay.description !== undefined && { description: overlay.description }),
      get inputSchema() {
        return imported.#inputSchema();
      },
      get outputSchema() {
        return imported.#outputSchema();
      },
      handler: (input: unknown, context: OperationContext) =>
        type === "subscription" ? imported.#stream(input, context) : imported.#call(input, context),
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
    return { next: (envelope, input) => this.#ready().paging?.pager.next(envelope, input) };
  }

  #inputSchema(): JsonSchema {
    this.#input ??= { schema: this.#readInputSchema() };
    return this.#input.schema;
  }

  #readInputSchema(): JsonSchema {
    const { overlay, waybill } = this.#names;
    const schema = waybill === undefined ? toInputSchema(this.#described.plan()) : waybill.inputSchema;
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
      waybill === undefined ? toOutputSchema(this.#described.plan(), { stream }) : waybill.outputSchema;
    return overlay.output === undefined ? schema : (mergePatch(schema, overlay.output) as JsonSchema);
  }

  #ready(): Readied {
    try {
      this.#readied ??= this.#makeReady();
      return this.#readied;
    } catch (cause) {
      // An option that fits the document as a whole may not fit what this operation says of itself.
      if (!(cause instanceof TypeError)) throw cause;
      throw new CallError("NOT_IMPLEMENTED", `"${this.operation.id}" cannot be called: ${cause.message}`, {
        cause,
      });
    }
  }

  #makeReady(): Readied {
    const { options, location } = this.#settings;
    const { waybill } = this.#names;
    const plan = this.#described.plan();
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
    const { allowUndelimited = false, keepIds = false } = this.#settings.options;
    return { operationId: this.operation.id, declared: this.#declared, allowUndelimited, trusted: keepIds };
  }

  #findPaging(plan: OperationPlan): Paging | undefined {
    const { baseUrl } = this.#settings.options;
    const origin = baseUrl === undefined ? undefined : new URL(baseUrl).origin;
    return findPaging(plan, this.#outputSchema(), this.#names.overlay.paging, origin);
  }

  async #call(input: unknown, context: OperationContext): Promise<ResponseEnvelope> {
    const { read, paging } = this.#ready();
    const { transport } = this.#settings;
    const response = await this.#authorized(input, context, (request, repeatable) =>
      transport.send(request, { signal: context.signal, repeatable }),
    );
    const envelope = read(response);
    const page = paging?.factsOf(envelope, input);
    return page === undefined ? envelope : withFacts(envelope, { page });
  }

  async *#stream(input: unknown, context: OperationContext): AsyncGenerator<unknown> {
    const { plan, read } = this.#ready();
    const { transport, options } = this.#settings;
    const open = (lastEventId: string | undefined) =>
      this.#authorized(
        input,
        context,
        (request, repeatable) => transport.stream(request, { signal: context.signal, repeatable }),
        lastEventId,
      );
    const { eventBytes } = options.limits ?? {};
    const reading = { ...this.#reading(), eventBytes };
    const items = streamItems(open, { plan, read, reading });
    for await (const { envelope, cursor } of items) {
      yield cursor === undefined ? envelope : withCursor(envelope, cursor);
    }
  }

  /** Sends a request with credentials; with new ones, once, where those were refused and others can be had. */
  async #authorized<R extends Pick<WholeResponse, "status">>(
    input: unknown,
    context: OperationContext,
    send: (request: OutgoingRequest, repeatable: boolean) => Promise<R>,
    lastEventId?: string,
  ): Promise<R> {
    const { plan } = this.#ready();
    const { authorizer } = this.#settings;
    const response = await this.#once(input, context, { send, lastEventId, refused: false });
    if (response.status !== 401 || !authorizer.mayRetry(plan)) return response;
    return this.#once(input, context, { send, lastEventId, refused: true });
  }

  async #once<R>(
    input: unknown,
    context: OperationContext,
    attempt: {
      readonly send: (request: OutgoingRequest, repeatable: boolean) => Promise<R>;
      readonly lastEventId: string | undefined;
      readonly refused: boolean;
    },
  ): Promise<R> {
    const { plan, build } = this.#ready();
    const { authorizer, options } = this.#settings;
    const draft = build(input);
    this.#mark(draft, context, attempt.lastEventId);
    // Before credentials are added: a key that is one is no key for this.
    const repeatable = this.#idempotent || (draft.headers[IDEMPOTENCY_HEADER] ?? "") !== "";
    const authorizing = authorizer.authorize(plan, draft, {
      operationId: this.operation.id,
      context,
      refused: attempt.refused,
    });
    if (authorizing !== undefined) await authorizing;
    const limits: TransportLimits = options.limits ?? {};
    return attempt.send(finishRequest(draft, limits), repeatable);
  }

  /** Headers that say something about the call rather than the input. */
  #mark(draft: RequestDraft, { metadata }: OperationContext, lastEventId: string | undefined): void {
    const { options } = this.#settings;
    const { traceparent, idempotencyKey } = metadata;
    if (options.trace === true && isHeaderText(traceparent)) draft.headers["traceparent"] = traceparent;
    if (this.#names.waybill !== undefined && isHeaderText(idempotencyKey))
      draft.headers[IDEMPOTENCY_HEADER] = idempotencyKey;
    if (this.#described.type === "subscription") draft.headers["accept"] = streamTypes(this.#ready().plan);
    if (lastEventId !== undefined) draft.headers["last-event-id"] = lastEventId;
  }
}

function codesOf(errors: NonNullable<AnyOperation["errors"]>): ReadonlySet<string> {
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
