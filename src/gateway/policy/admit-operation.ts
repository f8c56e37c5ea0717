import type { AccessControl } from "../../core/access/access.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { matchesPattern } from "../glob.ts";
import type { OperationPolicy, SourcePolicy } from "./policy.ts";
import { compileTemplate } from "./result-template.ts";

/** Tells whether policies leave an operation in: it is enabled, and its source's lists do not leave it out. */
export function isAdmitted(
  { name }: Pick<AnyOperation, "name">,
  { enabled }: OperationPolicy,
  { allow, deny }: SourcePolicy = {},
): boolean {
  const fits = (pattern: string): boolean => matchesPattern(pattern, name);
  return enabled !== false && (allow === undefined || allow.some(fits)) && deny?.some(fits) !== true;
}

/** Copies made before, by what they were made of: while policies stay the same an operation stays the same object. */
const COPIES = new WeakMap<AnyOperation, { readonly key: string; readonly copy: AnyOperation }>();

/**
 * Gives an operation that asks for the scopes of a policy too, and says about its results what the policy's template says where the
 * operation itself says nothing; what it works out when first asked stays that way.
 */
export function withPolicy(
  operation: AnyOperation,
  { scopes = [], render }: Pick<OperationPolicy, "scopes" | "render">,
): AnyOperation {
  const template = operation.render === undefined ? render : undefined;
  if (scopes.length === 0 && template === undefined) return operation;
  const key = JSON.stringify([scopes, template]);
  const known = COPIES.get(operation);
  if (known?.key === key) return known.copy;
  const members = {
    ...Object.getOwnPropertyDescriptors(operation),
    ...(scopes.length > 0 && { access: { value: accessWith(operation.access, scopes), enumerable: true } }),
    ...(template && { render: { value: compileTemplate("render", template), enumerable: true } }),
  };
  const copy = Object.freeze(Object.defineProperties({}, members)) as AnyOperation;
  COPIES.set(operation, { key, copy });
  return copy;
}

function accessWith(access: AccessControl = {}, scopes: readonly string[]): AccessControl {
  const allOf = [...new Set([...(access.scopes?.allOf ?? []), ...scopes])];
  return Object.freeze({
    ...access,
    scopes: Object.freeze({ ...access.scopes, allOf: Object.freeze(allOf) }),
  });
}
