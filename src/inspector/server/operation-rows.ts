import type { Identity } from "../../core/access/identity.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { OperationRow } from "../protocol.ts";

const SUMMARY_CHARACTERS = 160;
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

function toRow({ id, type, title, description, annotations }: AnyOperation, source: string): OperationRow {
  return {
    id,
    source,
    type,
    ...(title !== undefined && { title }),
    summary: toSummary(description),
    ...(annotations?.destructive === true && { destructive: true }),
  };
}

function toSummary(description: string): string {
  return description.slice(0, READ_CHARACTERS).replace(BREAKS, " ").trim().slice(0, SUMMARY_CHARACTERS);
}
