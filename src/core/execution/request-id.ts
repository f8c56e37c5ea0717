const MAX_REQUEST_ID = 200;

/** Tells whether a request id is short and printable, so that it is safe in a header or a log line. */
export function isRequestId(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_REQUEST_ID && /^[\x21-\x7e]+$/.test(value);
}

/** A random UUID; where the platform has none, as many random digits. */
export function randomId(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
