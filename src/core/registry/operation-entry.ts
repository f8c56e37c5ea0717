import { AccessRule } from "../access/access.ts";
import { HeldIdentity } from "../access/identity.ts";
import { TierRule } from "../access/tier.ts";
import { CallError } from "../errors/errors.ts";
import { assertErrorDeclaration, assertOperation, trySchema } from "../operation/operation.ts";
import type { AnyOperation, ErrorDeclaration, OutputPolicy } from "../operation/operation-types.ts";
import type { AnySchema, OperationSchema } from "../schema/any-schema.ts";
import type { OperationSource } from "./executor.ts";
import type { RegistryWarning } from "./registry-host.ts";

/** What entries take from the registry they belong to. */
export interface EntrySettings {
  readonly outputPolicy: OutputPolicy;
  compile(schema: AnySchema, direction: "input" | "output"): OperationSchema;
  warn(warning: RegistryWarning): void;
}

/** A declared error, ready to check what is thrown. */
export interface KnownError {
  readonly httpStatus: number | undefined;
  readonly details: OperationSchema | undefined;
}

const NO_ERRORS: ReadonlyMap<string, KnownError> = new Map();
const ANYTHING: AnySchema = Object.freeze({});

/** Parts of an operation that a source may work out when they are first asked for. */
const LAZY_FIELDS = ["inputSchema", "outputSchema", "errors"] as const;

/**
 * An operation read once and compiled when it is registered: what every call of it works with. One whose schemas are accessors is
 * compiled when it is first called, so that a source of thousands costs nothing for those nobody calls.
 */
export class OperationEntry {
  readonly id: string;
  readonly operation: AnyOperation;
  readonly handler: AnyOperation["handler"];
  readonly returns: AnyOperation["returns"];
  readonly render: AnyOperation["render"];
  input!: OperationSchema;
  /** Absent when the output is not looked at: policy off, or a schema that says nothing. */
  output: OperationSchema | undefined;
  /** The output schema brings its own parser, which may have to be waited for. */
  parsesOutput = false;
  readonly strict: boolean;
  /** The handler gets filled and parsed input; a remote one gets it as given. */
  readonly local: boolean;
  fillsDefaults = false;
  readonly streams: boolean;
  readonly internal: boolean;
  readonly access: AccessRule | undefined;
  /** Absent when every plan may use all of it. */
  tiers: TierRule | undefined;
  /** Whom calls of the handler run as, if not the caller. */
  readonly authority: HeldIdentity | undefined;
  errors: ReadonlyMap<string, KnownError> = NO_ERRORS;
  readonly settings: EntrySettings;
  /** Where it came from, whose changes it follows. */
  readonly source: OperationSource | undefined;
  /** Whether its schemas are compiled; `prepare` sees to it. */
  ready = false;
  /** Whether it has been said that the handler returns data which looks like a result. */
  warnedOfLooks = false;
  #fault: CallError | undefined;

  constructor(operation: AnyOperation, settings: EntrySettings, source?: OperationSource) {
    assertOperation(operation);
    const { id, access, authority } = operation;
    this.id = id;
    this.operation = operation;
    this.settings = settings;
    this.source = source;
    this.handler = operation.handler;
    this.returns = operation.returns;
    this.render = operation.render;
    this.strict = (operation.outputPolicy ?? settings.outputPolicy) === "strict";
    this.local = (operation.source ?? "local") === "local";
    this.streams = operation.type === "subscription";
    this.internal = operation.visibility === "internal";
    this.access = access === undefined ? undefined : new AccessRule(access, id);
    this.authority =
      authority === undefined
        ? undefined
        : HeldIdentity.of({ ...authority, subject: authority.subject ?? id });
    if (!LAZY_FIELDS.some((field) => isAccessor(operation, field))) this.#compileAll();
  }

  /** Compiles what is not compiled yet; gives the reason why the operation cannot be called, if there is one. */
  prepare(): CallError | undefined {
    if (this.ready || this.#fault !== undefined) return this.#fault;
    try {
      this.#compileAll();
    } catch (cause) {
      const reason = cause instanceof TypeError ? cause.message : undefined;
      this.#fault = new CallError("NOT_IMPLEMENTED", reason, { cause });
    }
    return this.#fault;
  }

  /** Tells whether this identity could call the operation with some input. */
  admits(identity: HeldIdentity | undefined): boolean {
    return this.access === undefined || this.access.admits(identity);
  }

  #compileAll(): void {
    const { operation, settings, id } = this;
    const { tier, features } = operation;
    this.input = this.#compile("inputSchema", operation.inputSchema, "input");
    const output = this.#compile("outputSchema", operation.outputSchema, "output");
    const isIgnored = (operation.outputPolicy ?? settings.outputPolicy) === "off" || !output.meaningful;
    this.output = isIgnored ? undefined : output;
    this.parsesOutput = this.output?.validate !== undefined;
    this.fillsDefaults = this.local && this.input.hasDefaults;
    if (tier !== undefined || features !== undefined)
      this.tiers = new TierRule(operation, id, this.input.json);
    this.errors = this.#knownErrors(declaredErrors(operation));
    this.ready = true;
  }

  #knownErrors(declared: readonly ErrorDeclaration[]): ReadonlyMap<string, KnownError> {
    return declared.length === 0 ? NO_ERRORS : new Map(declared.map((error) => this.#known(error)));
  }

  #known({ code, schema, httpStatus }: ErrorDeclaration): [string, KnownError] {
    assertErrorDeclaration(this.id, code, httpStatus);
    const details =
      schema === undefined ? undefined : this.#compile(`errors.${code}.schema`, schema, "output");
    return [code, { httpStatus, details }];
  }

  #compile(field: string, schema: AnySchema = ANYTHING, direction: "input" | "output"): OperationSchema {
    return trySchema(this.id, field, () => this.settings.compile(schema, direction));
  }
}

function isAccessor(operation: AnyOperation, field: (typeof LAZY_FIELDS)[number]): boolean {
  return Object.getOwnPropertyDescriptor(operation, field)?.get !== undefined;
}

function declaredErrors({ errors = [] }: AnyOperation): readonly ErrorDeclaration[] {
  if (Array.isArray(errors)) return errors;
  return Object.entries(errors).map(([code, declared]) => ({ ...declared, code }));
}
