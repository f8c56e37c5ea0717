import { randomUUID } from "node:crypto";
import { isPlainObject, parseJsonTextOrNone } from "../../../core/json/json-value.ts";
import type { Params } from "../../protocol/messages.ts";
import { LEGACY_REVISIONS, negotiateRevision } from "../../protocol/revisions.ts";
import { readExtensions } from "../../provider.ts";
import { readCapabilities } from "../caller-answers.ts";
import { ownerDigest, type SealingKeys } from "../sealing-keys.ts";

/** What every replica knows of a session, by its id alone. */
export interface SessionFacts {
  /** Names the session; only replicas know it. */
  readonly id: string;
  /** See `ownerDigest`. */
  readonly owner: string;
  readonly revision: string;
  /** What the client said in its `initialize`, as far as it decides how requests are answered. */
  readonly client: Params;
  /** Unix epoch milliseconds. */
  readonly expiresAt: number;
}

/** A session that every replica can serve. */
export interface SealedSession {
  /** What the client sends in `Mcp-Session-Id`. */
  readonly text: string;
  readonly facts: SessionFacts;
}

/** Sessions that were ended here and could still be opened by their ids. */
const MAX_ENDED = 10_000;

/** Ids of sessions that tell each replica with the same key all it needs to serve them. */
export class SealedSessions {
  readonly #keys: SealingKeys;
  readonly #lifetimeMs: number;
  /** Ids of sessions that were ended here, oldest first, by owner. */
  readonly #ended = new Map<string, Set<string>>();
  #endedSize = 0;

  constructor(keys: SealingKeys, lifetimeMs: number) {
    this.#keys = keys;
    this.#lifetimeMs = lifetimeMs;
  }

  /** Makes the id of a session that an `initialize` opens; nothing where the client says too much of itself for an id. */
  create(params: Params, owner: string): SealedSession | undefined {
    const facts = {
      id: randomUUID(),
      owner: ownerDigest(owner),
      revision: negotiateRevision(params["protocolVersion"]),
      client: clientFacts(params),
      expiresAt: Date.now() + this.#lifetimeMs,
    };
    const text = this.#keys.seal("session", JSON.stringify(Object.values(facts)));
    return text === undefined ? undefined : { text, facts };
  }

  /** Reads the id of a session; nothing for one that is not such an id, has expired, was ended here, or is another caller's. */
  read(text: string, owner: string): SealedSession | undefined {
    const opened = this.#keys.open("session", text);
    const facts = opened === undefined ? undefined : readFacts(opened);
    if (facts === undefined || facts.owner !== ownerDigest(owner)) return undefined;
    if (facts.expiresAt <= Date.now() || this.#ended.get(facts.owner)?.has(facts.id)) return undefined;
    return { text, facts };
  }

  /** Refuses a session from now on; only this replica does. */
  end({ owner, id }: SessionFacts): void {
    const own = this.#ended.get(owner) ?? new Set();
    if (own.has(id)) return;
    this.#ended.set(owner, own.add(id));
    this.#endedSize += 1;
    if (this.#endedSize > MAX_ENDED) this.#forgetOldest();
  }

  /** Forgets the oldest of the owner with most. */
  #forgetOldest(): void {
    let [found, most] = [undefined as string | undefined, 0];
    for (const [owner, { size }] of this.#ended) if (size > most) [found, most] = [owner, size];
    const own = this.#ended.get(found as string) as Set<string>;
    const [oldest] = own;
    own.delete(oldest as string);
    if (own.size === 0) this.#ended.delete(found as string);
    this.#endedSize -= 1;
  }
}

/** What of an `initialize` decides how requests are answered. */
function clientFacts({ clientInfo, capabilities }: Params): Params {
  const name = isPlainObject(clientInfo) ? clientInfo["name"] : undefined;
  const { form, url, sampling, roots } = readCapabilities(capabilities);
  const extensions = readExtensions(capabilities);
  return {
    ...(typeof name === "string" && { clientInfo: { name } }),
    capabilities: {
      ...((form || url) && { elicitation: { ...(form && { form: {} }), ...(url && { url: {} }) } }),
      ...(sampling && { sampling: {} }),
      ...(roots && { roots: {} }),
      ...(Object.keys(extensions).length > 0 && { extensions }),
    },
  };
}

/** A replica of another version may have written others. */
function readFacts(text: string): SessionFacts | undefined {
  const written = parseJsonTextOrNone(text);
  if (!Array.isArray(written)) return undefined;
  const [id, owner, revision, client, expiresAt] = written as readonly unknown[];
  const isRight =
    typeof id === "string" &&
    typeof owner === "string" &&
    LEGACY_REVISIONS.includes(revision as string) &&
    isPlainObject(client) &&
    typeof expiresAt === "number";
  return isRight ? { id, owner, revision: revision as string, client, expiresAt } : undefined;
}
