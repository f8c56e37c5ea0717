import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ServedFolder, type UsedFolder, until, useFolder } from "../installed-folder.ts";

let folder: UsedFolder;
let served: ServedFolder;

/** An operation that says which edition it is, once the file it was given is there. */
const slow = (edition: string) => `
import { existsSync } from "node:fs";
import { appendFileSync } from "node:fs";
export const slow = {
  id: "shop.slow", namespace: "shop", name: "slow", version: "1.0.0", type: "query", description: "Waits. ${edition}",
  handler: async ({ begun, gate }) => {
    appendFileSync(begun, ".");
    while (!existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 10));
    return "${edition}";
  },
};
export const edition = {
  id: "shop.edition", namespace: "shop", name: "edition", version: "1.0.0", type: "query", description: "Says ${edition}.",
  handler: () => "${edition}",
};
`;
const CONFIG = { operations: "ops/*", serve: { port: 0 } };

beforeEach(async () => {
  folder = useFolder();
  folder.write("ops/slow.mjs", slow("first"));
  folder.write("waybill.config.json", CONFIG);
  served = await folder.serve();
});
afterEach(() => folder.remove());

/** As editors do it: beside, and then in its place. */
function save(name: string, content: string | object): void {
  const draft = join(folder.state, "draft");
  writeFileSync(draft, typeof content === "string" ? content : JSON.stringify(content));
  const place = join(folder.path, name);
  try {
    renameSync(draft, place);
  } catch {
    folder.write(name, content);
  }
}

const call = async (operation: string, input: object = {}): Promise<unknown> => {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ operation, input });
  return (await fetch(`${served.url}/call`, { method: "POST", headers, body })).json();
};
const ids = async (): Promise<string[]> => {
  const { paths } = (await (await fetch(`${served.url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { operationId?: string; tags?: string[] }>>;
  };
  const found = Object.values(paths).flatMap((item) => Object.values(item));
  const isOwn = (tags: readonly string[] = []) => tags.includes("waybill");
  return found.flatMap(({ operationId, tags }) => (isOwn(tags) ? [] : (operationId ?? []))).sort();
};

/** Begins a call that ends when it is let; gives what it answers. */
async function beginSlow(name: string): Promise<{ end(): Promise<unknown> }> {
  const [begun, gate] = [join(folder.state, `${name}-begun`), join(folder.state, `${name}-gate`)];
  const { existsSync } = await import("node:fs");
  const answer = call("shop.slow", { begun, gate });
  await until(() => existsSync(begun), Boolean);
  return {
    end: () => {
      writeFileSync(gate, "");
      return answer;
    },
  };
}

describe("a gateway whose files change", () => {
  it("RE-30 takes over a changed module, and lets calls end in the old one", async () => {
    const { end } = await beginSlow("module");
    save("ops/slow.mjs", slow("second"));
    save("ops/more.mjs", slow("more").replaceAll("shop", "extra"));
    await until(ids, (found) => found.includes("extra.edition"));
    await until(
      () => call("shop.edition"),
      (edition) => edition === "second",
    );
    expect(await end()).toBe("first");
    const listed = await folder.run(["list", "--url", served.url]);
    expect(listed.stdout).toContain("Says second.");
    expect((await served.stop()).code).toBe(0);
  });

  it("RE-30 takes over a changed config, and lets calls of a source that is gone end", async () => {
    const { end } = await beginSlow("config");
    folder.write("other/slow.ts", slow("other: string").replaceAll("other: string", "other"));
    save("waybill.config.json", { ...CONFIG, operations: "other/*" });
    await until(
      () => call("shop.edition"),
      (edition) => edition === "other",
    );
    expect(await end()).toBe("first");
    save("waybill.config.json", { serve: { port: 0 }, openapi: {} });
    await until(ids, (found) => found.length === 0);
    expect((await served.stop()).code).toBe(0);
  });

  it("RE-30 keeps the old config while the new one is broken, and says the line", async () => {
    const { end } = await beginSlow("broken");
    save("waybill.config.json", '{\n  "operations": "ops/*",\n  "serv": {}\n}\n');
    await served.says(/the changed config cannot be used, the old one stays: .*waybill\.config\.json:3:\d+ /);
    expect(await call("shop.edition")).toBe("first");
    save("waybill.config.json", '{ "operations": \n');
    await served.says(/the old one stays: .*waybill\.config\.json:2:\d+ /);
    expect(await ids()).toEqual(["shop.edition", "shop.slow"]);
    expect(await end()).toBe("first");
    save("waybill.config.json", { ...CONFIG, name: "again" });
    await served.says(/config taken over/);
    expect(await call("shop.edition")).toBe("first");
  });

  it("RE-30 keeps the old module while the new one is broken, and says the line", async () => {
    save("ops/slow.mjs", `${slow("second")}\nexport const broken = {;\n`);
    await served.says(/slow\.mjs: It cannot be loaded, the old one stays\. Line 17: /);
    expect(await call("shop.edition")).toBe("first");
    save("ops/slow.mjs", slow("third"));
    await until(
      () => call("shop.edition"),
      (edition) => edition === "third",
    );
  });

  it("RE-30 says in the log which pattern of modules finds no file", async () => {
    save("waybill.config.json", { ...CONFIG, operations: ["ops/*", "none/*.mjs"] });
    await served.says(/WARN +No file is found by "none\/\*\.mjs"/);
    expect(await call("shop.edition")).toBe("first");
  });

  it("RE-30 follows nothing when it is told so", async () => {
    await served.stop();
    served = await folder.serve(["--port", "0", "--no-watch"]);
    const follower = await folder.serve();
    save("ops/slow.mjs", slow("second"));
    await until(
      async () => (await folder.run(["call", "shop.edition", "--url", follower.url])).stdout,
      (edition) => edition === '"second"\n',
    );
    expect(await call("shop.edition")).toBe("first");
  });
});
