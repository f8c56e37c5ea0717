import { CallError } from "../../core/errors/errors.ts";

/** Counts what runs at a time: calls, and requests whose bodies are being read. */
export class CallSlots {
  readonly #limit: number;
  #taken = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Throws where nothing more may run. */
  take(): void {
    if (this.#taken >= this.#limit) throw tooMany();
    this.#taken += 1;
  }

  giveBack(): void {
    this.#taken -= 1;
  }
}

function tooMany(): CallError {
  return new CallError("RESOURCE_EXHAUSTED", "Too many calls run at the moment; try again later.", {
    details: { retryAfterMs: 1_000 },
    stack: false,
  });
}
