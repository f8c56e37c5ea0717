/** The operations this caller may call, by id. */
export interface OperationsAnswer {
  /** Counts changes. */
  readonly revision: number;
  readonly operations: readonly OperationRow[];
}

/** One operation in the list. */
export interface OperationRow {
  readonly id: string;
  /** The name of the source. */
  readonly source: string;
  readonly type: "query" | "mutation" | "subscription";
  readonly title?: string;
  /** The beginning of the description, in one line. */
  readonly summary: string;
  readonly destructive?: true;
}

/** All that is known of an operation. */
export interface OperationView {
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  readonly type: "query" | "mutation" | "subscription";
  readonly source?: string;
  readonly title?: string;
  readonly description: string;
  readonly tags?: readonly string[];
  readonly annotations?: {
    readonly readOnly?: boolean;
    readonly destructive?: boolean;
    readonly idempotent?: boolean;
    readonly openWorld?: boolean;
  };
  /** Who may call it; everybody when absent. */
  readonly access?: {
    readonly scopes?: { readonly allOf?: readonly string[]; readonly anyOf?: readonly string[] };
    readonly resource?: unknown;
  };
  readonly tier?: string;
  readonly features?: readonly unknown[];
  /** JSON Schema; anything goes when absent. */
  readonly inputSchema?: JsonSchemaView;
  readonly outputSchema?: JsonSchemaView;
  readonly errors?: readonly {
    readonly code: string;
    readonly description?: string;
    readonly httpStatus?: number;
  }[];
  /** An input its schema takes, where one was found. */
  readonly sample?: unknown;
  /** How it is called over HTTP, where it is served there. */
  readonly http?: { readonly method: string; readonly path: string };
  /** What it is called over MCP, where it is served there. */
  readonly tool?: string;
}

/** A JSON Schema that is an object. */
export type JsonSchemaView = Readonly<Record<string, unknown>>;
