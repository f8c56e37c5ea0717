import { mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Book, FIRST_BOOK, PARCEL_LIMITS, type Parcel } from "../../../examples/parcel-office/parcel.ts";
import { parcelOperations } from "../../../examples/parcel-office/parcel-operations.ts";
import { OperationRegistry } from "../../index.ts";
import { openParcelBook } from "./embedded-config.ts";

let folder: string;
let path: string;
let warnings: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-book-"));
  path = join(folder, "state", "parcels.json");
  warnings = [];
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

function openOffice(file = path): OperationRegistry {
  const onWarning = (message: string): void => void warnings.push(message);
  return new OperationRegistry(parcelOperations(openParcelBook(file, { onWarning })));
}

async function bookParcel(office = openOffice()): Promise<Parcel> {
  return (await office.execute("parcel.book", { to: "Bern" })).data as Parcel;
}

async function readBook(): Promise<Book> {
  return JSON.parse(await readFile(path, "utf8"));
}

async function writeBook(text: string): Promise<void> {
  await bookParcel();
  await writeFile(path, text);
}

function bookOf(count: number): Book {
  const parcels = Array.from({ length: count }, (_, index): Parcel => {
    return {
      id: `P-${index + 1}`,
      to: "Bern",
      kg: 1,
      status: "booked",
      bookedAt: "2026-01-05T08:00:00.000Z",
    };
  });
  return { version: 1, next: count + 1, sequence: 0, parcels, events: [] };
}

describe("the book of parcels", () => {
  it("keeps parcels for the next process, in a file for its owner alone", async () => {
    const { id } = await bookParcel();
    const tracked = await openOffice().execute("parcel.track", { id });
    expect(tracked.data).toMatchObject({ id: "P-1004", to: "Bern", status: "booked" });
    if (process.platform !== "win32") expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(join(folder, "state"))).toEqual(["parcels.json"]);
  });

  it("begins with something to look up, and writes nothing for being read", async () => {
    expect((await openOffice().execute("parcel.track", { id: "P-1001" })).data).toEqual(
      FIRST_BOOK.parcels[0],
    );
    await expect(stat(path)).rejects.toThrow("ENOENT");
  });

  it("sees what another process wrote", async () => {
    const here = openOffice();
    await bookParcel(here);
    const { id } = await bookParcel(openOffice());
    expect((await here.execute("parcel.track", { id })).data).toMatchObject({ id });
  });

  it("goes on where a process was killed while it held the file", async () => {
    await bookParcel();
    await writeFile(`${path}.hold`, "someone who is gone");
    const longAgo = new Date(Date.now() - 60_000);
    await utimes(`${path}.hold`, longAgo, longAgo);
    expect((await bookParcel()).id).toBe("P-1005");
  });

  const DAMAGES = ["", "{", "null", "[]", '{"version":1}', JSON.stringify({ ...FIRST_BOOK, next: "x" })];
  it.each(DAMAGES)("sets a damaged file aside and says so: %j", async (text) => {
    await writeBook(text);
    const tracked = await openOffice().execute("parcel.track", { id: "P-1002" });
    expect(tracked.data).toMatchObject({ id: "P-1002" });
    const [aside = "", ...more] = await readdir(join(folder, "state"));
    expect(more).toEqual([]);
    expect(aside).toMatch(/^parcels\.json\.damaged-[0-9TZ.-]+$/);
    expect(await readFile(join(folder, "state", aside), "utf8")).toBe(text);
    expect(warnings).toEqual([expect.stringContaining(aside)]);
    expect((await bookParcel()).id).toBe("P-1004");
  });

  it("leaves the file of a later version alone", async () => {
    await writeBook('{"version":2}');
    await expect(openOffice().execute("parcel.track", { id: "P-1001" })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("later version"),
    });
    await expect(bookParcel()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(await readFile(path, "utf8")).toBe('{"version":2}');
  });

  it("tells callers without a path that nothing can be kept, and its owner with one", async () => {
    await writeFile(join(folder, "state"), "a file where the folder should be");
    const thrown = await bookParcel().catch((error) => error);
    expect(thrown).toMatchObject({ code: "UNAVAILABLE", message: "The book of parcels cannot be written." });
    expect(warnings).toEqual([`${path} cannot be written.`]);
  });

  it("takes 10,000 parcels and not one more", async () => {
    await writeBook(JSON.stringify(bookOf(PARCEL_LIMITS.parcels - 1)));
    expect((await bookParcel()).id).toBe("P-10000");
    await expect(bookParcel()).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect((await readBook()).parcels).toHaveLength(10_000);
  });

  it("keeps the last 1,000 events", async () => {
    const events = Array.from({ length: PARCEL_LIMITS.events }, (_, index) => {
      return { sequence: index + 1, at: "2026-01-05T08:00:00.000Z", id: "P-1", what: "booked", to: "Bern" };
    });
    await writeBook(JSON.stringify({ ...bookOf(1), sequence: 1_000, events }));
    await bookParcel();
    const kept = (await readBook()).events.map(({ sequence }) => sequence);
    expect([kept.length, kept[0], kept.at(-1)]).toEqual([1_000, 2, 1_001]);
  });

  it("reads a file of 64 MiB, and takes a longer one for damaged", async () => {
    const text = JSON.stringify(bookOf(1));
    await writeBook(text.padEnd(PARCEL_LIMITS.fileBytes, " "));
    expect((await openOffice().execute("parcel.track", { id: "P-1" })).meta.isError).toBeUndefined();
    await writeFile(path, text);
    await truncate(path, PARCEL_LIMITS.fileBytes + 1);
    expect((await openOffice().execute("parcel.track", { id: "P-1" })).meta.isError).toBe(true);
    expect(warnings).toHaveLength(1);
  });
});
