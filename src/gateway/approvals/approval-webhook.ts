import { createHmac, randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { backoffMs } from "../../core/limits/backoff.ts";
import type { ApprovalRecord } from "./approval-record.ts";

/** A service that is told of each call that waits for a person, and may answer at a one-time address. */
export interface ApprovalWebhook {
  /** Where it is told, by `POST`. */
  readonly url: string;
  /** Signs what it is told; at least 32 characters, best a reference. */
  readonly secret: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Milliseconds that it may take. @default 5_000 */
  readonly timeoutMs?: number | undefined;
}

/** Bounds of what a webhook takes. */
export const WEBHOOK_LIMITS = {
  /** Characters of its secret at least. */
  secret: 32,
  /** Requests under way and waiting to be; one more is not sent, and people are asked elsewhere. */
  waiting: 100,
  /** How often a request is tried that is not taken. */
  attempts: 3,
} as const;

const TIMEOUT_MS = 5_000;
const FIRST_PAUSE_MS = 1_000;

/** Makes what a one-time address ends with: 256 bits that nobody can guess. */
export function createTicket(): string {
  return randomBytes(32).toString("base64url");
}

/** What the header `waybill-signature` says: the time, and an HMAC-SHA-256 of the time, a dot and the body. */
function signWebhook(secret: string, body: string, seconds: number): string {
  const mac = createHmac("sha256", secret).update(`${seconds}.${body}`, "utf8").digest("hex");
  return `t=${seconds},v1=${mac}`;
}

/** Tells a service of calls that wait; what it answers is not read, and nothing waits for it. */
export class WebhookNotifier {
  readonly #onWarning: (message: string, cause?: unknown) => void;
  readonly #ending = new AbortController();
  #waiting = 0;

  constructor(onWarning: (message: string, cause?: unknown) => void) {
    this.#onWarning = onWarning;
  }

  /** Tells of one call; `answerUrl` is its one-time address. */
  tell(webhook: ApprovalWebhook, record: ApprovalRecord, answerUrl: string): void {
    if (this.#waiting >= WEBHOOK_LIMITS.waiting) {
      this.#onWarning("The webhook of approvals is too slow: it is not told of further calls for now.");
      return;
    }
    this.#waiting += 1;
    const body = JSON.stringify(toBody(record, answerUrl));
    void this.#send(webhook, body)
      .catch((cause: unknown) =>
        this.#onWarning("The webhook of approvals could not be told of a call.", cause),
      )
      .finally(() => {
        this.#waiting -= 1;
      });
  }

  close(): void {
    this.#ending.abort();
  }

  async #send(webhook: ApprovalWebhook, body: string): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const status = await this.#post(webhook, body).catch((thrown: unknown) => {
        if (attempt >= WEBHOOK_LIMITS.attempts || this.#ending.signal.aborted) throw thrown;
        return 503;
      });
      if (status < 300 || this.#ending.signal.aborted) return;
      // What it refuses for good is not sent again.
      const isPassing = status >= 500 || status === 429;
      if (!isPassing || attempt >= WEBHOOK_LIMITS.attempts) throw new Error(`It answered ${status}.`);
      const ms = backoffMs(attempt, FIRST_PAUSE_MS, TIMEOUT_MS);
      await delay(ms, undefined, { signal: this.#ending.signal, ref: false }).catch(() => {});
    }
  }

  /** The address comes from the config; redirects are not followed, and not a byte of the answer is read. */
  async #post(
    { url, secret, headers, timeoutMs = TIMEOUT_MS }: ApprovalWebhook,
    body: string,
  ): Promise<number> {
    const response = await fetch(url, {
      method: "POST",
      redirect: "manual",
      headers: {
        ...headers,
        "content-type": "application/json",
        "waybill-signature": signWebhook(secret, body, Math.floor(Date.now() / 1_000)),
      },
      body,
      signal: AbortSignal.any([this.#ending.signal, AbortSignal.timeout(timeoutMs)]),
    });
    await response.body?.cancel();
    return response.status;
  }
}

function toBody(
  { id, caller, operation, source, title, description, destructive, ...rest }: ApprovalRecord,
  url: string,
) {
  const { input, askedAt, expiresAt } = rest;
  return {
    event: "approval.requested",
    id,
    caller,
    operation,
    ...(source !== undefined && { source }),
    input,
    // In the words of the operation, which are those of its source.
    says: {
      ...(title !== undefined && { title }),
      description,
      ...(destructive !== undefined && { destructive }),
    },
    askedAt: new Date(askedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
    answer: { url, method: "POST", body: { decision: ["approve", "deny"], by: "text", comment: "text" } },
  };
}
