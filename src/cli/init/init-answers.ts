/** How a config is written. */
export type ConfigFormat = "json" | "yaml" | "ts";

/** What the command line says. */
export interface InitFlags {
  readonly yes?: boolean;
  readonly from?: readonly string[];
  readonly openapi?: readonly string[];
  readonly mcp?: readonly string[];
  readonly sample?: boolean;
  readonly format?: ConfigFormat;
  readonly port?: number;
  readonly inspector?: boolean;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** Something to mount, under a name: a document, a command line or a URL. */
export interface NamedTarget {
  readonly name: string;
  readonly target: string;
}

/** What the config is to hold, from flags or from answers. */
export interface InitAnswers {
  /** Files of other hosts to take over. */
  readonly hostFiles: readonly string[];
  readonly openapi: readonly NamedTarget[];
  readonly mcp: readonly NamedTarget[];
  /** Whether to write a module with an operation. */
  readonly sample: boolean;
  readonly format: ConfigFormat;
  /** @default that of the gateway */
  readonly port?: number | undefined;
  /** Whether the inspector is served. */
  readonly inspector: boolean;
  /** Whether a config that is there may be replaced. */
  readonly replace: boolean;
}
