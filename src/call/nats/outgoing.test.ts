import { describe, expect, it } from "vitest";
import { sleep } from "../../../test/make-operation.ts";
import { Outgoing } from "./nats-bus.ts";

const EMPTY = new Uint8Array();
const MIB = new Uint8Array(1024 * 1024);

/** What reaches a connection, which throws for subjects that begin with a bang. */
function open() {
  const sent: string[] = [];
  const outgoing = new Outgoing({
    publish(subject, _data, options) {
      if (subject.startsWith("!")) throw new Error("closed");
      sent.push(options?.reply === undefined ? subject : `${subject} ${options.reply}`);
    },
  });
  const add = (...subjects: readonly string[]) => {
    for (const subject of subjects) outgoing.add(subject, EMPTY, undefined);
  };
  return { outgoing, sent, add };
}

describe("Outgoing", () => {
  it("Call: sends what is added together, in order, once no promise has anything left to do", async () => {
    const { outgoing, sent, add } = open();
    add("a", "b");
    outgoing.add("c", EMPTY, "reply");
    await Promise.resolve().then(() => add("d"));
    await sleep(0);
    expect(sent).toEqual(["a", "b", "c reply", "d"]);
    add("e");
    await sleep(0);
    expect(sent.at(-1)).toBe("e");
  });

  it("Call: one message that cannot be sent does not lose the others", async () => {
    const { sent, add } = open();
    add("a", "!b", "c");
    await sleep(0);
    expect(sent).toEqual(["a", "c"]);
  });

  it("Call: keeps everything while the connection is lost, and sends it afterwards in order", async () => {
    const { outgoing, sent, add } = open();
    add("before");
    outgoing.hold();
    add("a", "b");
    await sleep(0);
    outgoing.send();
    expect(sent).toEqual([]);
    outgoing.release();
    expect(sent).toEqual(["before", "a", "b"]);
    add("after");
    await sleep(0);
    expect(sent.at(-1)).toBe("after");
    expect(sent).toHaveLength(4);
  });

  it("Call: keeps 50,000 messages, and drops one more", () => {
    const { outgoing, sent, add } = open();
    outgoing.hold();
    for (let n = 0; n < 50_000; n++) add(String(n));
    add("one more");
    outgoing.release();
    expect([sent.length, sent[0], sent.at(-1)]).toEqual([50_000, "0", "49999"]);
  });

  it("Call: keeps 64 MiB, and drops a byte more; there is room again afterwards", () => {
    const { outgoing, sent, add } = open();
    const fill = () => {
      outgoing.hold();
      for (let n = 0; n < 64; n++) outgoing.add("full", MIB, undefined);
      outgoing.add("byte", Uint8Array.of(1), undefined);
      add("nothing");
      outgoing.release();
    };
    fill();
    const kept = [...Array.from({ length: 64 }, () => "full"), "nothing"];
    expect(sent).toEqual(kept);
    fill();
    expect(sent).toEqual([...kept, ...kept]);
  });
});
