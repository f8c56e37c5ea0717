import { createHash } from "node:crypto";
import type { StateAccess } from "../state/gateway-state.ts";
import type { StateBounds, StateName } from "../state/state-store.ts";
import type { LoginTicket } from "./login-tickets.ts";
import type { GrantSeal } from "./shared-grants.ts";

/** How much is kept of links and of browsers that came back to another replica. */
export const SHARED_LINKS = {
  returnMs: 60_000,
  bounds: { records: 20_000, bytes: 67_108_864, ownRecords: 10_000, ownBytes: 33_554_432 },
} as const satisfies { readonly returnMs: number; readonly bounds: StateBounds };

const LINK = "link";

/** Lets every replica of a gateway read the links that any of them gave, and hands on browsers that come back to another one than they left. */
export class SharedLinks {
  readonly #access: StateAccess;
  readonly #seal: GrantSeal;

  constructor(access: StateAccess, seal: GrantSeal) {
    this.#access = access;
    this.#seal = seal;
  }

  /** Writes a link down in its own address. */
  write(ticket: LoginTicket): string {
    const { id, source, owner, code, expiresAt } = ticket;
    return Buffer.from(this.#seal.seal(LINK, { id, source, owner, code, expiresAt })).toString("base64url");
  }

  /** Reads a link that one of the replicas wrote; nothing for any other text. */
  read(text: string): LoginTicket | undefined {
    if (text.length > 4_096) return undefined;
    return this.#seal.open(LINK, Buffer.from(text, "base64url")) as LoginTicket | undefined;
  }

  /** Uses a link up for all replicas; false where one of them has done so already. */
  async use({ id, owner, expiresAt }: LoginTicket): Promise<boolean> {
    const shared = await this.#access.reach();
    if (shared === undefined) return true;
    const name: StateName = { collection: "caller-links", owner: owner.key, key: id };
    const write = { expiresAt: Math.max(expiresAt, shared.store.now() + 1_000), bounds: SHARED_LINKS.bounds };
    return (await shared.store.create(name, Buffer.from("{}"), write)).state === "created";
  }

  /** Shows that a browser was sent by one of the replicas. */
  proof(state: string, secret: string): string {
    return this.#seal.mac(`${state} ${secret}`);
  }

  /** Hands on a browser that came back here; false where that cannot be. */
  async handOn(state: string, address: string): Promise<boolean> {
    const shared = await this.#access.reach();
    if (shared === undefined) return false;
    const name = returnOf(state);
    const write = { expiresAt: shared.store.now() + SHARED_LINKS.returnMs, bounds: SHARED_LINKS.bounds };
    const value = this.#seal.seal(name.key, { address });
    return (await shared.store.create(name, value, write)).state === "created";
  }

  /** Hears once of a browser that came back to another replica; returns how to stop. */
  await(state: string, listener: (address: string) => void): () => void {
    const name = returnOf(state);
    let stop = (): void => {};
    let isOver = false;
    this.#access.reach().then(
      (shared) => {
        if (shared === undefined || isOver) return;
        const look = async (): Promise<void> => {
          const found = isOver ? undefined : await shared.store.get(name);
          const address = found && this.#seal.open(name.key, found.value)?.["address"];
          if (found === undefined || isOver || !(await shared.store.delete(name, found.revision))) return;
          if (typeof address === "string") listener(address);
        };
        stop = shared.store.watch(name, () => void look().catch(() => {}));
      },
      () => {},
    );
    return () => {
      isOver = true;
      stop();
    };
  }
}

function returnOf(state: string): StateName {
  const key = createHash("sha256").update(state).digest("base64url");
  return { collection: "caller-returns", owner: "", key };
}
