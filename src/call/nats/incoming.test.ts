import { describe, expect, it } from "vitest";
import { sleep } from "../../../test/make-operation.ts";
import { Incoming } from "./nats-bus.ts";

interface Numbered {
  readonly n: number;
  readonly data: Uint8Array;
}

const KIB = 1024;

/** Messages by number, and what became of them. */
function open(react: (n: number) => void = () => {}) {
  const incoming = new Incoming<Numbered>();
  const heard: (number | string)[] = [];
  const hear = ({ n }: Numbered) => {
    heard.push(n);
    react(n);
  };
  const add = (bytes: number, ...numbers: readonly number[]) => {
    for (const n of numbers) incoming.add({ n, data: new Uint8Array(bytes) }, hear);
  };
  return { incoming, heard, add };
}

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

describe("Incoming", () => {
  it("Call: hands over at once what is not much", () => {
    const { heard, add } = open();
    add(KIB, 0, 1, 2);
    add(KIB, 3);
    expect(heard).toEqual([0, 1, 2, 3]);
  });

  it("Call: of much it hands over the rest later, in order, once promises and ticks have nothing left to do", async () => {
    const { heard, add } = open((n) => {
      if (n !== 0) return;
      void Promise.resolve().then(() => process.nextTick(() => heard.push("sent")));
    });
    add(4 * KIB, ...upTo(12));
    const first = heard.length;
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(12);
    add(0, 12);
    await sleep(0);
    await sleep(0);
    expect(heard).toEqual([...upTo(first), "sent", ...upTo(13).slice(first)]);
  });

  it("Call: one that comes after a promise went on is handed over at once again, unless others wait", async () => {
    const { heard, add } = open();
    add(24 * KIB, 0);
    await Promise.resolve();
    add(24 * KIB, 1);
    expect(heard).toEqual([0, 1]);
    add(KIB, 2);
    await Promise.resolve();
    add(KIB, 3);
    expect(heard).toEqual([0, 1]);
    await sleep(0);
    expect(heard).toEqual([0, 1, 2, 3]);
  });

  it("Call: no more than 64 KiB wait", () => {
    const { heard, add } = open();
    add(8 * KIB, ...upTo(100));
    const waiting = 100 - heard.length;
    expect(waiting).toBeGreaterThan(0);
    expect(waiting * 8).toBeLessThanOrEqual(64);
    expect(heard).toEqual(upTo(heard.length));
  });

  it("Call: hands over everything when it is told to, whoever tells it", async () => {
    const one = open();
    one.add(8 * KIB, ...upTo(6));
    one.incoming.handAll();
    expect(one.heard).toEqual(upTo(6));
    const two = open((n) => {
      if (n === 4) two.incoming.handAll();
    });
    two.add(8 * KIB, ...upTo(9));
    await sleep(0);
    expect(two.heard).toEqual(upTo(9));
  });

  it("Call: drops what waits when it is cleared", async () => {
    const { incoming, heard, add } = open();
    add(8 * KIB, ...upTo(9));
    const first = heard.length;
    incoming.clear();
    await sleep(0);
    expect(heard).toEqual(upTo(first));
    add(KIB, 9);
    expect(heard.at(-1)).toBe(9);
  });

  it("Call: a listener that throws holds up no other message", () => {
    const { incoming, heard, add } = open((n) => {
      if (n === 4) throw new Error("broken");
    });
    add(8 * KIB, ...upTo(6));
    expect(() => incoming.handAll()).toThrow("broken");
    incoming.handAll();
    expect(heard).toEqual(upTo(6));
  });
});
