import { createHash, randomBytes } from "node:crypto";
import type { Identity } from "../../core/access/identity.ts";
import { isCallError } from "../../core/errors/errors.ts";
import { escapeHtml, safeLine } from "../../core/text/clean-text.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { AnswerHeaders, HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import type { GatewayRoute } from "../serve/gateway-front.ts";
import { findLoginTarget } from "../sources/login-target.ts";
import { type ActingSource, keepsGrants } from "./acting-source.ts";
import { type CallerLogins, grantOwner } from "./caller-logins.ts";
import type { GrantOwner } from "./login-tickets.ts";
import { PendingLogins } from "./pending-logins.ts";

/** What the page works with. */
export interface LoginPageOptions {
  readonly logins: CallerLogins;
  /** The config in use. */
  readonly loaded: () => LoadedConfig;
  /** Says whose a token of the gateway is; nothing for one that is nobody's. */
  readonly identify: (token: string) => Promise<Identity | undefined>;
  /** Whether a caller may know of a source. */
  readonly isVisible: (source: string, identity: Identity) => boolean;
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** A browser whose person has shown who they are at the gateway; forms of its pages carry the handle. */
interface Visit {
  readonly owner: GrantOwner;
  /** The one source of a link, or all that the caller may know of. */
  readonly sources: readonly string[];
  /** Unix epoch milliseconds. */
  readonly expiresAt: number;
}

/** The path of the page, below the address of the gateway. */
export const LOGIN_PATH = "/login";
/** Milliseconds that a page works after its person has shown who they are. */
const VISIT_MS = 600_000;
/** Pages at a time; the oldest gives way. */
const MOST_VISITS = 1_000;
/** Bytes of a form. */
const MOST_FORM_BYTES = 16_384;
/** Characters of a key of a caller's own. */
const MOST_KEY_CHARACTERS = 4_096;

/**
 * The gateway's own page on which callers log in to sources that are asked as each of them. It is shown to everybody, and does nothing for
 * anybody who has not shown who they are: with the code that the caller was given with a link, or with their token of the gateway.
 */
export class LoginPage {
  readonly route: GatewayRoute;
  readonly #options: LoginPageOptions;
  readonly #pending: PendingLogins;
  readonly #visits = new Map<string, Visit>();

  constructor(options: LoginPageOptions) {
    this.#options = options;
    this.#pending = new PendingLogins(options.logins);
    this.route = {
      prefix: LOGIN_PATH,
      isOpen: () => true,
      handle: async (request) => {
        await request.send(await this.#answer(request));
      },
    };
  }

  /** Whether there is anything to log in to. */
  get isOn(): boolean {
    return this.#options.logins.isOn;
  }

  /** Logins under way. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Gives up all logins under way. */
  close(): void {
    this.#pending.close();
    this.#visits.clear();
  }

  async #answer(request: HttpRequest): Promise<HttpAnswer> {
    try {
      if (request.method === "POST") return await this.#post(request);
      if (request.method !== "GET" && request.method !== "HEAD")
        return page(405, "Not here", [text("This page is read, or sent a form.")]);
      return await this.#get(request);
    } catch (thrown) {
      if (isCallError(thrown))
        return page(thrown.httpStatus === 499 ? 503 : thrown.httpStatus, "That did not work", [
          text(thrown.message),
        ]);
      if (thrown instanceof Error && thrown.name === "SignInError")
        return page(502, "That did not work", [text(thrown.message)]);
      this.#options.onWarning("A login of a caller did not work.", thrown);
      return page(502, "That did not work", [
        text("The login did not work. The log of the gateway has the reason."),
      ]);
    }
  }

  async #get(request: HttpRequest): Promise<HttpAnswer> {
    const { path, query } = request;
    const below = path.slice(LOGIN_PATH.length + 1);
    if (below === "") return page(200, "Your logins", [tokenForm("login/token")]);
    if (below === "callback") return await this.#comeBack(query, request);
    const ticket = this.#options.logins.findLink(below);
    if (ticket === undefined) return gone();
    return page(200, `Log in to ${ticket.source}`, codeForm(ticket.source, ticket.owner.subject));
  }

  async #post(request: HttpRequest): Promise<HttpAnswer> {
    if (!this.#isOwn(request))
      return page(403, "Not from here", [text("A form of another page was sent. Nothing has changed.")]);
    const type = request.header("content-type") ?? "";
    if (!type.startsWith("application/x-www-form-urlencoded"))
      return page(415, "No form", [text("Only forms are taken.")]);
    const form = new URLSearchParams(Buffer.from(await request.body(MOST_FORM_BYTES)).toString("utf8"));
    const below = request.path.slice(LOGIN_PATH.length + 1);
    if (below === "token") return await this.#showLogins(form.get("token") ?? "");
    if (below === "begin" || below === "end" || below === "key") return await this.#act(below, form);
    return await this.#redeem(below, form.get("code") ?? "");
  }

  /** Another site can send a form here as well; browsers say which one did. */
  #isOwn(request: HttpRequest): boolean {
    const { origin } = request;
    const site = request.header("sec-fetch-site");
    if (site !== undefined && site !== "same-origin") return false;
    const from = request.header("origin")?.toLowerCase();
    if (from === undefined) return true;
    const own = parseUrl(this.#options.logins.baseUrl ?? "")?.origin;
    return (
      from === own ||
      from === origin.toLowerCase() ||
      from === origin.toLowerCase().replace(/^http:/, "https:")
    );
  }

  /** The code shows that it is the person who was given the link. */
  async #redeem(id: string, code: string): Promise<HttpAnswer> {
    const ticket = await this.#options.logins.redeemLink(id, code);
    if (ticket === "unknown") return gone();
    if (ticket === "used-up") return page(403, "Too many wrong codes", [text("Call again for a new link.")]);
    if (ticket === "wrong-code")
      return page(403, "That is not the code", [
        text("It is the one that came with the link. Go back and try again."),
      ]);
    const source = this.#options.logins.sources.get(ticket.source);
    if (source === undefined || !keepsGrants(source)) return gone();
    if (source.identity.mode === "caller") return await this.#begin(source, ticket.owner);
    const handle = this.#open({ owner: ticket.owner, sources: [source.name] });
    return page(200, `Your key for ${source.name}`, [keyForm(source.name, handle)]);
  }

  async #showLogins(token: string): Promise<HttpAnswer> {
    const identity = token === "" ? undefined : await this.#options.identify(token);
    if (identity === undefined)
      return page(403, "Not known", [text("That is no token of this gateway."), tokenForm("token")]);
    const visible = [...this.#options.logins.sources.values()].filter(
      (source) => keepsGrants(source) && this.#options.isVisible(source.name, identity),
    );
    const [first] = visible;
    if (first === undefined) return page(200, "Your logins", [text("There is nothing to log in to.")]);
    const owner = grantOwner(first, identity);
    return await this.#list(this.#open({ owner, sources: visible.map(({ name }) => name) }));
  }

  async #list(handle: string, done?: string): Promise<HttpAnswer> {
    const visit = this.#visits.get(handle);
    if (visit === undefined) return gone();
    const rows = await Promise.all(
      visit.sources.map(async (name) => {
        const source = this.#options.logins.sources.get(name);
        if (source === undefined) return "";
        const held = await this.#options.logins.heldBy(source, visit.owner);
        return sourceRow(source, held !== undefined, handle);
      }),
    );
    const told = done === undefined ? [] : [text(done)];
    return page(200, `The logins of ${visit.owner.subject}`, [...told, ...rows]);
  }

  async #act(what: "begin" | "end" | "key", form: URLSearchParams): Promise<HttpAnswer> {
    const handle = form.get("handle") ?? "";
    const visit = this.#find(handle);
    const name = form.get("source") ?? "";
    const source =
      visit?.sources.includes(name) === true ? this.#options.logins.sources.get(name) : undefined;
    if (visit === undefined || source === undefined) return gone();
    if (what === "end") {
      const outcome = await this.#options.logins.end(source, visit.owner);
      const told =
        outcome === "failed"
          ? " Its authorization server did not revoke it: end it in your account there."
          : "";
      return await this.#list(handle, `You are logged out of ${name}.${told}`);
    }
    if (what === "begin" && source.identity.mode === "caller") return await this.#begin(source, visit.owner);
    if (source.identity.mode !== "key") return gone();
    if (what === "begin") return page(200, `Your key for ${name}`, [keyForm(name, handle)]);
    const key = (form.get("key") ?? "").trim();
    if (key.length > MOST_KEY_CHARACTERS || !/^[\x21-\x7e]+$/.test(key)) {
      return page(400, "That is no key", [
        text("A key has visible ASCII characters, and no spaces."),
        keyForm(name, handle),
      ]);
    }
    await this.#options.logins.keep(source, visit.owner, { key, at: new Date().toISOString() });
    this.#visits.delete(handle);
    return page(200, "Your key is kept", [
      text(`Calls to ${name} are made with it from now on. You can close this page.`),
    ]);
  }

  async #begin(source: ActingSource, owner: GrantOwner): Promise<HttpAnswer> {
    const { logins, loaded } = this.#options;
    const base = logins.baseUrl ?? "";
    const start = await this.#pending.start(source, owner, {
      target: () => findLoginTarget(source.login, loaded()),
      redirectUrl: `${base}${LOGIN_PATH}/callback`,
    });
    const { name, value } = start.cookie;
    const path = `${parseUrl(base)?.pathname.replace(/\/$/, "") ?? ""}${LOGIN_PATH}`;
    const secure = base.startsWith("https:") ? "; Secure" : "";
    const cookie = `${name}=${value}; Path=${path}; Max-Age=600; HttpOnly; SameSite=Lax${secure}`;
    return {
      status: 303,
      headers: { ...HEADERS, location: start.url.href, "set-cookie": cookie },
      body: undefined,
    };
  }

  async #comeBack(query: string, request: HttpRequest): Promise<HttpAnswer> {
    const { logins } = this.#options;
    const address = parseUrl(`${logins.baseUrl ?? ""}${LOGIN_PATH}/callback?${query}`);
    const cookies = readCookies(request.header("cookie") ?? "");
    const done = address && (await this.#pending.comeBack(address, (name) => cookies.get(name)));
    if (done === "elsewhere") {
      return page(200, "You are back", [
        text("Another replica of the gateway finishes your login. You can close this page, and go back."),
      ]);
    }
    if (done === undefined) {
      return page(400, "Not this login", [
        text("This is not a login that waits for this browser. Nothing has changed."),
      ]);
    }
    return page(200, "You are logged in", [
      text(
        `Calls of ${done.owner.subject} to ${done.source.name} are made as you from now on. You can close this page, and go back.`,
      ),
    ]);
  }

  #open(visit: Omit<Visit, "expiresAt">): string {
    const handle = randomBytes(24).toString("base64url");
    const [oldest] = this.#visits.keys();
    if (this.#visits.size >= MOST_VISITS && oldest !== undefined) this.#visits.delete(oldest);
    this.#visits.set(handle, { ...visit, expiresAt: Date.now() + VISIT_MS });
    return handle;
  }

  #find(handle: string): Visit | undefined {
    const visit = this.#visits.get(handle);
    if (visit !== undefined && visit.expiresAt > Date.now()) return visit;
    this.#visits.delete(handle);
    return undefined;
  }
}

/** Reads cookies by their names. */
export function readCookies(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split(";").map((part) => {
      const at = part.indexOf("=");
      return [part.slice(0, Math.max(at, 0)).trim(), part.slice(at + 1).trim()] as const;
    }),
  );
}

const STYLE =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem}input{font:inherit;padding:.3rem;width:100%;box-sizing:border-box}button{font:inherit;padding:.3rem .8rem;margin:.5rem .5rem 0 0}form{display:block;margin:.5rem 0}";
const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

const HEADERS: Readonly<AnswerHeaders> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'`,
  // With "no-referrer", browsers send forms with the origin "null", which is not this one.
  "referrer-policy": "same-origin",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
};

/** A page; `parts` are HTML already. */
function page(status: number, title: string, parts: readonly string[]): HttpAnswer {
  const shown = toHtml(title);
  const body = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${shown} – Waybill</title><style>${STYLE}</style><h1>${shown}</h1>${parts.join("")}</html>\n`;
  return { status, headers: { ...HEADERS }, body };
}

function gone(): HttpAnswer {
  return page(404, "This link works no more", [
    text("It was used, or ten minutes have passed. Make the call again for a new link."),
  ]);
}

function text(said: string): string {
  return `<p>${toHtml(said)}</p>`;
}

function codeForm(source: string, subject: string): readonly string[] {
  return [
    text(`If you log in, the caller "${subject}" of this gateway can use ${source} as you.`),
    text(
      "Go on only if you are that caller, and asked for this yourself. Enter the code that came with the link; nobody else has to know it.",
    ),
    `<form method="post"><label>Code <input name="code" autocomplete="off" autofocus required></label><button>Go on</button></form>`,
  ];
}

function tokenForm(action: string): string {
  return `<form method="post" action="${action}"><label>Your token of this gateway <input name="token" type="password" autocomplete="off" required></label><button>Show my logins</button></form>`;
}

function keyForm(source: string, handle: string): string {
  return `<form method="post" action="key">${hidden(source, handle)}<label>Your own key for ${toHtml(source)} <input name="key" type="password" autocomplete="off" required></label><button>Keep it</button></form>`;
}

function sourceRow({ name, identity }: ActingSource, isHeld: boolean, handle: string): string {
  const begin = identity.mode === "key" ? "Give a key" : isHeld ? "Log in again" : "Log in";
  const button = (action: string, label: string): string =>
    `<form method="post" action="${action}">${hidden(name, handle)}<button>${label}</button></form>`;
  const end = isHeld ? button("end", identity.mode === "key" ? "Remove the key" : "Log out") : "";
  return `<h2>${toHtml(name)}</h2>${button("begin", begin)}${end}`;
}

function hidden(source: string, handle: string): string {
  return `<input type="hidden" name="handle" value="${toHtml(handle)}"><input type="hidden" name="source" value="${toHtml(source)}">`;
}

function toHtml(given: string): string {
  return escapeHtml(safeLine(given, 1_000));
}
