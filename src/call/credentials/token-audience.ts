/** Whom a token is for: those who answer the namespace of an operation, and nobody else it may end up with. */
export function audienceOf(operationId: string): string {
  const dot = operationId.indexOf(".");
  return `waybill:${dot === -1 ? operationId : operationId.slice(0, dot)}`;
}
