import { describe, expect, it } from "vitest";
import { KeyedListeners, Listeners } from "./listeners.ts";

describe("Listeners", () => {
  it("tells each in the order they came; one added twice hears twice and leaves once", () => {
    const heard: string[] = [];
    const listeners = new Listeners<string>();
    const first = (news: string): void => void heard.push(`first ${news}`);
    const stop = listeners.add(first);
    listeners.add((news) => heard.push(`second ${news}`));
    listeners.add(first);
    listeners.tell("a");
    expect(heard.splice(0)).toEqual(["first a", "second a", "first a"]);
    stop();
    stop();
    listeners.tell("b");
    expect(heard).toEqual(["second b", "first b"]);
    expect(listeners.size).toBe(2);
  });

  it("tells one that leaves meanwhile no more, and one that comes meanwhile from the next time on", () => {
    const heard: string[] = [];
    const listeners = new Listeners();
    let isFirst = true;
    listeners.add(() => {
      if (isFirst) {
        stop();
        listeners.add(() => heard.push("late"));
      }
      isFirst = false;
    });
    const stop = listeners.add(() => heard.push("gone"));
    listeners.add(() => heard.push("there"));
    listeners.tell();
    expect(heard.splice(0)).toEqual(["there"]);
    listeners.tell();
    expect(heard).toEqual(["there", "late"]);
  });

  it("tells nobody more once it was cleared, by a listener too", () => {
    const heard: string[] = [];
    const listeners = new Listeners();
    listeners.add(() => listeners.clear());
    listeners.add(() => heard.push("second"));
    listeners.tell();
    listeners.tell();
    expect([heard, listeners.size]).toEqual([[], 0]);
  });

  it("tells the rest when one throws or rejects, and says whether it was the first time", async () => {
    const faults: unknown[] = [];
    const heard: string[] = [];
    const listeners = new Listeners<string>((cause, isFirst) => faults.push([cause, isFirst]));
    listeners.add(() => {
      throw "thrown";
    });
    listeners.add(() => Promise.reject("rejected"));
    listeners.add((news) => heard.push(news));
    listeners.tell("a");
    await Promise.resolve();
    listeners.tell("b");
    await Promise.resolve();
    expect(heard).toEqual(["a", "b"]);
    expect(faults).toEqual([
      ["thrown", true],
      ["rejected", true],
      ["thrown", false],
      ["rejected", false],
    ]);
  });

  it("leaves what a listener throws to itself, unless told otherwise", async () => {
    const heard: string[] = [];
    const listeners = new Listeners();
    listeners.add(() => {
      throw new Error("its own affair");
    });
    listeners.add(() => Promise.reject(new Error("its own affair")));
    listeners.add(() => heard.push("told"));
    listeners.tell();
    await Promise.resolve();
    expect(heard).toEqual(["told"]);
  });
});

describe("KeyedListeners", () => {
  it("tells those of a key, or all, until they stop", () => {
    const heard: string[] = [];
    const listeners = new KeyedListeners();
    const stop = listeners.add("a", () => heard.push("a"));
    listeners.add("b", () => heard.push("b"));
    listeners.tell("a");
    listeners.tell("c");
    listeners.tellAll();
    expect(heard.splice(0)).toEqual(["a", "a", "b"]);
    stop();
    listeners.add("a", () => heard.push("again"));
    stop();
    listeners.tellAll();
    expect(heard).toEqual(["b", "again"]);
  });
});
