import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import type { Identity } from "../../core/access/identity.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { HttpAnswer } from "../../http/exchange.ts";
import { componentName } from "../component-schemas.ts";
import { DATA_TYPE, ENVELOPE_TYPE } from "../media-types.ts";
import { type DescribedApi, describeOperation } from "./document/describe-operation.ts";
import type {
  DescribedOperation,
  DocumentObject,
  OpenApiDocument,
  PathItem,
} from "./document/openapi-document.ts";
import { FreeNames, SchemaComponents } from "./document/schema-components.ts";
import { writeJsonBlocks } from "./document/schema-json.ts";
import {
  BUILT_IN_IDS,
  builtInPaths,
  SHARED_HEADERS,
  SHARED_PARAMETERS,
  SHARED_RESPONSES,
  SHARED_SCHEMAS,
  sharedRef,
  TASK_IDS,
} from "./document/shared-components.ts";
import {
  checkExecutor,
  checkToOpenApiOptions,
  type HttpHandlerOptions,
  type ToOpenApiOptions,
} from "./http-handler-options.ts";
import { operationPath } from "./route-table.ts";
import { formatType, toEntityTag } from "./write-answer.ts";

export type { OpenApiDocument } from "./document/openapi-document.ts";

/** Describes the operations a caller may see as an HTTP API, the way `createHttpHandler` serves them; the same each time. */
export function toOpenApi(executor: Executor, options: ToOpenApiOptions = {}): OpenApiDocument {
  checkExecutor(executor, "toOpenApi");
  checkToOpenApiOptions(options);
  return takeSteps(describeApi(executor, options));
}

/** Where an API is that is served beside its document. */
const BESIDE = ".";

/** Options that were checked; `asksCallers` tells whether callers are asked who they are, in whatever way. */
type DescribeApiOptions = ToOpenApiOptions & {
  readonly asksCallers?: boolean | undefined;
  readonly hasTasks?: boolean | undefined;
};

/** The same, step by step: the caller may do something else after each operation. */
function* describeApi(
  executor: Executor,
  options: DescribeApiOptions,
): Generator<undefined, OpenApiDocument, undefined> {
  const { info = {}, servers = [BESIDE], basePath = "/api", identity, formats = [], auth = {} } = options;
  const operations = [...executor.list({ identity })].sort((a, b) => (a.id < b.id ? -1 : 1));
  const components = new SchemaComponents();
  for (const [name, schema] of Object.entries(SHARED_SCHEMAS)) components.add(name, schema);
  const schemes = securitySchemes(auth);
  const names = Object.keys(schemes);
  const { asksCallers = names.length > 0, examples = {} } = options;
  const warn = toWarner(options.onWarning);
  const nameOf = createNames(operations, options.hasTasks === true);
  const { hasTasks = false } = options;
  const api = { components, nameOf, authenticated: asksCallers, warn, examples, hasTasks };
  const described = yield* describePaths(operations, basePath, api);
  const { paths, parameters, responses } = shareRepeated(described);
  return {
    openapi: "3.1.1",
    info: {
      title: info.title ?? "Waybill",
      version: info.version ?? "1.0.0",
      ...(info.description !== undefined && { description: info.description }),
    },
    servers: servers.map((url) => ({ url })),
    tags: tagsOf(paths),
    ...(names.length > 0 && { security: names.map((name) => ({ [name]: [] })) }),
    paths,
    components: {
      schemas: components.toJson(),
      headers: SHARED_HEADERS,
      parameters: { ...SHARED_PARAMETERS, ...parameters },
      responses: { ...SHARED_RESPONSES, ...responses },
      ...(names.length > 0 && { securitySchemes: schemes }),
    },
    "x-waybill": {
      mediaTypes: [ENVELOPE_TYPE, DATA_TYPE, ...formats.map(({ name }) => formatType(name))],
      ...(options.servers === undefined && { base: BESIDE }),
    },
  };
}

type Paths = Readonly<Record<string, PathItem>>;

/** Names operations by their ids; generators make one name of ids that differ only in signs or case, so those get a digest. */
function createNames(operations: readonly AnyOperation[], hasTasks: boolean): DescribedApi["nameOf"] {
  const counts = new Map<string, number>();
  const builtIn = hasTasks ? [...BUILT_IN_IDS, ...TASK_IDS] : BUILT_IN_IDS;
  for (const id of [...builtIn, ...operations.map((operation) => operation.id)]) {
    counts.set(lettersOf(id), (counts.get(lettersOf(id)) ?? 0) + 1);
  }
  return ({ id }) =>
    counts.get(lettersOf(id)) === 1
      ? id
      : `${id}_${createHash("sha256").update(id).digest("hex").slice(0, 8)}`;
}

function lettersOf(id: string): string {
  return id.replace(/[^a-z0-9]/gi, "").toLowerCase();
}

/** Every tag that is used, in order. */
function tagsOf(paths: Paths): OpenApiDocument["tags"] {
  const used = Object.values(paths).flatMap(({ get, post }) => [...(get?.tags ?? []), ...(post?.tags ?? [])]);
  return [...new Set(used)].sort().map((name) => ({ name }));
}

function* describePaths(
  operations: readonly AnyOperation[],
  basePath: string,
  api: DescribedApi & { readonly hasTasks: boolean },
): Generator<undefined, Paths, undefined> {
  const paths: (readonly [path: string, item: PathItem])[] = [];
  for (const operation of operations) {
    paths.push([operationPath(operation, basePath), describeOperation(operation, api)]);
    yield;
  }
  const callable = operations.find(({ type }) => type !== "subscription");
  return {
    ...Object.fromEntries(paths),
    ...builtInPaths({ example: callable?.id, authenticated: api.authenticated, hasTasks: api.hasTasks }),
  };
}

/** Puts long parameters and answers that several operations have among the components. */
function shareRepeated(paths: Paths): {
  readonly paths: Paths;
  readonly parameters: DocumentObject;
  readonly responses: DocumentObject;
} {
  const parameters = new Repeated("parameters", SHARED_PARAMETERS);
  const responses = new Repeated("responses", SHARED_RESPONSES);
  const operations = Object.values(paths).flatMap((item) => Object.values(item) as DescribedOperation[]);
  for (const operation of operations) {
    for (const parameter of operation.parameters ?? []) parameters.count(parameter);
    for (const response of Object.values(operation.responses)) responses.count(response);
  }
  const share = (operation: DescribedOperation): DescribedOperation => {
    const named = operation.parameters?.map((each) => parameters.share(each, String(each["name"])));
    const answers = Object.entries(operation.responses).map(([status, response]) => [
      status,
      responses.share(response, answerName(response)),
    ]);
    return {
      ...operation,
      ...(named !== undefined && { parameters: named }),
      responses: Object.fromEntries(answers),
    };
  };
  const items = Object.entries(paths).map(([path, item]): [string, PathItem] => {
    const methods = Object.entries(item).map(([method, operation]) => [method, share(operation)]);
    return [path, Object.fromEntries(methods)];
  });
  return {
    paths: Object.fromEntries(items),
    parameters: Object.fromEntries(parameters.shared),
    responses: Object.fromEntries(responses.shared),
  };
}

/** An answer is named after its data, where that has a name. */
function answerName({ content }: DocumentObject): string {
  const { schema } = ((content as DocumentObject | undefined)?.["application/json"] ?? {}) as DocumentObject;
  const name = componentName((schema as DocumentObject | undefined)?.["$ref"]);
  return name === undefined ? "Answer" : `Answer.${name}`;
}

/** Characters of something, written as JSON, from which on several operations share it. */
const LONG = 100;

/** Things of one kind that operations have, and those that become components because several have them. */
class Repeated {
  readonly shared = new Map<string, DocumentObject>();
  readonly #kind: "parameters" | "responses";
  readonly #counts = new Map<string, number>();
  readonly #texts = new WeakMap<DocumentObject, string>();
  readonly #names = new Map<string, string>();
  readonly #free = new FreeNames();

  constructor(kind: "parameters" | "responses", taken: DocumentObject) {
    this.#kind = kind;
    for (const name of Object.keys(taken)) this.#free.take([name]);
  }

  count(thing: DocumentObject): void {
    const text = JSON.stringify(thing);
    if (text.length < LONG) return;
    this.#texts.set(thing, text);
    this.#counts.set(text, (this.#counts.get(text) ?? 0) + 1);
  }

  share(thing: DocumentObject, wanted: string): DocumentObject {
    const text = this.#texts.get(thing);
    if (text === undefined || (this.#counts.get(text) ?? 0) < 2) return thing;
    const name = this.#names.get(text) ?? this.#free.take([wanted]);
    this.#names.set(text, name);
    this.shared.set(name, thing);
    return sharedRef(this.#kind, name);
  }
}

function securitySchemes({ bearer, apiKeyHeader }: NonNullable<ToOpenApiOptions["auth"]>): DocumentObject {
  return {
    ...(bearer === true && { bearer: { type: "http", scheme: "bearer" } }),
    ...(apiKeyHeader !== undefined && { apiKey: { type: "apiKey", in: "header", name: apiKeyHeader } }),
  };
}

/** What is wrong with one schema comes up wherever that is described, and is told once. */
function toWarner(
  onWarning: ToOpenApiOptions["onWarning"] = (message, cause) => console.warn(message, cause),
): DescribedApi["warn"] {
  const told = new Set<string>();
  return (message, cause) => {
    if (!told.has(message)) onWarning(message, cause);
    told.add(message);
  };
}

/** How long steps are taken in a row while others wait. */
const SLICE_MS = 10;

/** Work that can be interrupted wherever it yields. */
type Steps<T> = Generator<undefined, T, undefined>;

/** Does all of a work at once. */
export function takeSteps<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Does a work bit by bit, so that a long one holds up nobody else. */
export async function takeStepsInSlices<T>(steps: Steps<T>): Promise<T> {
  let until = performance.now() + SLICE_MS;
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value;
    if (performance.now() < until) continue;
    await setImmediate();
    until = performance.now() + SLICE_MS;
  }
}

/** Views that are kept written: most callers see the same. */
const VIEWS = 16;

interface WrittenDocument {
  /** JSON text. */
  readonly bytes: Buffer;
  readonly digest: Buffer;
  /** The last answer that was made of it, and for which origin. */
  answered?: { readonly origin: string; readonly bytes: Buffer; readonly etag: string };
}

/** Where the address of the API goes; what comes before it, a title and a description, cannot hold these quotation marks. */
const SERVERS = Buffer.from(`"servers":[{"url":${JSON.stringify(BESIDE)}}]`);

/** The document of an API, as each caller may see it. */
export class ServedDocument {
  readonly #executor: Executor;
  readonly #options: HttpHandlerOptions;
  /** By view; those still being written are among them, so that nothing is written twice at a time. */
  readonly #written = new Map<string, Promise<WrittenDocument>>();
  readonly #warned = new Set<string>();

  constructor(executor: Executor, options: HttpHandlerOptions) {
    this.#executor = executor;
    this.#options = options;
  }

  /** Forgets what is written: operations have changed. */
  clear(): void {
    this.#written.clear();
    this.#warned.clear();
  }

  /** The answer with the document and its entity tag; unless options say otherwise, the API is where the caller asked. */
  async answer(identity: Identity | undefined, origin: string): Promise<HttpAnswer> {
    const written = await this.#read(identity);
    const { bytes, etag } = this.#located(written, this.#options.servers === undefined ? origin : "");
    const headers = { "content-type": "application/json", "cache-control": "private, no-cache", etag };
    return { status: 200, headers, body: bytes };
  }

  /** Copies what is written rather than writing it anew: anybody may name a host where all are served. */
  #located(written: WrittenDocument, origin: string): { readonly bytes: Buffer; readonly etag: string } {
    if (written.answered?.origin === origin) return written.answered;
    const { bytes, digest } = written;
    const at = origin === "" ? -1 : bytes.indexOf(SERVERS);
    const servers = Buffer.from(`"servers":[{"url":${JSON.stringify(origin)}}]`);
    const located =
      at === -1
        ? bytes
        : Buffer.concat([bytes.subarray(0, at), servers, bytes.subarray(at + SERVERS.length)]);
    const etag = toEntityTag(createHash("sha256").update(digest).update(origin).digest("base64url"));
    written.answered = { origin, bytes: located, etag };
    return written.answered;
  }

  async value(identity: Identity | undefined): Promise<OpenApiDocument> {
    const { bytes } = await this.#read(identity);
    return JSON.parse(bytes.toString());
  }

  /** One of many operations is written bit by bit, as they were when it was asked for. */
  #read(identity: Identity | undefined): Promise<WrittenDocument> {
    const view = this.#viewOf(identity);
    const known = this.#written.get(view);
    if (known !== undefined) return known;
    const writing = takeStepsInSlices(this.#write(identity));
    const [oldest] = this.#written.keys();
    if (this.#written.size >= VIEWS && oldest !== undefined) this.#written.delete(oldest);
    this.#written.set(view, writing);
    writing.catch(() => this.#written.get(view) === writing && this.#written.delete(view));
    return writing;
  }

  *#write(identity: Identity | undefined): Steps<WrittenDocument> {
    const document = yield* describeApi(this.#executor, this.#documentOptions(identity));
    const blocks: Uint8Array[] = [];
    const hash = createHash("sha256");
    yield* writeJsonBlocks(document, (block) => {
      blocks.push(block);
      hash.update(block);
    });
    return { bytes: Buffer.concat(blocks), digest: hash.digest() };
  }

  #viewOf(identity: Identity | undefined): string {
    const ids = this.#executor.list({ identity }).map(({ id }) => `${id}\n`);
    return createHash("sha256").update(ids.join("")).digest("base64");
  }

  #documentOptions(identity: Identity | undefined): DescribeApiOptions {
    const { info, servers, basePath, formats, examples, auth, authenticate, describedAuth } = this.#options;
    const hasTasks = this.#options.tasks !== undefined;
    const ways =
      (authenticate && describedAuth) ??
      (auth && {
        ...(auth.bearer !== undefined && { bearer: true }),
        ...(auth.apiKeys !== undefined && { apiKeyHeader: auth.apiKeys.header ?? "x-api-key" }),
      });
    const asksCallers = auth !== undefined || authenticate !== undefined;
    const onWarning = this.#warn;
    return {
      info,
      servers,
      basePath,
      formats,
      examples,
      identity,
      auth: ways,
      asksCallers,
      hasTasks,
      onWarning,
    };
  }

  /** Every view would tell the same again. */
  readonly #warn = (message: string, cause: unknown): void => {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    const { onWarning = (...told) => console.warn(...told) } = this.#options;
    onWarning(message, cause);
  };
}
