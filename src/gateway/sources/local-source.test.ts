import { chmodSync, existsSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { loadedConfig, makeFolder, makeSource } from "../../../test/gateway-sources.ts";
import { query, rejection, sleep, until } from "../../../test/make-operation.ts";
import { setGlobal } from "../../../test/set-global.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";

function local(files: Readonly<Record<string, string>>, extra: Partial<LoadedConfig> = {}) {
  const folder = makeFolder(files);
  const config = { operations: ["ops/**/*.{js,mjs,ts}", "!**/lib/**"] };
  const { source } = makeSource(loadedConfig(config, { baseDir: folder, ...extra }));
  const registry = new OperationRegistry();
  registry.registerAll(source);
  return { folder, source, registry };
}

const plain = (id: string, answer: string) => `{
  id: ${JSON.stringify(id)}, namespace: ${JSON.stringify(id.split(".")[0])}, name: ${JSON.stringify(id.split(".")[1])},
  version: "1.0.0", type: "query", description: "", handler: () => ${answer},
}`;

describe("modules of operations as a source", () => {
  it("RE-30 takes operations, lists of them and sources, from JavaScript and TypeScript", async () => {
    const { source, registry } = local({
      "ops/a.mjs": `export const one = ${plain("a.one", "1")}; export default one; export const other = 5;`,
      "ops/b.js": `module.exports = { two: ${plain("a.two", "2")} };`,
      "ops/c.ts": `import { three } from "./lib/three.ts";
        const answer: number = three;
        export const list = [${plain("c.three", "answer")}, ${plain("c.four", "4")}];`,
      "ops/lib/three.ts": "export const three: number = 3;",
      "ops/d.mjs": `export const source = { operations: [${plain("d.five", "5")}] };`,
    });
    await source.start();
    expect(source.report()).toMatchObject({ kind: "local", name: "local", unusable: [], notes: [] });
    expect(source.operations.map(({ id }) => id)).toEqual(["a.one", "a.two", "c.four", "c.three", "d.five"]);
    for (const [id, data] of Object.entries({ "a.one": 1, "a.two": 2, "c.three": 3, "d.five": 5 })) {
      expect((await registry.execute(id)).data).toBe(data);
    }
  });

  it("RE-30 gives modules this package where none is installed, and their envelopes are taken for such", async () => {
    const text = `import { CallError, defineOperation, localEnvelope, Type } from "waybill";
      export const greet = defineOperation({
        namespace: "NS", name: "greet", version: "1.0.0", type: "query", description: "Greets.",
        inputSchema: Type.Object({ name: Type.String() }),
        handler: ({ name }) => {
          if (name === "nobody") throw new CallError("CONFLICT", "There is nobody.");
          return localEnvelope("Hello " + name, "NS.greet");
        },
      });`;
    const { source, registry } = local({
      "ops/typed.ts": text.replaceAll("NS", "typed"),
      "ops/plain.mjs": text.replaceAll("NS", "plain"),
      "ops/formats.ts": `import { FORMATS } from "waybill/formats"; export const op = ${plain("f.count", "Object.keys(FORMATS).length")};`,
    });
    await source.start();
    expect(source.report().unusable).toEqual([]);
    for (const id of ["typed.greet", "plain.greet"]) {
      expect((await registry.execute(id, { name: "Ada" })).data).toBe("Hello Ada");
      expect(await rejection(registry.execute(id, {}))).toMatchObject({ code: "VALIDATION_ERROR" });
      expect(await rejection(registry.execute(id, { name: "nobody" }))).toMatchObject({ code: "CONFLICT" });
    }
    expect((await registry.execute("f.count")).data).toBeGreaterThan(2);
  });

  it("RE-30 runs no module that others can change, and says why", async () => {
    const { folder, source } = local({
      "ops/a.mjs": `export const a = ${plain("a.x", "1")};`,
      "ops/b.mjs": `globalThis.ranUntrusted = true; export const b = ${plain("b.x", "1")};`,
    });
    chmodSync(join(folder, "ops/b.mjs"), 0o666);
    await source.start();
    expect(source.operations.map(({ id }) => id)).toEqual(["a.x"]);
    expect(source.report().unusable).toEqual([
      {
        name: "ops/b.mjs",
        reason: expect.stringMatching(/^It cannot be loaded\. It can be changed by other users/),
      },
    ]);
    expect(globalThis).not.toHaveProperty("ranUntrusted");
  });

  it("RE-30 reports what cannot be used with its file, and takes the rest", async () => {
    const { source } = local({
      "ops/a.mjs": `export const a = ${plain("a.x", "1")};`,
      "ops/b.mjs": `export const b = ${plain("a.x", "2")}; export const c = ${plain("a.y", "2")};`,
      "ops/c.mjs": "throw new Error('\\u001b[31mno database');",
      "ops/d.ts": "export const = 1;",
      "ops/e.mjs": "export const nothing = 1;",
      "ops/f.mjs": `export const bad = { ...${plain("a.z", "1")}, inputSchema: { type: "no-such-type" } };
        export const worse = { ...${plain("a.w", "1")}, id: "b.w" };`,
      "ops/g.mjs": "import 'no-such-package';",
      "ops/h.mjs": "throw 'text';",
    });
    await source.start();
    expect(source.state.status).toBe("up");
    expect(source.operations.map(({ id }) => id)).toEqual(["a.x", "a.y"]);
    const { unusable, notes } = source.report();
    const reasons = (file: string) =>
      unusable.filter(({ name }) => name === join("ops", file)).map(({ reason }) => reason);
    expect(reasons("b.mjs")).toEqual([`The operation "a.x" is in ${join("ops", "a.mjs")} already.`]);
    expect(reasons("c.mjs")).toEqual(["It cannot be loaded. no database"]);
    expect(reasons("d.ts")).toHaveLength(1);
    expect(reasons("f.mjs")).toHaveLength(2);
    expect(reasons("f.mjs")[0]).toContain(
      'The export "bad" cannot be used. Operation "a.z": its inputSchema is refused.',
    );
    expect(reasons("g.mjs")[0]).toContain("no-such-package");
    expect(reasons("h.mjs")).toEqual(["It cannot be loaded. It threw text."]);
    expect(notes).toEqual([{ name: join("ops", "e.mjs"), note: "It exports no operation." }]);
  });

  it("RE-30 says that no file is found", async () => {
    const { source } = local({});
    await source.start();
    expect(source.state.status).toBe("up");
    expect(source.report().notes).toEqual([
      { name: "ops/**/*.{js,mjs,ts}", note: "No file is found by it." },
    ]);
  });

  it("RE-30 loads modules anew when asked to, what they import in TypeScript too, and tells what changed", async () => {
    const { folder, source, registry } = local({
      "ops/a.mjs": `export const a = ${plain("a.x", '"old"')};`,
      "ops/b.ts": `import { value } from "./lib/value.ts"; export const b = ${plain("b.x", "value")};`,
      "ops/c.js": `module.exports = { c: ${plain("c.x", '"old"')} };`,
      "ops/lib/value.ts": 'export const value: string = "old";',
      "ops/gone.mjs": `export const g = ${plain("g.x", "1")};`,
    });
    await source.start();
    writeFileSync(join(folder, "ops/a.mjs"), `export const a = ${plain("a.x", '"new"')};`);
    writeFileSync(join(folder, "ops/lib/value.ts"), 'export const value: string = "new";');
    writeFileSync(join(folder, "ops/c.js"), `module.exports = { c: ${plain("c.x", '"new"')} };`);
    rmSync(join(folder, "ops/gone.mjs"));
    writeFileSync(join(folder, "ops/more.mjs"), `export const m = ${plain("m.x", "1")};`);
    const changes = vi.fn();
    source.onChange(changes);
    await source.retry();
    const told = changes.mock.calls.flatMap(([list]) =>
      list.map(
        ({ type, operation }: { type: string; operation: { id: string } }) => `${type} ${operation.id}`,
      ),
    );
    expect(told.sort()).toEqual(["added m.x", "removed g.x", "replaced a.x", "replaced b.x", "replaced c.x"]);
    expect((await registry.execute("a.x")).data).toBe("new");
    expect((await registry.execute("b.x")).data).toBe("new");
    expect((await registry.execute("c.x")).data).toBe("new");
  });

  it.each(["mjs", "js", "ts"])("RE-30 loads what a link leads to by then (%s)", async (ending) => {
    const text = (answer: string) => `export const one = ${plain("a.one", answer)};`;
    const { folder, source, registry } = local({
      [`first/a.${ending}`]: text("1"),
      [`second/a.${ending}`]: text("2"),
      "package.json": '{ "type": "module" }',
    });
    symlinkSync("first", join(folder, "ops"));
    await source.start();
    expect((await registry.execute("a.one")).data).toBe(1);
    rmSync(join(folder, "ops"));
    symlinkSync("second", join(folder, "ops"));
    await source.retry();
    expect((await registry.execute("a.one")).data).toBe(2);
  });

  it("RE-30 loads a module anew that changed while it was loaded for the first time", async () => {
    const slow = (answer: string) => `import { existsSync, writeFileSync } from "node:fs";
      writeFileSync(new URL("../begun", import.meta.url), "");
      while (!existsSync(new URL("../gate", import.meta.url))) await new Promise((done) => setTimeout(done, 5));
      export const one = ${plain("a.one", answer)};`;
    const { folder, source, registry } = local({ "ops/a.mjs": slow("1") });
    const started = source.start();
    await vi.waitFor(() => expect(existsSync(join(folder, "begun"))).toBe(true), 20_000);
    writeFileSync(join(folder, "ops/a.mjs"), slow("2"));
    const again = [source.retry(), source.retry()];
    writeFileSync(join(folder, "gate"), "");
    await Promise.all([started, ...again]);
    expect((await registry.execute("a.one")).data).toBe(2);
  });

  it("RE-30 calls the close of modules: of old ones once their calls have ended, of all when it closes", async () => {
    const log: string[] = [];
    const running: (() => void)[] = [];
    const slowly = (name: string) =>
      new Promise((resolve) => {
        running.push(() => {
          log.push(`answer ${name}`);
          resolve(name);
        });
      });
    setGlobal("waybillTestRuns", { log, slowly });
    const module = (name: string) => `
      export const op = ${plain("a.slow", `waybillTestRuns.slowly("${name}")`)};
      export async function close() { waybillTestRuns.log.push("close ${name}"); }`;
    const { folder, source, registry } = local({ "ops/a.mjs": module("first") });
    await source.start();
    const slow = registry.execute("a.slow");
    writeFileSync(join(folder, "ops/a.mjs"), module("second"));
    await source.retry();
    expect(log).toEqual([]);
    running[0]?.();
    expect((await slow).data).toBe("first");
    await vi.waitFor(() => expect(log).toEqual(["answer first", "close first"]), 20_000);
    const last = registry.execute("a.slow");
    await until(() => running.length === 2);
    const closing = source.close({ timeoutMs: 60_000 });
    await sleep(5);
    running[1]?.();
    await closing;
    expect((await last).data).toBe("second");
    expect(log).toEqual(["answer first", "close first", "answer second", "close second"]);
  });

  it("RE-30 is closed at once while a module takes its time to load", async () => {
    const endless = `import { writeFileSync } from "node:fs";
      writeFileSync(new URL("../begun", import.meta.url), "");
      await new Promise(() => {});`;
    const { folder, source } = local({ "ops/a.mjs": endless });
    const started = source.start();
    await until(() => existsSync(join(folder, "begun")));
    await source.close();
    await started;
  });

  it("RE-30 follows sources that a module exports, and closes them", async () => {
    const shared: { listener?: () => void; closed?: boolean; operations?: unknown[] } = {};
    setGlobal("waybillTestShared", shared);
    const { source } = local({
      "ops/a.mjs": `const shared = globalThis.waybillTestShared;
        shared.operations = [${plain("a.x", "1")}];
        export const live = {
          get operations() { return shared.operations; },
          onChange(listener) { shared.listener = listener; },
          async close() { shared.closed = true; },
        };`,
    });
    await source.start();
    const before = source.operations[0];
    shared.operations?.push({ ...query("a.y", () => 2) });
    shared.listener?.();
    expect(source.operations.map(({ id }) => id)).toEqual(["a.x", "a.y"]);
    expect(source.operations[0]).toBe(before);
    await source.close();
    expect(shared.closed).toBe(true);
  });

  it("RE-30 listens once to a source of a module that stays because its new text is broken, however often that is loaded", async () => {
    const shared: { listeners: (() => void)[]; operations: unknown[] } = { listeners: [], operations: [] };
    setGlobal("waybillTestKept", shared);
    const { folder, source } = local({
      "ops/a.mjs": `const shared = globalThis.waybillTestKept;
        shared.operations.push(${plain("a.x", "1")});
        export const live = {
          operations: shared.operations,
          onChange(listener) { shared.listeners.push(listener); },
        };`,
    });
    await source.start();
    writeFileSync(join(folder, "ops/a.mjs"), "export const = 1;");
    for (let times = 0; times < 3; times += 1) await source.retry();
    expect(source.report().unusable[0]?.reason).toContain("the old one stays");
    expect(shared.listeners).toHaveLength(1);
    const changes = vi.fn();
    source.onChange(changes);
    shared.operations.push({ ...query("a.y", () => 2) });
    for (const listener of shared.listeners) listener();
    expect(changes).toHaveBeenCalledTimes(1);
    expect(source.operations.map(({ id }) => id)).toEqual(["a.x", "a.y"]);
  });

  it("RE-30 mounts the operations of this process besides those of modules, which do not take their ids", async () => {
    const { source, registry } = local(
      { "ops/a.mjs": `export const a = ${plain("own.x", "1")}; export const b = ${plain("own.y", "1")};` },
      { localOperations: [query("own.x", () => "own")] },
    );
    await source.start();
    expect((await registry.execute("own.x")).data).toBe("own");
    expect(source.report().unusable[0]?.reason).toBe('The operation "own.x" is in this process already.');
    expect(source.operations).toHaveLength(2);
  });
});
