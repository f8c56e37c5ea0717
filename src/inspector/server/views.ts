import type { Identity } from "../../core/access/identity.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import { sampleInput } from "../../core/schema/sample-values.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { operationJson, schemaOf } from "../../gateway/operation-json.ts";
import { mcpSettings } from "../../gateway/serve/gateway-mcp.ts";
import type { SourceReport, SourceState } from "../../gateway/sources/source.ts";
import { assignToolNames } from "../../mcp/server/tools/served-tools.ts";
import { inputPlaceOf, operationPath } from "../../openapi/server/route-table.ts";
import type { LockView, OperationRow, OperationView, SourceView } from "../protocol.ts";
import type { CallLog } from "./calls/call-log.ts";
import { NO_CALLS, statsBySource } from "./calls/call-views.ts";
import type { Viewer } from "./viewer.ts";

/** Where the gateway serves operations over HTTP. */
const API_PATH = "/api";

/** Tells all that is known of an operation of a gateway, and how it is called from elsewhere. */
export function viewOfOperation(
  operation: AnyOperation,
  gateway: Pick<Gateway, "executor" | "sourceOf">,
  loaded: LoadedConfig,
): OperationView {
  const source = gateway.sourceOf(operation.id);
  const tool = toolOf(operation, gateway.executor.operations, loaded);
  const isServed = loaded.config.serve?.http !== false;
  return {
    ...(operationJson(operation, source) as unknown as OperationView),
    ...sampleOf(operation),
    ...(isServed && { http: httpOf(operation) }),
    ...(tool !== undefined && { tool }),
  };
}

function sampleOf(operation: AnyOperation): Pick<OperationView, "sample"> {
  const schema = schemaOf(operation, "input");
  const sample = schema === undefined ? undefined : sampleInput(toOperationSchema(schema, "input"));
  return sample?.isAccepted ? { sample: sample.value } : {};
}

function httpOf(operation: AnyOperation): NonNullable<OperationView["http"]> {
  const method = inputPlaceOf(operation).place === "query" ? "GET" : "POST";
  return { method, path: operationPath(operation, API_PATH) };
}

function toolOf(
  { id }: AnyOperation,
  operations: Iterable<AnyOperation>,
  loaded: LoadedConfig,
): string | undefined {
  const settings = mcpSettings(loaded);
  if (settings === undefined || settings.catalogue === true) return undefined;
  const served = [...operations].filter(({ visibility }) => visibility !== "internal");
  const { byId } = assignToolNames(
    served.map((operation) => operation.id),
    { dots: settings.dots ?? false },
  );
  return byId.get(id);
}

const SUMMARY_CHARACTERS = 160;
const GROUP_CHARACTERS = 100;
/** What is looked at of a description: it may be of any length, and begin with space. */
const READ_CHARACTERS = 400;

/** Space that is no single blank: most of a description is left as it is. */
const BREAKS = /\s{2,}|[^\S ]/g;

interface WrittenRow {
  readonly source: string;
  readonly json: string;
}

interface Written {
  readonly revision: number;
  readonly json: string;
}

/** The list of operations as each caller sees it, written once until it changes. */
export class OperationRows {
  readonly #gateway: Pick<Gateway, "executor" | "sourceOf">;
  readonly #ofCallers = new WeakMap<Identity, Written>();
  readonly #written = new WeakMap<AnyOperation, WrittenRow>();
  readonly #stop: () => void;
  #ofAnonymous: Written | undefined;
  #revision = 1;

  constructor(gateway: Pick<Gateway, "executor" | "sourceOf">, onChange: (revision: number) => void) {
    this.#gateway = gateway;
    this.#stop = gateway.executor.onChange(() => {
      this.#revision += 1;
      onChange(this.#revision);
    });
  }

  /** The answer for a caller, an `OperationsAnswer` as JSON. */
  jsonFor(identity: Identity | undefined): string {
    const known = identity === undefined ? this.#ofAnonymous : this.#ofCallers.get(identity);
    if (known?.revision === this.#revision) return known.json;
    const revision = this.#revision;
    const rows = this.#gateway.executor.list({ identity }).map((operation) => this.#jsonOf(operation));
    const json = `{"revision":${revision},"operations":[${rows.join(",")}]}`;
    if (identity === undefined) this.#ofAnonymous = { revision, json };
    else this.#ofCallers.set(identity, { revision, json });
    return json;
  }

  /** Stops following changes. */
  close(): void {
    this.#stop();
  }

  /** Written once for everybody, for as long as the operation is the same. */
  #jsonOf(operation: AnyOperation): string {
    const source = this.#gateway.sourceOf(operation.id) ?? operation.namespace;
    const known = this.#written.get(operation);
    if (known?.source === source) return known.json;
    const json = JSON.stringify(toRow(operation, source));
    this.#written.set(operation, { source, json });
    return json;
  }
}

function toRow(
  { id, type, title, description, annotations, tags }: AnyOperation,
  source: string,
): OperationRow {
  return {
    id,
    source,
    type,
    ...(title !== undefined && { title }),
    summary: toSummary(description),
    ...(tags?.[0] !== undefined && { group: tags[0].slice(0, GROUP_CHARACTERS) }),
    ...(annotations?.destructive === true && { destructive: true }),
  };
}

function toSummary(description: string): string {
  return description.slice(0, READ_CHARACTERS).replace(BREAKS, " ").trim().slice(0, SUMMARY_CHARACTERS);
}

interface ShownSources {
  readonly gateway: Pick<Gateway, "executor" | "reports" | "sourceOf">;
  readonly log: CallLog;
}

/** Tells of the sources of a gateway; who is no operator hears of those they may call something of, and less of each. */
export function viewsOfSources({ gateway, log }: ShownSources, viewer: Viewer): readonly SourceView[] {
  const stats = statsBySource(log, viewer);
  const calls = (name: string) => stats.get(name) ?? NO_CALLS;
  const reports = gateway.reports();
  if (viewer.isOperator)
    return reports.map((report) => ({ ...wholeView(report), calls: calls(report.name) }));
  const counts = callableCounts(gateway, viewer);
  return reports.flatMap((report) => {
    const operations = counts.get(report.name);
    return operations === undefined ? [] : [{ ...partView(report), operations, calls: calls(report.name) }];
  });
}

function callableCounts(gateway: ShownSources["gateway"], { identity }: Viewer): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { id } of gateway.executor.list({ identity })) {
    const name = gateway.sourceOf(id);
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

function wholeView({ changed, state, ...report }: SourceReport): Omit<SourceView, "calls"> {
  return {
    ...report,
    state: toState(state, (down) => down.reason),
    ...(changed !== undefined && { lock: toLock(changed) }),
  };
}

function partView(report: SourceReport): Omit<SourceView, "calls" | "operations"> {
  const { name, kind, state, startMs, protocol, title, version } = report;
  return {
    name,
    kind,
    state: toState(state, ({ cause }) => cause ?? "It cannot be used right now."),
    unusable: [],
    notes: [],
    ...(startMs !== undefined && { startMs }),
    ...(protocol !== undefined && { protocol }),
    ...(title !== undefined && { title }),
    ...(version !== undefined && { version }),
  };
}

type DownState = Extract<SourceState, { readonly status: "down" }>;

function toState(state: SourceState, reasonOf: (state: DownState) => string): SourceView["state"] {
  if (state.status !== "down") return state;
  const { since, retryAt } = state;
  return { status: "down", since, reason: reasonOf(state), ...(retryAt !== undefined && { retryAt }) };
}

function toLock(changed: NonNullable<SourceReport["changed"]>): LockView {
  return { tools: changed.map(({ tool, kind, diff }) => ({ tool, state: kind, diff })) };
}
