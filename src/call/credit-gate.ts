/** Bytes up to which a message of a stream counts as a value alone: several of them may share one message. */
const UNCOUNTED_BYTES = 2_048;

/** The bytes of a value that count against the credit of its stream, by the size of its message; both ends reckon alike. */
export function countedBytes(messageBytes: number | undefined): number {
  return messageBytes === undefined || messageBytes <= UNCOUNTED_BYTES ? 0 : messageBytes;
}

/** Lets as many values pass as the reader has granted, while there are bytes left: the last of them may take more than is left. */
export class CreditGate {
  #credit: number;
  #bytes: number;
  #waiting: (() => void) | undefined;
  #isOpen = false;

  /** Without `bytes` values alone count. */
  constructor(credit: number, bytes = Number.POSITIVE_INFINITY) {
    this.#credit = credit;
    this.#bytes = bytes;
  }

  grant(credit: number, bytes = 0): void {
    this.#credit = Math.min(this.#credit + credit, Number.MAX_SAFE_INTEGER);
    this.#bytes += bytes;
    this.#release();
  }

  /** Takes the bytes of a value that has passed. */
  spend(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** Resolves when one may pass. */
  async take(): Promise<void> {
    while ((this.#credit === 0 || this.#bytes <= 0) && !this.#isOpen) {
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
