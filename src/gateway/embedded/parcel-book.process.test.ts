import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Book } from "../../../examples/parcel-office/parcel.ts";
import { ROOT, runCommand } from "../../../test/run-node.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-book-"));
  path = join(folder, "state", "parcels.json");
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function readBook(): Promise<Book> {
  return JSON.parse(await readFile(path, "utf8"));
}

describe("the book of parcels", () => {
  it("loses nothing when twenty processes write at once", async () => {
    const script = await bundleBooker();
    const runs = Array.from({ length: 20 }, () => runCommand(process.execPath, [script, path, "5"]));
    const finished = await Promise.all(runs);
    const ids = finished.flatMap(({ stdout, stderr }) => {
      expect(stderr).toBe("");
      return JSON.parse(stdout) as string[];
    });
    expect(new Set(ids).size).toBe(100);
    const { parcels, events, next } = await readBook();
    const kept = new Set(parcels.map(({ id }) => id));
    expect(ids.filter((id) => !kept.has(id))).toEqual([]);
    expect([parcels.length, events.length, next]).toEqual([103, 104, 1104]);
    expect(await readdir(join(folder, "state"))).toEqual(["parcels.json"]);
  });
});

/** A program that books some parcels and prints their ids: `<file> <how many>`. */
async function bundleBooker(): Promise<string> {
  const source = join(folder, "booker.ts");
  const output = join(folder, "booker.mjs");
  await writeFile(
    source,
    `import { OperationRegistry } from "${ROOT}src/index.ts";
    import { openParcelBook } from "${ROOT}src/gateway/embedded/embedded-config.ts";
    import { parcelOperations } from "${ROOT}examples/parcel-office/parcel-operations.ts";
    const office = new OperationRegistry(parcelOperations(openParcelBook(process.argv[2])));
    const ids = [];
    for (let made = 0; made < Number(process.argv[3]); made++) {
      ids.push((await office.execute("parcel.book", { to: "Bern" })).data.id);
    }
    process.stdout.write(JSON.stringify(ids));`,
  );
  const bundle = await rolldown({ input: source, platform: "node", logLevel: "silent", cwd: ROOT });
  await bundle.write({ file: output, format: "esm", codeSplitting: false });
  await bundle.close();
  return output;
}
