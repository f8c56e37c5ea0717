import { CallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { Asker, AskLine } from "../bus.ts";
import { overMessageBytes } from "../call-errors.ts";
import type { CallRequested } from "../call-events.ts";
import { isOperationId } from "../discovery/operation-id.ts";
import { RecentIds } from "../recent-ids.ts";
import { type AskLineHolder, type SentTogether, WireAskLine } from "./ask-line.ts";
import { Members } from "./members.ts";
import { AROUND, BATCH, MOST_BATCH_TEXT, soon } from "./reply-batches.ts";
import type { TransportMessage } from "./transport.ts";
import type { WireHost } from "./wire-bus.ts";
import {
  decodeBatch,
  decodeMessage,
  EMPTY_BATCH,
  entryBytes,
  fromEntryText,
  MOST_REQUESTS,
  requestOpening,
  toBatchText,
  toBytes,
  toEntryText,
  toRequestText,
} from "./wire-message.ts";

/** Calls that were given up, whose answers may still come: they are told from forged ones. */
const GIVEN_UP_LINES = 10_000;

/** Answered calls whose answers may come twice. */
const ANSWERED_LINES = 1_024;

/** Operations whose subjects are remembered. */
const MOST_ROUTES = 1_000;

/** Characters of a request that may go together with others. */
const SHORT_REQUEST = 2_000;

/** Requests that are ready together go in no fewer messages than this, so that all members get some of them. */
const LEAST_MESSAGES = 8;

/** Milliseconds until members that did not say that they take several requests at a time are asked again. */
const ASK_AGAIN_MS = 10_000;

/** What all calls of one operation have in common, and those that wait to be sent. */
interface Route {
  /** The id, written as JSON. */
  readonly operation: string;
  readonly subject: string;
  readonly batchSubject: string;
  waiting: WireAskLine[];
  /** Whether members said that they take several requests at a time. */
  takesBatches: boolean;
  /** When they were asked, on the monotonic clock. */
  askedAt: number;
  question: Question | undefined;
}

/** What is told of messages that come by a reply path of its own. */
interface Hearing {
  readonly token: string;
  hear(message: TransportMessage): void;
}

/** Asks whether members of an operation take several requests at a time. */
class Question implements Hearing {
  readonly token: string;
  readonly #lines: AskLines;
  readonly #route: Route;

  constructor(lines: AskLines, token: string, route: Route) {
    this.#lines = lines;
    this.token = token;
    this.#route = route;
  }

  hear({ isUndelivered = false }: TransportMessage): void {
    this.#lines.settleQuestion(this.#route);
    this.#route.takesBatches = !isUndelivered;
  }
}

/** Requests that went out in one message, until somebody has heard of one of them. */
class SentBatch implements Hearing, SentTogether {
  readonly token: string;
  readonly route: Route;
  readonly lines: readonly WireAskLine[];
  readonly entries: readonly string[];
  open: number;
  readonly #lines: AskLines;

  constructor(
    owner: AskLines,
    token: string,
    route: Route,
    lines: readonly WireAskLine[],
    entries: readonly string[],
  ) {
    this.#lines = owner;
    this.token = token;
    this.route = route;
    this.lines = lines;
    this.entries = entries;
    this.open = lines.length;
  }

  hear({ isUndelivered = false }: TransportMessage): void {
    if (isUndelivered) this.#lines.sendOneByOne(this);
    else this.#lines.forged();
  }
}

/** The asking half of a bus on a transport: every call has a reply path of its own, which cannot be guessed. */
export class AskLines implements AskLineHolder {
  readonly #host: WireHost;
  /** Whatever has a reply path, each at the place that its token ends with. */
  readonly #places: (Hearing | undefined)[] = [];
  readonly #free: number[] = [];
  /** Calls under way. */
  size = 0;
  readonly members: Members;
  readonly opening: string;
  readonly #routes = new Map<string, Route>();
  /** Routes with calls that wait to be sent. */
  readonly #ready: Route[] = [];
  readonly #givenUp = new RecentIds(GIVEN_UP_LINES);
  /** Tokens, over and over from the start: remembering must cost nothing, looking is rare. */
  readonly #answered: string[] = [];
  #answeredCount = 0;
  readonly #flushSoon = () => this.flush();

  constructor(host: WireHost) {
    this.#host = host;
    const { transport } = host;
    this.members = new Members(host.ejectionMs, () => host.counters.ejected++);
    this.opening = requestOpening(host.peers.ownBeat);
    transport.subscribe(`${transport.inbox}.*`, (message) => this.#hear(message));
    // Other members, or another broker with other permissions, may be there now.
    transport.onReconnect(() => {
      for (const route of this.#routes.values()) this.#forgetBatches(route);
    });
  }

  /** Called with every beat. */
  tick(): void {
    if (this.#host.transport.isConnected) for (const line of this.#open()) line.tick();
  }

  /** Sends a request with the others that become ready at the same time; one that is not like most goes by itself, at once. */
  request(request: CallRequested, asker: Asker): AskLine {
    const { transport, messageBytes, observers } = this.#host;
    if (!transport.isConnected) {
      throw new CallError("UNAVAILABLE", "The bus is not connected; nothing was sent.", { stack: false });
    }
    const route = this.#routes.get(request.operationId) ?? this.#addRoute(request.operationId);
    const text = toRequestText(route.operation, request);
    const line = new WireAskLine(this.#host, this, this.#newToken(), request, asker);
    this.#keep(line);
    this.size++;
    if (text.length <= Math.min(SHORT_REQUEST, this.#room) && line.mayWait) {
      if (observers.size > 0) line.bytes = toBytes(this.#alone(text)).length;
      this.#wait(route, line, text);
      return line;
    }
    try {
      const whole = this.#alone(text);
      const bytes = toBytes(whole).length;
      if (bytes > messageBytes)
        throw overMessageBytes(request.operationId, "request", { bytes, allowed: messageBytes });
      line.bytes = bytes;
      line.start(bytes <= transport.maxMessageBytes ? whole : line.keepInput());
    } catch (thrown) {
      this.forget(line);
      throw thrown;
    }
    return line;
  }

  forget(line: WireAskLine): void {
    if (!this.#release(line)) return;
    this.size--;
    if (line.isAnswered) this.#answered[this.#answeredCount++ % ANSWERED_LINES] = line.token;
    else this.#givenUp.add(line.token);
  }

  #newToken(): string {
    return randomLetters() + (this.#free.at(-1) ?? this.#places.length);
  }

  #keep(hearing: Hearing): void {
    this.#places[this.#free.pop() ?? this.#places.length] = hearing;
  }

  /** Tells whether it had a place. */
  #release(hearing: Hearing): boolean {
    const place = placeOf(hearing.token);
    if (this.#places[place] !== hearing) return false;
    this.#places[place] = undefined;
    this.#free.push(place);
    return true;
  }

  /** The connection is lost, and answers with it. */
  loseAll(error: CallError): void {
    for (const line of this.#open()) line.giveUp(error);
  }

  /** Sends what waits, now. */
  flush(): void {
    for (const route of this.#ready) this.#send(route);
    this.#ready.length = 0;
  }

  #open(): WireAskLine[] {
    return this.#places.filter((hearing) => hearing instanceof WireAskLine);
  }

  #addRoute(operationId: string): Route {
    if (!isOperationId(operationId)) throw new CallError("OPERATION_NOT_FOUND", undefined, { stack: false });
    for (const [oldest, route] of this.#routes) {
      if (this.#routes.size < MOST_ROUTES) break;
      this.#routes.delete(oldest);
      this.#forgetBatches(route);
    }
    const { subjects } = this.#host;
    const route: Route = {
      operation: JSON.stringify(operationId),
      subject: subjects.request(operationId),
      batchSubject: subjects.requests(operationId),
      waiting: [],
      takesBatches: false,
      askedAt: Number.NEGATIVE_INFINITY,
      question: undefined,
    };
    this.#routes.set(operationId, route);
    return route;
  }

  /** Characters of a request, or of several, that fit however they are written down. */
  get #room(): number {
    const { transport, messageBytes } = this.#host;
    return Math.floor(Math.min(transport.maxMessageBytes, messageBytes) / 3) - AROUND - this.opening.length;
  }

  /** A request as a message of its own. */
  #alone(event: string): string {
    return `${this.opening}"event":${event}}`;
  }

  #wait(route: Route, line: WireAskLine, text: string): void {
    line.unsent = text;
    if (route.waiting.length === 0) {
      if (this.#ready.length === 0) soon(this.#flushSoon);
      this.#ready.push(route);
    }
    route.waiting.push(line);
  }

  #send(route: Route): void {
    const { waiting } = route;
    route.waiting = [];
    const most = Math.min(MOST_REQUESTS, Math.floor(waiting.length / LEAST_MESSAGES));
    if (most > 1 && this.#mayBatch(route)) this.#sendTogether(route, waiting, most);
    else for (const line of waiting) this.#sendAlone(route, line);
  }

  #sendAlone({ subject }: Route, line: WireAskLine): void {
    const text = line.unsent;
    // Given up before it was sent.
    if (text === undefined) return;
    line.unsent = undefined;
    this.#publish(subject, toBytes(this.#alone(text)), line.token);
  }

  #sendTogether(route: Route, waiting: readonly WireAskLine[], most: number): void {
    const room = Math.min(MOST_BATCH_TEXT, this.#room);
    let lines: WireAskLine[] = [];
    let entries: string[] = [];
    let size = 0;
    const send = () => {
      const [first] = lines;
      if (first !== undefined && lines.length === 1) this.#sendAlone(route, first);
      else if (first !== undefined) this.#sendBatch(route, lines, entries);
      lines = [];
      entries = [];
      size = 0;
    };
    for (const line of waiting) {
      const text = line.unsent;
      if (text === undefined) continue;
      const own = text.length + line.token.length + AROUND;
      if (lines.length === most || size + own > room) send();
      lines.push(line);
      entries.push(toEntryText(line.token, `"event":${text}}`));
      size += own;
    }
    send();
  }

  #sendBatch(route: Route, lines: readonly WireAskLine[], entries: readonly string[]): void {
    const batch = new SentBatch(this, this.#newToken(), route, lines, entries);
    this.#keep(batch);
    for (const line of lines) line.batch = batch;
    this.#publish(route.batchSubject, toBytes(toBatchText(entries, this.opening)), batch.token);
  }

  /** Not before a member has said that it takes several at a time, by a subject that earlier versions do not listen to. */
  #mayBatch(route: Route): boolean {
    if (route.takesBatches) return true;
    const now = monotonicNow();
    if (now - route.askedAt < ASK_AGAIN_MS) return false;
    this.#forgetBatches(route);
    route.askedAt = now;
    route.question = new Question(this, this.#newToken(), route);
    this.#keep(route.question);
    this.#publish(route.batchSubject, EMPTY_BATCH, route.question.token);
    return false;
  }

  #forgetBatches(route: Route): void {
    this.settleQuestion(route);
    route.takesBatches = false;
    route.askedAt = Number.NEGATIVE_INFINITY;
  }

  #publish(subject: string, bytes: Uint8Array, token: string): void {
    const { transport } = this.#host;
    try {
      transport.publish(subject, bytes, `${transport.inbox}.${token}`);
    } catch {
      // The transport carries less than a moment ago; those who wait notice by themselves.
    }
  }

  #hear(message: TransportMessage): void {
    const token = message.subject.slice(this.#host.transport.inbox.length + 1);
    if (token === BATCH) this.#hearBatch(message.data);
    else {
      const hearing = this.#at(token);
      if (hearing !== undefined) hearing.hear(message);
      else this.#hearStray(token, message);
    }
  }

  /** What belongs to no call under way may say who could take one. */
  #hearStray(token: string, { data }: TransportMessage): void {
    const operationId = this.members.askedAbout(token);
    if (operationId === undefined) {
      this.#countStray(token);
      return;
    }
    const decoded = decodeMessage(data);
    if (typeof decoded === "string") this.#host.counters[decoded]++;
    else if (decoded.peer === undefined || decoded.ready === undefined) this.#host.counters.malformed++;
    else if (decoded.ready === "fresh") this.members.hear(operationId, decoded.peer);
  }

  /** One answer that cannot be read spoils no other. */
  #hearBatch(bytes: Uint8Array): void {
    const batch = decodeBatch(bytes);
    if (batch === undefined) {
      this.#host.counters.malformed++;
      return;
    }
    const { entries } = batch;
    const isObserved = this.#host.observers.size > 0;
    for (let at = 0; at < entries.length; at++) {
      const entry = entries[at];
      const token = isPlainObject(entry) ? entry["line"] : undefined;
      if (typeof token !== "string") this.#host.counters.malformed++;
      else {
        const bytes = isObserved ? entryBytes(batch, at, token) : undefined;
        const line = this.#at(token);
        if (line instanceof WireAskLine) line.hearEntry(entry as Record<string, unknown>, bytes);
        else if (line === undefined) this.#countStray(token);
        else this.forged();
      }
    }
  }

  /** A question is answered, or asked no more. */
  settleQuestion(route: Route): void {
    if (route.question !== undefined) this.#release(route.question);
    route.question = undefined;
  }

  /** Nobody took requests that were sent together. */
  sendOneByOne(batch: SentBatch): void {
    const { route, lines, entries } = batch;
    this.#release(batch);
    this.#forgetBatches(route);
    route.askedAt = monotonicNow();
    for (let at = 0; at < lines.length; at++) {
      const line = lines[at];
      if (line?.batch !== batch) continue;
      line.batch = undefined;
      const message = this.opening + fromEntryText(line.token, entries[at] ?? "");
      this.#publish(route.subject, toBytes(message), line.token);
    }
  }

  /** Somebody took what was sent together. */
  taken(batch: SentBatch): void {
    this.#release(batch);
    batch.open = 0;
  }

  /** Counts a message that came by a path on which it cannot have been asked for. */
  forged(): void {
    this.#host.counters.forged++;
  }

  #at(token: string): Hearing | undefined {
    const hearing = this.#places[placeOf(token)];
    return hearing?.token === token ? hearing : undefined;
  }

  #countStray(token: string): void {
    const isLate = this.#givenUp.has(token) || this.#answered.includes(token);
    this.#host.counters[isLate ? "late" : "forged"]++;
  }
}

/** 96 random bits, in letters that may be in a subject. */
const RANDOM_LETTERS = 16;

/** One for every six bits. */
const ALPHABET = new TextEncoder().encode("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

/** Random bytes had in one go, and the letters made of them: three bytes are four letters, and each is used once. */
const random = new Uint8Array(6_144);
const text = new Uint8Array((random.length / 3) * 4);
const decoder = new TextDecoder();
let letters = "";
let used = 0;

/** Makes what nobody can guess of a reply path; the place of its call follows. */
function randomLetters(): string {
  if (used === letters.length) refill();
  used += RANDOM_LETTERS;
  return letters.slice(used - RANDOM_LETTERS, used);
}

function refill(): void {
  crypto.getRandomValues(random);
  for (let from = 0, to = 0; from < random.length; from += 3) {
    const [a, b, c] = [random[from], random[from + 1], random[from + 2]] as [number, number, number];
    const bits = (a << 16) | (b << 8) | c;
    for (let shift = 18; shift >= 0; shift -= 6) text[to++] = ALPHABET[(bits >> shift) & 63] as number;
  }
  letters = decoder.decode(text);
  used = 0;
}

/** The place that a token ends with. */
function placeOf(token: string): number {
  return Number(token.slice(RANDOM_LETTERS));
}
