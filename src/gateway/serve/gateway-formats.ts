import type { Identity } from "../../core/access/identity.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import type { ResultFormat } from "../../core/result/result-format.ts";
import { FORMAT_NAMES, type FormatName } from "../../core/result/tool-result.ts";
import { createResultFormat, type ResultStore, type ToolFormat } from "../../formats/index.ts";
import type { McpClient } from "../../mcp/server/mcp-server-options.ts";
import type { ServeConfig } from "../config/gateway-config.ts";
import { matchesPattern } from "../glob.ts";

/** Characters of a result that are sent whole over MCP, where no policy says otherwise. */
const USUAL_BUDGET = 200_000;

/** What decides about formats besides the config. */
export interface GatewayFormatsOptions {
  /** The format of the holder of a token. */
  tokenFormat(identity: Identity | undefined): FormatName | undefined;
  /** Characters of a result of this operation that are sent whole. */
  budgetOf(operationId: string): number | undefined;
  readonly store: ResultStore;
}

/** The formats of a gateway, as a config says, which may change at any time. */
export class GatewayFormats {
  readonly #options: GatewayFormatsOptions;
  readonly #forMcp: ReadonlyMap<ToolFormat, ResultFormat>;
  #serve: ServeConfig = {};
  #allowed: readonly ToolFormat[] = [];
  #served: readonly ResultFormat[] = [];

  constructor(serve: ServeConfig, options: GatewayFormatsOptions) {
    this.#options = options;
    this.#forMcp = new Map(
      FORMAT_NAMES.filter(isToolFormat).map((name) => [
        name,
        name === "status-envelope" ? this.#withPreview() : createResultFormat(name),
      ]),
    );
    this.set(serve);
  }

  /** Serves others from now on. What a config gives somebody may be asked for by anybody. */
  set(serve: ServeConfig): void {
    const { formats = FORMAT_NAMES, format, clients = {}, auth } = serve;
    const given = [
      format,
      ...Object.values(clients).map((client) => client.format),
      ...Object.values(auth?.tokens ?? {}).map((token) => token.format),
    ];
    const allowed = FORMAT_NAMES.filter(isToolFormat).filter(
      (name) => formats.includes(name) || given.includes(name),
    );
    this.#serve = serve;
    if (allowed.join() === this.#allowed.join()) return;
    this.#allowed = allowed;
    this.#served = allowed.map((name) => this.#forMcp.get(name) as ResultFormat);
  }

  /** Names of those that may be asked for, besides data and envelope. */
  get names(): readonly ToolFormat[] {
    return this.#allowed;
  }

  /** Those that MCP clients may ask for now; the same list until there are others. */
  readonly forMcp = (): readonly ResultFormat[] => this.#served;

  /** The format for an MCP client: by the name it gives itself, by its token, or the usual one. */
  readonly ofClient = ({ name, identity }: McpClient): string | undefined => {
    const { clients = {}, format } = this.#serve;
    const fitting = Object.entries(clients).find(
      ([pattern]) => name !== undefined && matchesPattern(pattern, name),
    );
    return fitting?.[1].format ?? this.#options.tokenFormat(identity) ?? format;
  };

  /** The same for callers of the HTTP API, who have no name. */
  readonly ofCaller = (identity: Identity | undefined): string | undefined => {
    const format = this.#options.tokenFormat(identity) ?? this.#serve.format;
    return format === "response-envelope" ? "envelope" : format;
  };

  /** How many characters of a result are sent whole; what a policy does not bound is bounded as usual. */
  readonly inlineCharactersOf = (operationId: string): number =>
    this.#options.budgetOf(operationId) ?? USUAL_BUDGET;

  /** Status envelopes say of their previews how many tokens they are: they cut themselves, at the bound of each operation. */
  #withPreview(): ResultFormat {
    const byBudget = new Map<number, ResultFormat>();
    const formatOf = (budget: number): ResultFormat => {
      const known = byBudget.get(budget);
      if (known !== undefined) return known;
      // As in the other formats, data of which no valid cut exists goes whole.
      const maxInlineCharacters = Number.POSITIVE_INFINITY;
      const preview = { store: this.#options.store, maxCharacters: budget, maxInlineCharacters };
      const made = createResultFormat({ format: "status-envelope", preview });
      if (byBudget.size >= 100) byBudget.clear();
      byBudget.set(budget, made);
      return made;
    };
    const plain = createResultFormat("status-envelope");
    return Object.freeze({
      ...plain,
      previews: true,
      write: (call: EndedCall) => formatOf(this.inlineCharactersOf(call.operationId)).write(call),
    });
  }
}

function isToolFormat(name: FormatName): name is ToolFormat {
  return name !== "response-envelope";
}
