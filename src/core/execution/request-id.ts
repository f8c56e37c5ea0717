const MAX_REQUEST_ID = 200;

/** Tells whether a request id is short and printable, so that it is safe in a header or a log line. */
export function isRequestId(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_REQUEST_ID && /^[\x21-\x7e]+$/.test(value);
}

const BYTES = 16;
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Random bytes had in one go and used once: asking for 16 at a time costs twice as much as making a UUID. */
const pool = new Uint8Array(BYTES * 256);
let used = pool.length;

/** Makes a request id: 32 hex digits that nobody can guess. */
export function randomId(): string {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  const end = used + BYTES;
  let id = "";
  for (; used < end; used++) id += HEX[pool[used] as number];
  return id;
}
