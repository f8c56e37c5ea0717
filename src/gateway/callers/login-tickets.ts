import { randomBytes, randomInt } from "node:crypto";
import { isSameSecret } from "../../http/oauth/oauth-store.ts";

/** Whose a grant is. */
export interface GrantOwner {
  /** What tells the caller from all others. */
  readonly key: string;
  /** What the caller is called. */
  readonly subject: string;
}

/** A link to the page on which one caller logs in to one source, and the code that shows that they were given it. */
export interface LoginTicket {
  readonly id: string;
  readonly source: string;
  readonly owner: GrantOwner;
  /** As it is shown: two groups of four letters. */
  readonly code: string;
  /** Unix epoch milliseconds. */
  readonly expiresAt: number;
}

/** Why a link or a code is not taken. */
export type TicketFault = "unknown" | "wrong-code" | "used-up";

/** How long a link works. */
export const TICKET_MS = 600_000;
/** Links at a time. */
export const MOST_TICKETS = 10_000;
/** Links of one caller at a time; the oldest goes first. */
export const MOST_TICKETS_OF_ONE = 32;
/** Wrong codes after which a link is worth nothing. */
export const MOST_WRONG_CODES = 5;
/** A link that ends sooner is not given to one more call. */
const LEAST_LEFT_MS = 60_000;
/** No vowels, and nothing that is taken for something else (RFC 8628, section 6.1). */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";

interface Held extends LoginTicket {
  left: number;
}

/** Links that callers were given and have not used. */
export class LoginTickets {
  /** In the order in which they end. */
  readonly #held = new Map<string, Held>();
  /** The same by caller, and by source. */
  readonly #own = new Map<string, Map<string, Held>>();
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  get size(): number {
    return this.#held.size;
  }

  /** Gives a caller a link for a source: the one they have, where it works for a while yet. */
  issue(source: string, owner: GrantOwner): LoginTicket {
    this.#dropExpired();
    const own = this.#own.get(owner.key);
    const known = own?.get(source);
    if (known !== undefined && known.expiresAt - this.#now() >= LEAST_LEFT_MS) return known;
    const [oldest] = own?.values() ?? [];
    if (known !== undefined) this.#drop(known);
    else if (oldest !== undefined && (own?.size ?? 0) >= MOST_TICKETS_OF_ONE) this.#drop(oldest);
    this.#makeRoom();
    const ticket: Held = {
      id: randomBytes(16).toString("base64url"),
      source,
      owner,
      code: createCode(),
      expiresAt: this.#now() + TICKET_MS,
      left: MOST_WRONG_CODES,
    };
    this.#add(ticket);
    return ticket;
  }

  /** Takes a link over that was given elsewhere, unless its time is up. */
  adopt(ticket: LoginTicket): void {
    if (this.#held.has(ticket.id) || ticket.expiresAt <= this.#now()) return;
    this.#makeRoom();
    // One that its caller has besides stays: given up, it would take as many wrong codes again.
    this.#add({ ...ticket, left: MOST_WRONG_CODES });
  }

  /** The link of this id, if there is one. */
  find(id: string): LoginTicket | undefined {
    this.#dropExpired();
    const held = this.#held.get(id);
    return held !== undefined && held.expiresAt > this.#now() ? held : undefined;
  }

  /** Uses a link up, by its code. */
  redeem(id: string, code: string): LoginTicket | TicketFault {
    this.#dropExpired();
    const held = this.#held.get(id);
    if (held === undefined || held.expiresAt <= this.#now()) return "unknown";
    if (isSameCode(code, held.code)) {
      this.#drop(held);
      return held;
    }
    held.left -= 1;
    if (held.left > 0) return "wrong-code";
    this.#drop(held);
    return "used-up";
  }

  #makeRoom(): void {
    const [first] = this.#held.values();
    if (this.#held.size >= MOST_TICKETS && first !== undefined) this.#drop(first);
  }

  #add(ticket: Held): void {
    const { id, owner, source } = ticket;
    this.#held.set(id, ticket);
    this.#own.set(owner.key, (this.#own.get(owner.key) ?? new Map<string, Held>()).set(source, ticket));
  }

  #dropExpired(): void {
    for (const held of this.#held.values()) {
      // One that was taken over may end sooner than those before it, and is dropped a little late.
      if (held.expiresAt > this.#now()) return;
      this.#drop(held);
    }
  }

  #drop({ id, owner, source }: Held): void {
    this.#held.delete(id);
    const own = this.#own.get(owner.key);
    if (own?.get(source)?.id === id) own.delete(source);
    if (own?.size === 0) this.#own.delete(owner.key);
  }
}

function createCode(): string {
  const letters = Array.from({ length: 8 }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  return `${letters.slice(0, 4)}-${letters.slice(4)}`;
}

function isSameCode(given: string, code: string): boolean {
  const [left = "", right = ""] = [given, code].map((text) => text.toUpperCase().replace(/[^A-Z]/g, ""));
  return isSameSecret(left, right);
}
