import { describe, expect, it } from "vitest";
import { countHouse } from "../scripts/house.js";
import { isTestFile, readSourceFiles } from "./source-files.ts";

/** What `node scripts/house.js` counted last. Lower a number when it has become less; raise one only with a reason in the commit. */
const AT_MOST = {
  files: 631,
  lines: 141_216,
  singleImporters: 133,
  longFiles: 0,
  largestFolder: 20,
  largeFolders: 0,
  sharedExports: 0,
  sharedFileNames: 0,
  // 46 are of the schema engine, some 30 run for each call or each message of the bus, and 3 for each value on the wire: an object for each
  // step would cost time that is measured. Most of the rest are callbacks whose shape other libraries decide, and tasks.
  manyParameters: 105,
  insideTests: 33,
} as const;

describe("the source files", () => {
  const house = countHouse();

  it.each<readonly [what: keyof typeof AT_MOST, count: number]>([
    ["files", house.files],
    ["lines", house.lines],
    ["singleImporters", house.singleImporters.length],
    ["longFiles", house.longFiles.length],
    ["largestFolder", house.folders[0]?.[1] ?? Number.NaN],
    ["largeFolders", house.folders.filter(([, files]) => files > 20).length],
    ["sharedExports", house.sharedExports.length],
    ["sharedFileNames", house.sharedFileNames.length],
    ["manyParameters", house.manyParameters.length],
    ["insideTests", house.insideTests.length],
  ])("are no worse than they were: %s", (what, count) => {
    expect(count, "node scripts/house.js --list names what is counted").toBeLessThanOrEqual(AT_MOST[what]);
  });
});

/** What is no set of those who hear of something, or is one where an object for each would cost time that is measured. */
const CALLBACKS_BY_HAND = [
  // How to take out what was subscribed to.
  "src/call/wire/transport.ts",
  // The class itself.
  "src/core/collections/listeners.ts",
  // What hears of an abort comes and goes with every call.
  "src/core/execution/cancellation.ts",
  // Told of every call, which would run through one file more.
  "src/gateway/serve/observe/observer.ts",
  // Waiters, which are woken once.
  "src/gateway/sources/retried-source.ts",
  // Of each socket, with every request.
  "src/http/node-exchange.ts",
  // Waiters, which are woken once.
  "src/mcp/client/task-call.ts",
];

/** A set of functions or of listeners, or what is named listeners and holds them itself. */
const CALLBACK_SET =
  /\bSet<(?:\(|[^;=]*(?:listener|watcher|observer))|#\w*(?:listener|watcher|observer)s\b.* = (?:new (?:Set|Map)\b|\[)/i;

describe("those who hear of something", () => {
  it("are kept by the one class for it", () => {
    const sources = readSourceFiles("src").filter(({ path }) => !isTestFile(path));
    const found = sources.filter(({ text }) => CALLBACK_SET.test(text)).map(({ path }) => path);
    expect(found, "Use Listeners of src/core/collections/listeners.ts.").toEqual(CALLBACKS_BY_HAND);
  });

  it.each([
    "  readonly #ended = new Set<() => void>();",
    "  readonly #byId = new Map<string, Set<(id: string) => void>>();",
    "  readonly #all: Set<CallListener> | undefined;",
    "  readonly #all = new Set<{ readonly listener: CallListener }>();",
    "  readonly #listeners: (() => void)[] = [];",
    "  readonly #upListeners = new Set();",
  ])("are found in: %s", (line) => {
    expect(line).toMatch(CALLBACK_SET);
  });

  it.each([
    "  readonly #listeners = new Listeners<CallRow>();",
    "  readonly #names = new Set<string>(); // what listeners hear",
    "  readonly #watches = new Set<Watch>();",
  ])("are not found in: %s", (line) => {
    expect(line).not.toMatch(CALLBACK_SET);
  });
});
