import type {
  AnswerEvent,
  Answerer,
  AnswerLine,
  Asker,
  AskerEvent,
  AskLine,
  Bus,
  CallRequested,
  Membership,
  Route,
  Take,
} from "../../src/call/index.ts";
import { CallError } from "../../src/index.ts";
import { createCounters } from "./counters.ts";

/** What waits on a line: an event for one of its ends, or the news that the other end is gone. */
export type Waiting =
  | { readonly to: "answerer"; readonly event: CallRequested | AskerEvent }
  | { readonly to: "asker"; readonly event: AnswerEvent | "lost" };

/** What can be done to the first event that waits on a line, or to the next one when none does. */
export const MISCHIEF = ["hold", "release", "drop", "duplicate", "swap", "late"] as const;

/** One way to disturb a line. */
export type Mischief = (typeof MISCHIEF)[number];

interface Member {
  readonly owner: unknown;
  readonly take: Take;
}

const noResponder = (): CallError => new CallError("NO_RESPONDER", "Nobody answers.", { stack: false });

/** A line whose two queues move when told to, and which goes on delivering after both ends have closed it. */
export class HostileLine implements AskLine {
  readonly request: CallRequested;
  readonly asker: Asker;
  isHeld = false;
  isCut = false;
  owner: unknown;
  answerer: Answerer | undefined;
  /** What happens to the next event for each end. */
  readonly next: { answerer?: Mischief | undefined; asker?: Mischief | undefined } = {};
  readonly queues: { answerer: Waiting[]; asker: Waiting[] } = { answerer: [], asker: [] };
  /** Everything that was ever put on the line, to be sent once more. */
  readonly past: Waiting[] = [];

  constructor(request: CallRequested, asker: Asker) {
    this.request = request;
    this.asker = asker;
    this.push({ to: "answerer", event: request });
  }

  push(waiting: Waiting): void {
    const queue = this.queues[waiting.to];
    const mischief = this.next[waiting.to];
    this.next[waiting.to] = undefined;
    this.past.push(waiting);
    if (mischief === "drop") return;
    // Stands in front of what it came after, if that is still on its way.
    if (mischief === "swap") queue.unshift(waiting);
    else queue.push(waiting);
    if (mischief === "duplicate") queue.push(waiting);
  }

  send(event: AskerEvent): void {
    this.push({ to: "answerer", event });
  }

  close(): void {}

  get size(): number {
    return this.queues.answerer.length + this.queues.asker.length;
  }
}

/** A bus that holds back, drops, repeats, reorders and forges what is sent on its lines, whenever it is told to. */
export class HostileBus implements Bus {
  readonly counters = createCounters();
  readonly carriesIdentity = true;
  readonly lines: HostileLine[] = [];
  readonly #members = new Map<string, Member[]>();
  #turn = 0;

  request(request: CallRequested, asker: Asker): AskLine {
    if (!this.#members.get(request.operationId)?.length) throw noResponder();
    const line = new HostileLine(request, asker);
    this.lines.push(line);
    return line;
  }

  join(route: Route, take: Take): Promise<Membership> {
    return this.joinAs(undefined, route, take);
  }

  /** Joins on behalf of an owner, whose lines can be cut. */
  async joinAs(owner: unknown, route: Route, take: Take): Promise<Membership> {
    const key = "operationId" in route ? route.operationId : route.namespace;
    const member = { owner, take };
    this.#members.set(key, [...(this.#members.get(key) ?? []), member]);
    return {
      leave: async () => {
        this.#members.set(
          key,
          (this.#members.get(key) ?? []).filter((other) => other !== member),
        );
      },
    };
  }

  announce(): Promise<never> {
    return Promise.reject(new Error("Nothing is announced here."));
  }

  watch(): never {
    throw new Error("Nothing is announced here.");
  }

  async flush(): Promise<void> {}

  async close(): Promise<void> {}

  /** The owner is gone with everything it ran; who waits for it hears of it, or not. */
  cut(owner: unknown, isTold: boolean): void {
    for (const [key, members] of this.#members) {
      this.#members.set(
        key,
        members.filter((member) => member.owner !== owner),
      );
    }
    for (const line of this.lines.filter((candidate) => candidate.owner === owner && !candidate.isCut)) {
      line.isCut = true;
      line.queues.answerer = [];
      line.answerer?.lost();
      line.answerer = undefined;
      if (isTold) line.push({ to: "asker", event: "lost" });
    }
  }

  /** Delivers the first thing that waits on a line; false when nothing may. */
  deliverOne(): boolean {
    const line = this.lines.find(({ isHeld, size }) => !isHeld && size > 0);
    if (line === undefined) return false;
    const waiting = line.queues.answerer.shift() ?? line.queues.asker.shift();
    if (waiting !== undefined) this.#deliver(line, waiting);
    return true;
  }

  /** Does something to a line; what it delivers from then on follows from it. */
  disturb(line: HostileLine, mischief: Mischief, to: Waiting["to"], pick: number): void {
    const queue = line.queues[to];
    if (mischief === "hold") line.isHeld = true;
    else if (mischief === "release") line.isHeld = false;
    else if (mischief !== "late" && queue.length === 0) line.next[to] = mischief;
    else if (mischief === "drop") queue.shift();
    else if (mischief === "swap") queue.reverse();
    else if (mischief === "duplicate") queue.unshift(...queue.slice(0, 1));
    else {
      const again = line.past.filter((waiting) => waiting.to === to && waiting.event !== "lost");
      const chosen = again[pick % Math.max(1, again.length)];
      if (chosen !== undefined) queue.push(chosen);
    }
  }

  #deliver(line: HostileLine, waiting: Waiting): void {
    if (waiting.to === "asker") {
      if (waiting.event === "lost") line.asker.lost(new CallError("UNAVAILABLE", "The other end is gone."));
      else line.asker.receive(waiting.event);
    } else if (waiting.event.type !== "call.requested") line.answerer?.receive(waiting.event);
    else this.#ask(line, waiting.event);
  }

  /** A request that comes again comes to the one who took it: a broker gives each message to one member. */
  #ask(line: HostileLine, request: CallRequested): void {
    if (line.isCut) return;
    const members = this.#members.get(request.operationId) ?? [];
    const member =
      line.owner === undefined
        ? members[this.#turn++ % Math.max(1, members.length)]
        : members.find(({ owner }) => owner === line.owner);
    if (member === undefined) {
      if (line.owner === undefined) line.asker.lost(noResponder());
      return;
    }
    line.owner = member.owner;
    const answerer = member.take({ request }, this.#answerLine(line));
    line.answerer ??= answerer;
  }

  #answerLine(line: HostileLine): AnswerLine {
    let isOpen = true;
    return {
      reply: (event) => {
        if (isOpen && !line.isCut) line.push({ to: "asker", event });
      },
      flush: async () => {},
      close: () => {
        isOpen = false;
      },
    };
  }
}
