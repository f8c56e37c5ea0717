import { sleep } from "../make-operation.ts";
import type { NatsServer } from "../nats-server.ts";
import type { Random } from "../random.ts";
import type { Fleet, Member, Role } from "./fleet.ts";

/** What the nemesis has done. */
export interface Damage {
  readonly kills: Readonly<Record<Role | "broker", number>>;
  /** Kills while at least so many calls were in flight as were asked for. */
  readonly killsUnderLoad: number;
  readonly stops: Readonly<Record<Role, number>>;
  /** In good order; those after a kill are not among them. */
  readonly restarts: number;
}

/** How much the nemesis does. */
export interface NemesisOptions {
  readonly random: Random;
  readonly seconds: number;
  /** It goes on until there were so many. */
  readonly leastKills: number;
  /** Calls that have to be in flight for a kill to count. */
  readonly load: number;
  /** Makes up for a client that was killed. */
  readonly startClient: () => void;
}

type Deed = "kill worker" | "stop worker" | "kill broker" | "restart broker" | "kill client" | "stop client";

/** Shuffled and dealt again and again, so that every kind of thing happens. */
const DECK: readonly Deed[] = [
  ...Array<Deed>(10).fill("kill worker"),
  ...Array<Deed>(4).fill("stop worker"),
  ...Array<Deed>(2).fill("kill client"),
  "stop client",
  "kill broker",
  "restart broker",
];

/** Milliseconds more than asked for, at most, in which the kills that are missing are made: a busy machine takes its time. */
const OVERTIME_MS = 240_000;
const LOAD_WITHIN_MS = 10_000;
/** Workers that are always left alone. */
const LEAST_WORKERS = 2;

/** Kills, stops and restarts what it finds, and leaves everything running. */
export class Nemesis {
  readonly #fleet: Fleet;
  readonly #server: NatsServer;
  readonly #options: NemesisOptions;
  readonly #kills = { worker: 0, client: 0, broker: 0 };
  readonly #stops = { worker: 0, client: 0 };
  #killsUnderLoad = 0;
  #restarts = 0;
  /** Repairs on their way. */
  readonly #repairs = new Set<Promise<void>>();

  constructor(fleet: Fleet, server: NatsServer, options: NemesisOptions) {
    this.#fleet = fleet;
    this.#server = server;
    this.#options = options;
  }

  async rage(): Promise<Damage> {
    try {
      await this.#strikeUntilOver();
    } finally {
      // Even after a failure: nobody may be started or left stopped later.
      await Promise.all(this.#repairs);
    }
    return {
      kills: this.#kills,
      killsUnderLoad: this.#killsUnderLoad,
      stops: this.#stops,
      restarts: this.#restarts,
    };
  }

  async #strikeUntilOver(): Promise<void> {
    const { random, seconds, leastKills } = this.#options;
    const start = performance.now();
    let deck: Deed[] = [];
    for (;;) {
      const passed = performance.now() - start;
      if (passed > seconds * 1_000 + OVERTIME_MS) return;
      if (passed > seconds * 1_000 && this.#killsUnderLoad >= leastKills) return;
      if (deck.length === 0) deck = shuffle(DECK, random);
      await this.#underLoad();
      await this.#do(deck.pop() as Deed);
      await sleep(200 + random.below(800));
    }
  }

  async #do(deed: Deed): Promise<void> {
    switch (deed) {
      case "kill worker":
        return this.#killWorker();
      case "stop worker":
        return this.#stop("worker", this.#worker());
      case "kill client":
        return this.#killClient();
      case "stop client":
        return this.#stop("client", this.#options.random.pick(this.#fleet.running("client")));
      case "kill broker":
        return this.#killBroker();
      case "restart broker":
        this.#restarts += 1;
        return this.#server.restart();
    }
  }

  /** One that works, if enough others do. */
  #worker(): Member | undefined {
    const working = this.#fleet.running("worker").filter(({ isReady, isStopped }) => isReady && !isStopped);
    return working.length > LEAST_WORKERS ? this.#options.random.pick(working) : undefined;
  }

  /** Now and then one that is stopped, which has no last words either. */
  #killWorker(): void {
    const { random } = this.#options;
    const stopped = this.#fleet.running("worker").filter(({ isStopped }) => isStopped);
    const victim = stopped.length > 0 && random.chance(0.2) ? random.pick(stopped) : this.#worker();
    if (victim === undefined) return;
    this.#kill("worker", () => this.#fleet.kill(victim));
    const delay = random.below(600);
    this.#repair(async () => {
      await sleep(delay);
      this.#fleet.start("worker");
    });
  }

  #killClient(): void {
    const ready = this.#fleet.running("client").filter(({ isReady }) => isReady);
    if (ready.length < 2) return;
    const victim = this.#options.random.pick(ready);
    this.#kill("client", () => this.#fleet.kill(victim));
    this.#options.startClient();
  }

  async #killBroker(): Promise<void> {
    this.#kill("broker", () => {});
    await this.#server.kill();
    await sleep(this.#options.random.below(700));
    await this.#server.restart();
  }

  #kill(what: Role | "broker", strike: () => void): void {
    if (this.#fleet.underWay >= this.#options.load) this.#killsUnderLoad += 1;
    this.#kills[what] += 1;
    strike();
  }

  /** For a moment, or for longer than a peer may be silent and a stored call unattended. */
  #stop(role: Role, victim: Member | undefined): void {
    if (victim === undefined || victim.isStopped) return;
    this.#stops[role] += 1;
    this.#fleet.stop(victim);
    const delay = 100 + this.#options.random.below(role === "worker" ? 2_900 : 1_900);
    this.#repair(async () => {
      await sleep(delay);
      this.#fleet.resume(victim);
    });
  }

  #repair(work: () => Promise<void>): void {
    const repair = work().finally(() => this.#repairs.delete(repair));
    this.#repairs.add(repair);
  }

  async #underLoad(): Promise<void> {
    const until = performance.now() + LOAD_WITHIN_MS;
    while (this.#fleet.underWay < this.#options.load && performance.now() < until) await sleep(20);
  }
}

function shuffle<T>(cards: readonly T[], random: Random): T[] {
  const left = [...cards];
  return cards.map(() => left.splice(random.below(left.length), 1)[0] as T);
}
