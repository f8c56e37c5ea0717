import { randomBytes } from "node:crypto";
import type { Identity } from "../../core/access/identity.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject, parseJsonText } from "../../core/json/json-value.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { isSameSecret } from "../../http/oauth/oauth-store.ts";
import { readCookies } from "../callers/login-page.ts";
import { type GatewayRoute, isBelow } from "../serve/gateway-front.ts";
import type { Approvals, ApprovalView, TicketDecision } from "./approvals.ts";
import { type ApprovalsFrame, approvalPage, listPage, messagePage, signInPage } from "./approvals-page.ts";
import { APPROVALS_PATH } from "./gateway-approvals.ts";

/** What the page works with. */
export interface ApprovalsRouteOptions {
  readonly approvals: Approvals;
  /** Whether callers are asked who they are. */
  readonly isAuthOn: () => boolean;
  /** Says whose a token of the gateway is; nothing for one that is nobody's. */
  readonly identify: (token: string) => Promise<Identity | undefined>;
  /** Whether somebody who was let in still would be. */
  readonly isCurrent: (identity: Identity | undefined) => boolean;
  /** What the gateway calls itself. */
  readonly name: () => string;
  /** Where people reach the gateway, where the config says so. */
  readonly publicUrl: () => string | undefined;
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** Bounds of the page. */
export const APPROVALS_PAGE_LIMITS = {
  /** Browsers that are signed in at a time; the oldest gives way. */
  visits: 1_000,
  /** Milliseconds that a browser stays signed in. */
  visitMs: 28_800_000,
  /** Bytes of a form, or of an answer at a one-time address. */
  formBytes: 16_384,
} as const;

/** A browser that is signed in. */
interface Visit {
  readonly identity: Identity | undefined;
  readonly csrf: string;
  /** Unix epoch milliseconds. */
  readonly expiresAt: number;
}

const COOKIE = "waybill-approver";
const cookieOf = (request: HttpRequest) => readCookies(request.header("cookie") ?? "").get(COOKIE);
const API = `${APPROVALS_PATH}/api`;
const ANSWER = `${APPROVALS_PATH}/answer`;

/** Where people decide about calls: a page, one-time addresses, and JSON for commands. */
export class ApprovalsRoute {
  readonly route: GatewayRoute;
  readonly #options: ApprovalsRouteOptions;
  readonly #visits = new Map<string, Visit>();

  constructor(options: ApprovalsRouteOptions) {
    this.#options = options;
    this.route = {
      prefix: APPROVALS_PATH,
      // The page asks by itself who is there, and everybody who has a one-time address may ask it.
      isOpen: (path) => !isBelow(path, API),
      handle: async (request, { identity }) => {
        const isApi = isBelow(request.path, API);
        await request.send(isApi ? await this.#answerApi(request, identity) : await this.#answer(request));
      },
    };
  }

  async #answerApi(request: HttpRequest, identity: Identity | undefined): Promise<HttpAnswer> {
    if (request.method === "POST" && !this.#isOwn(request)) return jsonAnswer(403, { error: FOREIGN });
    return await answerApprovals(this.#options.approvals, request, identity);
  }

  async #answer(request: HttpRequest): Promise<HttpAnswer> {
    const name = this.#options.name();
    try {
      if (!["GET", "HEAD", "POST"].includes(request.method))
        return messagePage(405, "Not here", { said: "This page is read, or sent a form.", name });
      if (isBelow(request.path, ANSWER)) return await this.#answerTicket(request);
      return request.method === "POST" ? await this.#post(request) : await this.#get(request);
    } catch (thrown) {
      if (isCallError(thrown))
        return messagePage(thrown.httpStatus, "That did not work", { said: thrown.message, name });
      this.#options.onWarning("The page of approvals could not answer.", thrown);
      return messagePage(503, "That did not work", { said: "Try again later.", name });
    }
  }

  async #get(request: HttpRequest): Promise<HttpAnswer> {
    const below = request.path.slice(APPROVALS_PATH.length + 1);
    const up = below === "" ? "" : "../";
    const name = this.#options.name();
    const [visit, cookie] = this.#visitOf(request);
    if (visit === undefined) return signInPage({ name, up }, false);
    const frame = this.#frameFor(visit, up);
    const approver = { identity: visit.identity, via: "page" } as const;
    const { approvals } = this.#options;
    if (below === "") return withCookie(listPage(await approvals.list(approver), frame), cookie);
    const view = await approvals.find(below, approver);
    if (view === undefined) return messagePage(404, "Not there", { said: GONE, name });
    return withCookie(approvalPage(view, frame, view.id), cookie);
  }

  async #post(request: HttpRequest): Promise<HttpAnswer> {
    const name = this.#options.name();
    const form = this.#isOwn(request) ? await readForm(request) : undefined;
    if (form === undefined) return messagePage(403, "Not from here", { said: FOREIGN, name });
    const below = request.path.slice(APPROVALS_PATH.length + 1);
    if (below === "sign-in") return await this.#signIn(form.get("token") ?? "", request);
    const [visit] = this.#visitOf(request);
    if (visit === undefined) return signInPage({ name, up: "../" }, false);
    if (!isSameSecret(form.get("csrf") ?? "", visit.csrf))
      return messagePage(403, "Not from here", { said: FOREIGN, name });
    if (below === "sign-out") {
      this.#visits.delete(cookieOf(request) ?? "");
      return redirect("../approvals", this.#cookie("", 0));
    }
    const decision = decisionIn(Object.fromEntries(form));
    await this.#options.approvals.decide(below, decision, { identity: visit.identity, via: "page" });
    return redirect("../approvals");
  }

  async #signIn(token: string, request: HttpRequest): Promise<HttpAnswer> {
    const identity = token === "" ? undefined : await this.#options.identify(token.trim());
    if (identity === undefined) return signInPage({ name: this.#options.name(), up: "../" }, true);
    // A cookie that was there before is another visit: nobody can plant the one that is signed in.
    this.#visits.delete(cookieOf(request) ?? "");
    return redirect("../approvals", this.#open(identity));
  }

  /** Who has the address decides; it is shown before anything is decided, as programs look at addresses too. */
  async #answerTicket(request: HttpRequest): Promise<HttpAnswer> {
    const { approvals } = this.#options;
    const name = this.#options.name();
    const [id = "", ticket = "", ...more] = request.path.slice(ANSWER.length + 1).split("/");
    const isJson = /^application\/json\b/i.test(request.header("content-type") ?? "");
    const view = more.length > 0 ? undefined : await approvals.findByTicket(id, ticket);
    if (view === undefined) {
      const gone = { said: GONE, name };
      return isJson ? jsonAnswer(404, { error: GONE }) : messagePage(404, "Not there", gone);
    }
    if (request.method !== "POST") return approvalPage(view, this.#frameFor(undefined, "../../../"), ticket);
    const body = isJson ? await readJson(request) : Object.fromEntries((await readForm(request)) ?? []);
    const decided = await approvals.decideByTicket(id, ticket, decisionIn(body));
    if (isJson) return jsonAnswer(200, { id, state: decided.state });
    return messagePage(200, `${decided.state === "approved" ? "Approved" : "Denied"}`, {
      said: `The call of ${decided.operation} is ${decided.state}.`,
      name,
    });
  }

  /** The visit of a browser; where nobody is asked who they are, one begins by itself. */
  #visitOf(request: HttpRequest): readonly [visit: Visit | undefined, cookie?: string] {
    const handle = cookieOf(request);
    const visit = handle === undefined ? undefined : this.#visits.get(handle);
    const isAuthOn = this.#options.isAuthOn();
    const isGood =
      visit !== undefined &&
      visit.expiresAt > Date.now() &&
      (visit.identity === undefined) !== isAuthOn &&
      this.#options.isCurrent(visit.identity);
    if (isGood) return [visit];
    if (handle !== undefined) this.#visits.delete(handle);
    if (isAuthOn) return [undefined];
    const cookie = this.#open(undefined);
    return [[...this.#visits.values()].at(-1), cookie];
  }

  #open(identity: Identity | undefined): string {
    const handle = randomBytes(32).toString("base64url");
    const { visits, visitMs } = APPROVALS_PAGE_LIMITS;
    const [oldest] = this.#visits.keys();
    if (this.#visits.size >= visits && oldest !== undefined) this.#visits.delete(oldest);
    const csrf = randomBytes(32).toString("base64url");
    this.#visits.set(handle, { identity, csrf, expiresAt: Date.now() + visitMs });
    return this.#cookie(handle, visitMs / 1_000);
  }

  #cookie(value: string, seconds: number): string {
    const base = this.#options.publicUrl() ?? "";
    const secure = base.startsWith("https:") ? "; Secure" : "";
    const path = `${parseUrl(base)?.pathname.replace(/\/+$/, "") ?? ""}${APPROVALS_PATH}`;
    return `${COOKIE}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
  }

  #frameFor(visit: Visit | undefined, up: string): ApprovalsFrame {
    const subject = visit?.identity?.subject;
    return { name: this.#options.name(), subject, csrf: visit?.csrf ?? "", up, now: Date.now() };
  }

  /** Another site can send a form here as well; browsers say which one did. */
  #isOwn(request: HttpRequest): boolean {
    const site = request.header("sec-fetch-site");
    if (site !== undefined && site !== "same-origin" && site !== "none") return false;
    const from = request.header("origin")?.toLowerCase();
    if (from === undefined) return true;
    const own = request.origin.toLowerCase();
    const known = [own, own.replace(/^http:/, "https:"), parseUrl(this.#options.publicUrl() ?? "")?.origin];
    return known.includes(from);
  }
}

/** Answers a command: what waits, one request, or a decision about it, as JSON. */
export async function answerApprovals(
  approvals: Approvals,
  request: HttpRequest,
  identity: Identity | undefined,
): Promise<HttpAnswer> {
  const approver = { identity, via: "command" } as const;
  const id = request.path.slice(API.length + 1);
  try {
    if (request.method === "GET" && id === "")
      return jsonAnswer(200, { approvals: await approvals.list(approver) });
    if (request.method === "GET")
      return jsonAnswer(200, { approval: found(await approvals.find(id, approver)) });
    if (request.method !== "POST" || id === "") return jsonAnswer(405, { error: "This address is read." });
    const decided = await approvals.decide(id, decisionIn(await readJson(request)), approver);
    return jsonAnswer(200, { approval: decided });
  } catch (thrown) {
    if (!isCallError(thrown)) throw thrown;
    return jsonAnswer(thrown.httpStatus, { error: thrown.message, code: thrown.code });
  }
}

const GONE = "There is no such request. It was used or decided about, or its time is over.";
const FOREIGN = "A form of another page was sent. Nothing has changed.";

function found(view: ApprovalView | undefined): ApprovalView {
  if (view === undefined) throw new CallError("NOT_FOUND", GONE, { stack: false });
  return view;
}

function decisionIn({ decision, by, comment }: Readonly<Record<string, unknown>>): TicketDecision {
  if (decision !== "approve" && decision !== "deny")
    throw new CallError("VALIDATION_ERROR", '"decision" must be "approve" or "deny".', { stack: false });
  return {
    isApproved: decision === "approve",
    ...(typeof by === "string" && by !== "" && { by }),
    ...(typeof comment === "string" && comment !== "" && { comment }),
  };
}

async function readForm(request: HttpRequest): Promise<URLSearchParams | undefined> {
  const type = request.header("content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded\b/i.test(type)) return undefined;
  return new URLSearchParams(await readText(request));
}

async function readJson(request: HttpRequest): Promise<Readonly<Record<string, unknown>>> {
  if (!/^application\/json\b/i.test(request.header("content-type") ?? ""))
    throw new CallError("VALIDATION_ERROR", "Send JSON.", { stack: false });
  let value: unknown;
  try {
    value = parseJsonText(await readText(request));
  } catch (cause) {
    if (isCallError(cause)) throw cause;
    throw new CallError("VALIDATION_ERROR", "That is no JSON.", { cause, stack: false });
  }
  if (!isPlainObject(value)) throw new CallError("VALIDATION_ERROR", "Send a JSON object.", { stack: false });
  return value;
}

async function readText(request: HttpRequest): Promise<string> {
  return Buffer.from(await request.body(APPROVALS_PAGE_LIMITS.formBytes)).toString("utf8");
}

function redirect(location: string, cookie?: string): HttpAnswer {
  const headers = { location, "cache-control": "no-store" };
  return withCookie({ status: 303, headers, body: undefined }, cookie);
}

function withCookie(answer: HttpAnswer, cookie: string | undefined): HttpAnswer {
  return cookie === undefined ? answer : { ...answer, headers: { ...answer.headers, "set-cookie": cookie } };
}

function jsonAnswer(status: number, value: unknown): HttpAnswer {
  const headers = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  };
  return { status, headers, body: `${JSON.stringify(value)}\n` };
}
