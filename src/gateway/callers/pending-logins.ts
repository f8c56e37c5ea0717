import { createHash, randomBytes } from "node:crypto";
import { CallError } from "../../core/errors/errors.ts";
import { logIn } from "../../http/oauth/login.ts";
import { isSameSecret } from "../../http/oauth/oauth-store.ts";
import type { LoginTarget } from "../sources/login-target.ts";
import type { ActingSource } from "./acting-source.ts";
import type { CallerLogins } from "./caller-logins.ts";
import type { GrantOwner } from "./login-tickets.ts";

/** Logins under way at a time, and those of one caller; of these the oldest gives way. */
const MOST_PENDING = 1_000;
const MOST_PENDING_OF_ONE = 8;
/** Milliseconds that a browser has to come back. */
const COME_BACK_MS = 600_000;

interface Pending {
  readonly source: ActingSource;
  readonly owner: GrantOwner;
  /** What the browser that was sent shows when it comes back. */
  readonly proof: string;
  readonly timer: ReturnType<typeof setTimeout>;
  /** Resolves once tokens are kept. */
  readonly finished: Promise<void>;
  /** Stops hearing of other replicas. */
  readonly stop: (() => void) | undefined;
  goOn(address: string): void;
  giveUp(error: Error): void;
}

/** A browser that is to be sent to an authorization server. */
export interface LoginStart {
  readonly url: URL;
  /** The cookie that the browser has to come back with. */
  readonly cookie: { readonly name: string; readonly value: string };
}

/** Browsers that are away at authorization servers. */
export class PendingLogins {
  readonly #logins: CallerLogins;
  /** By the state that they come back with; oldest first. */
  readonly #pending = new Map<string, Pending>();
  #starting = 0;

  constructor(logins: CallerLogins) {
    this.#logins = logins;
  }

  get size(): number {
    return this.#pending.size + this.#starting;
  }

  /** Finds out where a caller logs in, and with which state they come back. */
  async start(
    source: ActingSource,
    owner: GrantOwner,
    where: { readonly target: () => Promise<LoginTarget>; readonly redirectUrl: string },
  ): Promise<LoginStart> {
    if (this.size >= MOST_PENDING)
      throw new CallError("RESOURCE_EXHAUSTED", "Too many logins are under way; try again later.", {
        stack: false,
      });
    this.#starting += 1;
    try {
      const target = await where.target();
      const before = (await this.#logins.heldBy(source, owner))?.stored;
      return await new Promise<LoginStart>((resolve, reject) => {
        const send = (url: URL): Promise<string> =>
          new Promise((goOn, giveUp) => {
            resolve(this.#add(url, { source, owner, finished, goOn, giveUp }));
          });
        const way = { redirectUrl: where.redirectUrl, send };
        const finished = logIn({ ...target, client: source.login.client, way, before }).then((stored) =>
          this.#logins.keep(source, owner, stored),
        );
        finished.catch(reject);
      });
    } finally {
      this.#starting -= 1;
    }
  }

  /**
   * Takes a browser that came back: with a state that is waited for, and the cookie of the browser that was sent. Anything else changes
   * nothing, and the login that waits goes on. Resolves with the source once tokens are kept, or says that another replica goes on with it.
   */
  async comeBack(
    address: URL,
    cookieOf: (name: string) => string | undefined,
  ): Promise<{ readonly source: ActingSource; readonly owner: GrantOwner } | "elsewhere" | undefined> {
    const state = address.searchParams.get("state") ?? "";
    const shown = cookieOf(cookieName(state)) ?? "";
    const pending = this.#pending.get(state);
    if (pending === undefined) return (await this.#handOn(state, shown, address)) ? "elsewhere" : undefined;
    if (!isSameSecret(shown, pending.proof)) return undefined;
    this.#remove(state);
    pending.goOn(address.href);
    await pending.finished;
    return pending;
  }

  /** A browser that another replica sent may come back here: its cookie says so. */
  async #handOn(state: string, shown: string, address: URL): Promise<boolean> {
    const { links } = this.#logins;
    const [secret = "", proof = ""] = shown.split(".");
    if (links === undefined || !isSameSecret(proof, links.proof(state, secret))) return false;
    return await links.handOn(state, address.href);
  }

  /** Gives all of them up. */
  close(): void {
    for (const [state, { giveUp }] of this.#pending) {
      this.#remove(state);
      giveUp(new CallError("ABORTED", "The gateway closes.", { stack: false }));
    }
  }

  #add(url: URL, given: Omit<Pending, "proof" | "timer" | "stop">): LoginStart {
    const state = url.searchParams.get("state") ?? "";
    const own = [...this.#pending].filter(([, { owner }]) => owner.key === given.owner.key);
    if (own.length >= MOST_PENDING_OF_ONE) this.#giveUp(own[0]?.[0] ?? "", "Another login took its place.");
    const secret = randomBytes(24).toString("base64url");
    const { links } = this.#logins;
    const proof = links === undefined ? secret : `${secret}.${links.proof(state, secret)}`;
    // It showed its cookie to the replica that hands it on.
    const stop = links?.await(state, (address) => {
      this.#remove(state);
      given.goOn(address);
    });
    const timer = setTimeout(
      () => this.#giveUp(state, "Nobody came back from the login in time."),
      COME_BACK_MS,
    );
    timer.unref();
    this.#pending.set(state, { ...given, proof, timer, stop });
    return { url, cookie: { name: cookieName(state), value: proof } };
  }

  #giveUp(state: string, why: string): void {
    const pending = this.#pending.get(state);
    this.#remove(state);
    pending?.giveUp(new CallError("TIMEOUT", why, { stack: false }));
  }

  #remove(state: string): void {
    const pending = this.#pending.get(state);
    clearTimeout(pending?.timer);
    pending?.stop?.();
    this.#pending.delete(state);
  }
}

/** A cookie of its own for each login: a browser may have several under way. */
function cookieName(state: string): string {
  return `waybill_login_${createHash("sha256").update(state).digest("hex").slice(0, 16)}`;
}
