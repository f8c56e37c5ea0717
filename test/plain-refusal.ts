import type { Refuse } from "../src/http/refusal.ts";

/** Refuses in plain text: what is refused, and with which headers, is the same for every edge. */
export const plainRefusal: Refuse = (status, message, { headers = {} } = {}) =>
  new Response(message, { status, headers });
