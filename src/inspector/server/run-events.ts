import type { ServerResponse } from "node:http";
import { drained } from "../../http/node-exchange.ts";
import type { RunEvent } from "../protocol.ts";
import { KEPT_CHARACTERS_EACH, MOST_WAITING_BYTES } from "./inspector-limits.ts";
import { writtenJson } from "./written-json.ts";

/** The events of one call on their way to the page. */
export class RunEvents {
  readonly #response: ServerResponse;
  readonly #mask: (json: string) => string;

  constructor(response: ServerResponse, mask: (json: string) => string) {
    this.#response = response;
    this.#mask = mask;
  }

  /** Sends an event. */
  send(event: RunEvent): void {
    this.sendText(JSON.stringify(event));
  }

  /** Sends what a handler said meanwhile, unless the page does not keep up or it is no JSON of a sensible length. */
  sendIfHeard(event: RunEvent): void {
    if (this.#response.writableLength > MOST_WAITING_BYTES) return;
    const written = writtenJson(event, KEPT_CHARACTERS_EACH);
    if ("text" in written) this.sendText(written.text);
  }

  /** Sends an event that is JSON already. */
  sendText(json: string): void {
    if (this.#response.destroyed || this.#response.writableEnded) return;
    this.#response.write(`${this.#mask(json)}\n`);
  }

  /** Resolves when the page has taken what was sent, or is gone. */
  taken(): Promise<void> {
    const response = this.#response;
    return response.destroyed || !response.writableNeedDrain ? Promise.resolve() : drained(response);
  }
}
