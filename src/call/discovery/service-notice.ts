import type { AccessControl } from "../../core/access/access.ts";
import type {
  ErrorDeclaration,
  GatedFeature,
  OperationAnnotations,
  OperationType,
  Tier,
} from "../../core/operation/operation-types.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";

/** What others need to know of an operation to call it: its spec without its handler, as plain JSON. */
export interface OperationNotice {
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  readonly type: OperationType;
  readonly description: string;
  readonly title?: string;
  readonly tags?: readonly string[];
  readonly inputSchema?: JsonSchema;
  readonly outputSchema?: JsonSchema;
  readonly errors?: readonly (Omit<ErrorDeclaration, "schema"> & { readonly schema?: JsonSchema })[];
  readonly access?: AccessControl;
  readonly annotations?: OperationAnnotations;
  readonly tier?: Tier;
  readonly features?: readonly GatedFeature[];
  readonly durable?: boolean;
}

/** A service and what it offers. */
export interface ServiceNotice {
  /** Unguessable, made anew with every start. */
  readonly serviceId: string;
  /** For people; several services may share one. */
  readonly name: string;
  readonly operations: readonly OperationNotice[];
}
