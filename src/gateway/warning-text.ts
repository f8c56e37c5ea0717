import type { RegistryWarning } from "../core/registry/registry-host.ts";

/** Says what is odd about a call: of which operation, and the first field that is not as it was promised. */
export function writeWarning({ message, operationId, issues = [] }: RegistryWarning): string {
  const about = operationId === undefined || message.includes(operationId) ? "" : `${operationId}: `;
  const [first] = issues;
  if (first === undefined) return `${about}${message}`;
  const where = first.pointer === "" ? "it" : first.pointer;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return `${about}${message.replace(/\.$/, "")}: ${where} must be ${first.expected}; it is ${first.found}${more}.`;
}
