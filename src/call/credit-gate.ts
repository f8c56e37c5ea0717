/** Lets as many pass as the reader has granted. */
export class CreditGate {
  #credit: number;
  #waiting: (() => void) | undefined;
  #isOpen = false;

  constructor(credit: number) {
    this.#credit = credit;
  }

  grant(credit: number): void {
    this.#credit = Math.min(this.#credit + credit, Number.MAX_SAFE_INTEGER);
    this.#release();
  }

  /** Resolves when one may pass. */
  async take(): Promise<void> {
    while (this.#credit === 0 && !this.#isOpen) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
    this.#credit--;
  }

  /** Lets everybody pass: it is over. */
  open(): void {
    this.#isOpen = true;
    this.#release();
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.();
  }
}
