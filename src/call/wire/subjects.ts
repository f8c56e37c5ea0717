import type { Route } from "../bus.ts";

/** The queue all services share, so that of those who answer an operation or its namespace exactly one is asked. */
export const QUEUE = "waybill";

const PREFIX = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;
const USER = /^[A-Za-z0-9_-]{1,64}$/;

/** The last part of the subject of several requests. */
const SEVERAL = ".batch";

/** The user of those who say no other. */
export const NOBODY = "_";

/** Where things are sent, under one prefix and on behalf of one user. `docs/call.md` lists them for broker permissions. */
export class Subjects {
  readonly prefix: string;
  readonly user: string;

  constructor(prefix = "waybill", user: string = NOBODY) {
    if (!PREFIX.test(prefix)) {
      throw new TypeError('prefix must be words of letters, digits, "_" and "-", divided by dots.');
    }
    if (!USER.test(user)) throw new TypeError('user must be at most 64 letters, digits, "_" and "-".');
    this.prefix = prefix;
    this.user = user;
  }

  /** Where a call of an operation is asked for. */
  request(operationId: string): string {
    return `${this.prefix}.call.${this.user}.${subjectPlaceOf(operationId)}`;
  }

  /** Where several calls of an operation are asked for at a time; earlier versions do not listen there. */
  requests(operationId: string): string {
    return `${this.request(operationId)}${SEVERAL}`;
  }

  /** Where the handler of a call hears that nobody waits for it any more. */
  stop(operationId: string): string {
    return `${this.prefix}.stop.${this.user}.${subjectPlaceOf(operationId)}`;
  }

  /** What a member of a route listens to, from every user. */
  route(kind: "call" | "stop", route: Route): string {
    const place = "namespace" in route ? `${route.namespace}.*` : subjectPlaceOf(route.operationId);
    return `${this.prefix}.${kind}.*.${place}`;
  }

  /** The same for several requests at a time. */
  routes(route: Route): string {
    return `${this.route("call", route)}${SEVERAL}`;
  }

  /** The user in the subject of a request. */
  userOf(subject: string): string {
    const rest = subject.slice(this.prefix.length + ".call.".length);
    return rest.slice(0, rest.indexOf("."));
  }

  /** Tells whether a request for this operation may come by this subject, alone or with others, which is what permissions are about. */
  isFor(subject: string, operationId: string): boolean {
    const start = this.prefix.length + ".call.".length;
    const place = subjectPlaceOf(operationId);
    const at = subject.indexOf(".", start) + 1;
    if (!subject.startsWith(place, at)) return false;
    const length = at + place.length;
    return (
      subject.length === length || (subject.length === length + SEVERAL.length && subject.endsWith(SEVERAL))
    );
  }

  /** How others reach a peer of this user: the user it is bound to, and a name of its own. */
  address(peerId: string): string {
    return `${this.user}.${peerId}`;
  }

  /** Where a peer hears of calls it runs. */
  peer(address: string): string {
    return `${this.prefix}.peer.${address}`;
  }

  /** Where a peer gives signs of life; `*.*` for all of them. */
  beat(address: string): string {
    return `${this.prefix}.beat.${address}`;
  }

  /** Where a service of this user says what it offers. */
  service(serviceId: string): string {
    return `${this.prefix}.service.${this.user}.${serviceId}`;
  }

  /** Where all services do. */
  get services(): string {
    return `${this.prefix}.service.*.*`;
  }

  /** The user a service speaks for, as its subject says. */
  serviceUser(subject: string): string {
    return subject.slice(`${this.prefix}.service.`.length, subject.lastIndexOf("."));
  }

  get who(): string {
    return `${this.prefix}.who`;
  }

  /** Tells whether a subject is one of the protocol's or the broker's own, where no answer may ever be sent. */
  isOwn(subject: string): boolean {
    return subject.startsWith(`${this.prefix}.`) || subject.startsWith("$");
  }
}

/** The user a request is from, where it says one. */
export function namedUser(user: string): string | undefined {
  return user === NOBODY ? undefined : user;
}

/** A namespace has no dot and a name no `~`, so that one part each is enough and no two operations meet. */
export function subjectPlaceOf(operationId: string): string {
  const dot = operationId.indexOf(".");
  if (operationId.indexOf(".", dot + 1) < 0) return operationId;
  return `${operationId.slice(0, dot)}.${operationId.slice(dot + 1).replaceAll(".", "~")}`;
}
