import { createHash } from "node:crypto";
import { placeOf } from "../../wire/subjects.ts";

/** What can be read from the subject of a stored request. */
export interface RequestAddress {
  readonly user: string;
  readonly operationId: string;
  /** Stands for the request id, which may hold what a subject cannot. */
  readonly token: string;
}

/** Consumer names longer than this are hashed; the broker takes 255. */
const MAX_CONSUMER_NAME = 200;

/** Hashes a list of texts into one token of a subject; no two lists share one. */
export function hashOf(...parts: readonly (string | null)[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
}

/** The token that a request id of a user is stored under. */
export function requestToken(user: string, requestId: string): string {
  return hashOf("request", user, requestId);
}

/**
 * Names streams, subjects and consumers. Neither namespaces, names nor users can hold a "~", so what starts with one is ours:
 *
 *     {prefix}.durable.{user}.{namespace}.{name}.{token}         a request
 *     {prefix}.durable.{user}.~part.{token}.{set}.{index}        part of a large one
 *     {prefix}.durable.{user}.~id.{token}                        a request id that its caller chose
 *     {prefix}.durable-result.{user}.{token}.end                 how it ended
 *     {prefix}.durable-result.{user}.{token}.start               that it was started
 *     {prefix}.durable-result.{user}.{token}.part.{set}.{index}  part of a large result
 */
export class DurableNames {
  readonly calls: string;
  readonly results: string;
  readonly callSubjects: string;
  readonly resultSubjects: string;
  readonly #requests: string;
  readonly #results: string;

  constructor(prefix: string) {
    this.calls = `${prefix.toUpperCase()}_CALLS`;
    this.results = `${prefix.toUpperCase()}_RESULTS`;
    this.#requests = `${prefix}.durable`;
    this.#results = `${prefix}.durable-result`;
    this.callSubjects = `${this.#requests}.>`;
    this.resultSubjects = `${this.#results}.>`;
  }

  request({ user, operationId, token }: RequestAddress): string {
    return `${this.#requests}.${user}.${placeOf(operationId)}.${token}`;
  }

  /** Matches a request of any operation. */
  anyRequest(user: string, token: string): string {
    return `${this.#requests}.${user}.*.*.${token}`;
  }

  /** Matches every request for an operation, and nothing else. */
  requestsOf(operationId: string): string {
    return `${this.#requests}.*.${placeOf(operationId)}.*`;
  }

  requestPart(user: string, token: string, set: string, index: number): string {
    return `${this.#requests}.${user}.~part.${token}.${set}.${index}`;
  }

  claim(user: string, token: string): string {
    return `${this.#requests}.${user}.~id.${token}`;
  }

  end(user: string, token: string): string {
    return `${this.#results}.${user}.${token}.end`;
  }

  start(user: string, token: string): string {
    return `${this.#results}.${user}.${token}.start`;
  }

  resultPart(user: string, token: string, set: string, index: number): string {
    return `${this.#results}.${user}.${token}.part.${set}.${index}`;
  }

  /** Reads the subject of a request back. */
  parseRequest(subject: string): RequestAddress | undefined {
    if (!subject.startsWith(`${this.#requests}.`)) return undefined;
    const [user, namespace, name, token, more] = subject.slice(this.#requests.length + 1).split(".");
    if (!user || !namespace || !name || !token || more !== undefined) return undefined;
    return { user, operationId: `${namespace}.${name.replaceAll("~", ".")}`, token };
  }
}

/** The name of an operation's consumer: another for every operation, and none that the broker refuses. */
export function consumerName(operationId: string): string {
  const dot = operationId.indexOf(".");
  const name = operationId
    .slice(dot + 1)
    .replaceAll(".", "~d")
    .replaceAll("/", "~s");
  const readable = `${operationId.slice(0, dot)}~${name}`;
  return readable.length > MAX_CONSUMER_NAME ? `~${hashOf(operationId)}` : readable;
}
