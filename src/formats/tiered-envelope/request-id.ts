/** Makes a request id: 32 hex digits that nobody can guess. */
export function createRequestId(): string {
  return crypto.randomUUID().replaceAll("-", "");
}
