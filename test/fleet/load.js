// @ts-check
// Clients of a fleet: so many calls in flight, over HTTP and both kinds of MCP, with and without idempotency keys. They wait as long as they are told to,
// and send again what has not run, what only reads, and what has a key.
import { setTimeout as pause } from "node:timers/promises";
import { Agent, fetch } from "undici";
import { tokenOf } from "./fleet.js";

/** @import { Asked, FleetEvent, Kind, Outcome, Via } from "./history.js" */
/** What one attempt came to; `again` says after how many milliseconds to try again, and whether the call may have run. */
/** @typedef {{ outcome: Outcome } | { again: number, mayHaveRun: boolean, why: string }} Attempt */
/** @typedef {{ code: string, details: Record<string, unknown> | undefined }} Failure */

export const OWNERS = ["ann", "ben", "cid"];
const VIAS = /** @type {Via[]} */ (["http", "mcp-2025", "mcp-2026"]);
/** Milliseconds after which a client gives a call up. */
const PATIENCE_MS = 120_000;
/** Milliseconds to wait where nobody said how long, at least; as much again at most. */
const PAUSE_MS = 500;
/** Milliseconds that the upstream takes: orders are short, and lookups take their time. */
const ORDER_MS = 2;
const LOOK_MS = 200;
const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "fleet", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** What is asked for, at random: of eight calls five read, two order with a key, and one orders without. */
const KINDS = /** @type {Kind[]} */ ([
  ...Array(5).fill("read"),
  ...Array(2).fill("keyed order"),
  ...Array(1).fill("order"),
]);

/** @typedef {{ url: string, inFlight: number, record(event: FleetEvent): void, kinds?: readonly Kind[], lookMs?: number }} LoadOptions */

export class Load {
  /** Calls whose answer is still to come. */
  underWay = 0;
  /** Sessions that were begun anew because no gateway knew them. */
  newSessions = 0;
  #options;
  #agent = new Agent({
    connections: 1_000,
    pipelining: 1,
    bodyTimeout: PATIENCE_MS,
    headersTimeout: PATIENCE_MS,
  });
  #calls = 0;
  #isOver = false;
  /** @type {Promise<unknown>[]} */
  #slots = [];

  /** @param {LoadOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /** Begins to call. */
  start() {
    this.#slots = Array.from({ length: this.#options.inFlight }, (_, at) =>
      this.#work(VIAS[at % VIAS.length] ?? "http"),
    );
  }

  /** Makes no further calls, and waits until every one has settled. */
  async finish() {
    this.#isOver = true;
    await Promise.all(this.#slots);
  }

  async close() {
    await this.#agent.destroy();
  }

  /** Asks again for what was acknowledged. @param {Asked} asked @returns {Promise<Outcome>} */
  async again(asked) {
    const { outcome } = await this.#settle(asked, new Session());
    return outcome;
  }

  /** One call after the other. @param {Via} via */
  async #work(via) {
    const { record, kinds = KINDS } = this.#options;
    /** @type {Map<string, Session>} */
    const sessions = new Map(OWNERS.map((owner) => [owner, new Session()]));
    while (!this.#isOver) {
      const call = this.#calls++;
      const owner = OWNERS[call % OWNERS.length] ?? "";
      const kind = kinds[Math.floor(Math.random() * kinds.length)] ?? "read";
      // Several callers use the same key: each has its own.
      const key = kind === "keyed order" ? { key: `key-${Math.floor(call / OWNERS.length)}` } : {};
      /** @type {Asked} */
      const asked = { event: "asked", call, owner, via, kind, ...key };
      record(asked);
      this.underWay += 1;
      const startedAt = performance.now();
      const { outcome, attempts } = await this.#settle(asked, sessions.get(owner) ?? new Session());
      this.underWay -= 1;
      record({ event: "settled", call, outcome, attempts, ms: performance.now() - startedAt });
    }
  }

  /** Tries until there is an outcome. @param {Asked} asked @param {Session} session @returns {Promise<{ outcome: Outcome, attempts: number }>} */
  async #settle(asked, session) {
    const end = performance.now() + PATIENCE_MS;
    const isRepeatable = asked.kind !== "order";
    for (let attempts = 1; ; attempts++) {
      const attempt = await this.#attempt(asked, session).catch((thrown) => cutOff(thrown));
      if ("outcome" in attempt) return { outcome: attempt.outcome, attempts };
      const { again, mayHaveRun, why } = attempt;
      if (mayHaveRun && !isRepeatable) return { outcome: { ok: false, unknown: false, why }, attempts };
      if (performance.now() + again > end)
        return { outcome: { ok: false, unknown: false, why: `gave up: ${why}` }, attempts };
      await pause(again + Math.random() * PAUSE_MS);
    }
  }

  /** @param {Asked} asked @param {Session} session @returns {Promise<Attempt>} */
  async #attempt(asked, session) {
    if (asked.via === "http") return await this.#overHttp(asked);
    if (asked.via === "mcp-2026")
      return await this.#overMcp(asked, { "mcp-protocol-version": "2026-07-28" }, META);
    if (session.id === undefined) {
      const refused = await this.#initialize(asked.owner, session);
      if (refused !== undefined) return refused;
    }
    const headers = { "mcp-session-id": session.id ?? "", "mcp-protocol-version": "2025-11-25" };
    return await this.#overMcp(asked, headers, {}, session);
  }

  /** @param {Asked} asked @returns {Promise<Attempt>} */
  async #overHttp({ call, owner, kind, key }) {
    const { lookMs = LOOK_MS } = this.#options;
    const isRead = kind === "read";
    const query = new URLSearchParams({ call: String(call), owner, ms: String(lookMs) });
    const path = isRead ? `/api/shop/look?${query}` : "/api/shop/order";
    const init = isRead
      ? {}
      : { method: "POST", body: JSON.stringify({ body: { call, owner, ms: ORDER_MS } }) };
    const { status, headers, body } = await this.#send(
      path,
      owner,
      init,
      key === undefined ? {} : { "idempotency-key": key },
    );
    if (status === 200) return { outcome: readAnswer(body, headers.get("idempotency-replayed") === "true") };
    const failure = { code: body?.code ?? `status ${status}`, details: body?.details };
    return judge(failure, status, headers.get("retry-after"));
  }

  /** @param {Asked} asked @param {Record<string, string>} named @param {object} meta @param {Session} [session] @returns {Promise<Attempt>} */
  async #overMcp({ call, owner, kind, key }, named, meta, session) {
    const { lookMs = LOOK_MS } = this.#options;
    const isRead = kind === "read";
    const name = isRead ? "shop_look" : "shop_order";
    const sent = isRead ? { call, owner, ms: lookMs } : { body: { call, owner, ms: ORDER_MS } };
    const _meta = { ...meta, ...(key !== undefined && { "dev.waybill/idempotencyKey": key }) };
    const message = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name, arguments: sent, _meta } };
    const headersOf2026 = session === undefined ? { "mcp-method": "tools/call", "mcp-name": name } : {};
    const init = { method: "POST", body: JSON.stringify(message) };
    const { status, headers, body } = await this.#send("/mcp", owner, init, { ...named, ...headersOf2026 });
    if (status === 404 && session !== undefined) {
      session.id = undefined;
      this.newSessions += 1;
      return { again: 0, mayHaveRun: false, why: "no session" };
    }
    const { result, error } = body ?? {};
    if (status === 200 && result?.isError !== true && result !== undefined) {
      return { outcome: readAnswer(result.structuredContent, undefined) };
    }
    const told = result?._meta?.["dev.waybill/result"];
    const failure = { code: told?.code ?? `status ${status}, ${error?.code}`, details: told?.details };
    return judge(failure, status, headers.get("retry-after"));
  }

  /** @param {string} owner @param {Session} session @returns {Promise<Attempt | undefined>} */
  async #initialize(owner, session) {
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "fleet", version: "1" },
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
    const { status, headers } = await this.#send("/mcp", owner, { method: "POST", body });
    const id = headers.get("mcp-session-id");
    if (status !== 200 || id === null) {
      const again = Number(headers.get("retry-after") ?? 1) * 1_000;
      return { again, mayHaveRun: false, why: `initialize: ${status}` };
    }
    session.id = id;
    return undefined;
  }

  /** @param {string} path @param {string} owner @param {{ method?: string, body?: string }} init @param {Record<string, string>} [more] */
  async #send(path, owner, init, more = {}) {
    const headers = {
      authorization: `Bearer ${tokenOf(owner)}`,
      accept: "application/json, text/event-stream",
      ...(init.body !== undefined && { "content-type": "application/json" }),
      ...more,
    };
    const answer = await fetch(`${this.#options.url}${path}`, { ...init, headers, dispatcher: this.#agent });
    const text = await answer.text();
    const isStream = answer.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const json = isStream
      ? (text
          .match(/^data: (.+)$/gm)
          ?.at(-1)
          ?.slice(6) ?? "")
      : text;
    return { status: answer.status, headers: answer.headers, body: /** @type {any} */ (parseOrNone(json)) };
  }
}

class Session {
  /** @type {string | undefined} */
  id;
}

/** What an error means for the client. @param {Failure} failure @param {number} status @param {string | null} retryAfter @returns {Attempt} */
function judge({ code, details }, status, retryAfter) {
  const reason = details?.["reason"];
  if (code === "CONFLICT" && reason === "unknown")
    return { outcome: { ok: false, unknown: true, why: code } };
  const askedMs = Number(details?.["retryAfterMs"] ?? Number.NaN);
  const wait = Number.isNaN(askedMs) ? Number(retryAfter ?? Number.NaN) * 1_000 : askedMs;
  const why = reason === undefined ? code : `${code}: ${reason}`;
  // Whoever says when to come again has not run it. A balancer that was cut off cannot know that.
  if (!Number.isNaN(wait))
    return { again: wait, mayHaveRun: status === 502, why: status === 502 ? "cut off" : why };
  if (status >= 500 || code === "TIMEOUT" || code === "UNAVAILABLE")
    return { again: PAUSE_MS, mayHaveRun: true, why };
  return { outcome: { ok: false, unknown: false, why } };
}

/** A connection that ended before the answer. @param {unknown} thrown @returns {Attempt} */
function cutOff(thrown) {
  if (!(thrown instanceof TypeError)) throw thrown;
  return { again: PAUSE_MS, mayHaveRun: true, why: "cut off" };
}

/** @param {any} found @param {boolean | undefined} replayed @returns {Outcome} */
function readAnswer(found, replayed) {
  const { call, owner } = found ?? {};
  return { ok: true, call, owner, ...(replayed !== undefined && { replayed }) };
}

/** @param {string} text @returns {unknown} */
function parseOrNone(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
