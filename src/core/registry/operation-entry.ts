import { AccessRule } from "../access/access.ts";
import { HeldIdentity } from "../access/identity.ts";
import { TierRule } from "../access/tier.ts";
import { assertErrorDeclaration, assertOperation } from "../operation/operation.ts";
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

/** An operation read once and compiled when it is registered: what every call of it works with. */
export class OperationEntry {
  readonly id: string;
  readonly operation: AnyOperation;
  readonly handler: AnyOperation["handler"];
  readonly input: OperationSchema;
  /** Absent when the output is not looked at: policy off, or a schema that says nothing. */
  readonly output: OperationSchema | undefined;
  /** The output schema brings its own parser, which may have to be waited for. */
  readonly parsesOutput: boolean;
  readonly strict: boolean;
  /** The handler gets filled and parsed input; a remote one gets it as given. */
  readonly local: boolean;
  readonly fillsDefaults: boolean;
  readonly streams: boolean;
  readonly internal: boolean;
  readonly access: AccessRule | undefined;
  /** Absent when every plan may use all of it. */
  readonly tiers: TierRule | undefined;
  /** Whom calls of the handler run as, if not the caller. */
  readonly authority: HeldIdentity | undefined;
  readonly errors: ReadonlyMap<string, KnownError>;
  readonly settings: EntrySettings;
  /** Where it came from, whose changes it follows. */
  readonly source: OperationSource | undefined;

  constructor(operation: AnyOperation, settings: EntrySettings, source?: OperationSource) {
    assertOperation(operation);
    const { id, access, authority } = operation;
    const policy = operation.outputPolicy ?? settings.outputPolicy;
    this.id = id;
    this.operation = operation;
    this.settings = settings;
    this.source = source;
    this.handler = operation.handler;
    this.input = this.#compile("inputSchema", operation.inputSchema, "input");
    const output = this.#compile("outputSchema", operation.outputSchema, "output");
    this.output = policy === "off" || !output.meaningful ? undefined : output;
    this.parsesOutput = this.output?.validate !== undefined;
    this.strict = policy === "strict";
    this.local = (operation.source ?? "local") === "local";
    this.fillsDefaults = this.local && this.input.hasDefaults;
    this.streams = operation.type === "subscription";
    this.internal = operation.visibility === "internal";
    this.access = access === undefined ? undefined : new AccessRule(access, id);
    const { tier, features } = operation;
    this.tiers =
      tier === undefined && features === undefined
        ? undefined
        : new TierRule(tier, features ?? [], id, this.input.json);
    this.authority =
      authority === undefined
        ? undefined
        : HeldIdentity.of({ ...authority, subject: authority.subject ?? id });
    this.errors = this.#knownErrors(declaredErrors(operation));
  }

  /** Tells whether this identity could call the operation with some input. */
  admits(identity: HeldIdentity | undefined): boolean {
    return this.access === undefined || this.access.admits(identity);
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
    try {
      return this.settings.compile(schema, direction);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new TypeError(`Operation "${this.id}": its ${field} is refused. ${reason}`, { cause });
    }
  }
}

function declaredErrors({ errors = [] }: AnyOperation): readonly ErrorDeclaration[] {
  if (Array.isArray(errors)) return errors;
  return Object.entries(errors).map(([code, declared]) => ({ ...declared, code }));
}
