import { isCallError } from "../../core/errors/errors.ts";
import { didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import { readApi } from "../../openapi/client/document/read-api.ts";
import { createDocumentReader } from "../../openapi/client/fetch-document.ts";
import { fromOpenApi } from "../../openapi/client/from-openapi.ts";
import type { OpenApiOptions } from "../../openapi/client/openapi-options.ts";
import type { OpenApiSource } from "../../openapi/client/openapi-source.ts";
import type { DescribedApi } from "../../openapi/client/plan.ts";
import { CommandError } from "../io.ts";
import { CheckList, type CheckReport } from "./check-report.ts";
import { checkApiCalls } from "./openapi-call-checks.ts";
import { type ApiOperation, checkDocument, labelOf } from "./openapi-document-checks.ts";
import { probeApi } from "./probe-api.ts";

/** How an OpenAPI document, and the API behind it, is checked. */
export interface OpenApiCheckOptions {
  /** What it is called in the report, without secrets. */
  readonly target: string;
  /** A path or an address. */
  readonly document: string;
  readonly api: Omit<OpenApiOptions, "namespace" | "keepIds" | "onWarning">;
  /** Nothing is called. */
  readonly offline: boolean;
  /** Milliseconds for one request. */
  readonly timeoutMs: number;
  readonly calls: { readonly named: ReadonlySet<string>; readonly inputs: ReadonlyMap<string, unknown> };
  readonly signal?: AbortSignal | undefined;
  /** Takes secrets out of what is told. @default nothing is taken out */
  readonly mask?: ((text: string) => string) | undefined;
  onProgress(text: string): void;
}

const NAMESPACE = "api";

/** Checks a document, and what its API answers to calls that only read; never rejects because of either. */
export async function checkOpenApi(options: OpenApiCheckOptions): Promise<CheckReport> {
  const list = new CheckList({ target: options.target, kind: "openapi" }, options.mask);
  options.onProgress(`reading ${options.target}`);
  const read = await readDocument(list, options);
  if (read === undefined) return list.report;
  const { api, source } = read;
  try {
    list.describe({ name: api.title, version: api.version });
    const operations = operationsOf(api, source);
    const calls = resolveCalls(operations, options.calls);
    await checkDocument(list, api, operations, options.onProgress);
    if (options.offline) {
      list.skip("openapi.server", "", "Nothing was called, as --offline says.");
      list.notCalled("--offline says so");
    } else if (await isReachable(list, api, options)) {
      const { timeoutMs, signal, onProgress } = options;
      const onCall = (label: string) => onProgress(`calling ${label}`);
      await checkApiCalls(list, operations, { ...calls, timeoutMs, signal, onCall });
    }
  } finally {
    await source.close();
  }
  return list.report;
}

interface ReadDocument {
  readonly api: DescribedApi;
  readonly source: OpenApiSource;
}

async function readDocument(
  list: CheckList,
  options: OpenApiCheckOptions,
): Promise<ReadDocument | undefined> {
  const { document, api: how, timeoutMs } = options;
  const warnings = new Set<string>();
  const given: OpenApiOptions = {
    timeoutMs,
    retries: false,
    ...how,
    namespace: NAMESPACE,
    onWarning: (message) => void warnings.add(message),
  };
  try {
    const overlays = [how.overlay ?? []].flat();
    const fetchText = createDocumentReader(document, given);
    const source = await fromOpenApi(document, given);
    const api = await readApi(document, { overlays, limits: {}, fetchText }).catch(
      async (thrown: unknown) => {
        await source.close();
        throw thrown;
      },
    );
    list.pass("openapi.read", "", `Read "${api.title}" ${api.version}.`);
    for (const warning of warnings) list.warn("openapi.note", "", warning);
    return { api, source };
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    if (isCallError(thrown) && thrown.code !== "TOO_LARGE") list.unreachable("openapi.read", message);
    else list.fail("openapi.read", "", message);
    return undefined;
  }
}

/** What Waybill serves besides operations is none of the source's. */
function operationsOf(api: DescribedApi, source: OpenApiSource): readonly ApiOperation[] {
  const byId = new Map(source.operations.map((operation) => [operation.id as string, operation]));
  return api.operations.flatMap((described) => {
    const operation = byId.get(`${NAMESPACE}.${described.name}`);
    return operation === undefined ? [] : [{ label: labelOf(described), described, operation }];
  });
}

/** Finds the operations that are named by operationId, name, or method and path. */
function resolveCalls(operations: readonly ApiOperation[], { named, inputs }: OpenApiCheckOptions["calls"]) {
  const byName = new Map<string, ApiOperation>();
  for (const one of operations) {
    const { name, operationId } = one.described;
    for (const known of [one.label, name, operationId]) if (known !== undefined) byName.set(known, one);
  }
  const find = (wanted: string): ApiOperation => {
    const found = byName.get(wanted);
    if (found !== undefined) return found;
    const near = nearestName(wanted, [...byName.keys()].slice(0, 5_000));
    const hint = didYouMean(near, '; name it by operationId, or as "GET /path".');
    throw new CommandError(`There is no operation "${wanted}"${hint}`);
  };
  return {
    named: new Set([...named].map(find)),
    inputs: new Map([...inputs].map(([name, input]) => [find(name), input] as const)),
  };
}

async function isReachable(
  list: CheckList,
  api: DescribedApi,
  options: OpenApiCheckOptions,
): Promise<boolean> {
  const id = "openapi.server";
  const probe = await probeApi(api, options);
  switch (probe.kind) {
    case "up":
      list.pass(id, "", `${probe.origin} can be reached.`);
      return true;
    case "nowhere":
      list.warn(id, "", probe.message);
      list.notCalled("it is not known where the API is");
      return false;
    case "private": {
      const message = `Nothing was called: ${probe.place} is at a private or reserved address, where a document leads nobody unasked.`;
      const fix = `If you mean it: --allow-private, --base-url ${probe.origin}, or allowPrivate of a config.`;
      list.warn(id, "", message, { fix });
      list.notCalled("the API is at a private address");
      return false;
    }
    case "down": {
      const message = `${probe.origin} cannot be reached. ${probe.message}`;
      if (options.api.baseUrl === undefined) list.warn(id, "", message);
      else list.unreachable(id, message);
      list.notCalled("the API cannot be reached");
      return false;
    }
  }
}
