import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Parcel, ParcelEvent } from "../../../examples/parcel-office/parcel.ts";
import { parcelOperations } from "../../../examples/parcel-office/parcel-operations.ts";
import { createClient, OperationRegistry, type ResponseEnvelope } from "../../index.ts";
import { openParcelBook } from "./embedded-config.ts";

let folder: string;
let office: OperationRegistry;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-parcels-"));
  office = openOffice();
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Another one on the same file stands for another process. */
function openOffice(): OperationRegistry {
  return new OperationRegistry(parcelOperations(openParcelBook(join(folder, "parcels.json"))), {
    outputPolicy: "strict",
  });
}

async function bookParcel(to: string, where = office): Promise<Parcel> {
  return (await where.execute("parcel.book", { to, kg: 2 })).data as Parcel;
}

/** Takes the values of a subscription one at a time. */
function watch(input: object, signal?: AbortSignal) {
  const stream = office.subscribe("parcel.watch", input, signal === undefined ? {} : { signal });
  const values = stream[Symbol.asyncIterator]();
  return {
    async next(): Promise<{ what: string; id: string; cursor: string | undefined } | undefined> {
      const { value, done } = (await values.next()) as IteratorResult<ResponseEnvelope<ParcelEvent>>;
      if (done === true) return undefined;
      return { what: value.data.what, id: value.data.id, cursor: value.meta.waybill?.cursor };
    },
    end: async () => await values.return?.(),
  };
}

describe("parcels", () => {
  it("are numbered, tracked and delivered once", async () => {
    const { id } = await bookParcel("Rome");
    const delivered = await office.execute("parcel.deliver", { id, signedBy: "Ada" });
    expect(delivered.data).toMatchObject({ id, to: "Rome", kg: 2, status: "delivered", signedBy: "Ada" });
    const again = await office.execute("parcel.deliver", { id });
    expect(again.meta).toMatchObject({ isError: true, waybill: { code: "CONFLICT" } });
    expect((await office.execute("parcel.track", { id })).data).toEqual(delivered.data);
  });

  it("cannot be planned without those who know prices and boxes", async () => {
    await expect(office.execute("parcel.plan", { zone: "europe", kg: 1 })).rejects.toMatchObject({
      code: "EXECUTION_ERROR",
    });
  });

  it.each(["P-1002", "p-1002", " 1002 "])("are found however the number is written: %s", async (id) => {
    expect((await office.execute("parcel.track", { id })).data).toMatchObject({ id: "P-1002" });
  });

  it.each(["parcel.track", "parcel.deliver"])(
    "that are not there: %s names the nearest",
    async (operation) => {
      const { data, meta } = await office.execute(operation, { id: "P-1102" });
      expect(data).toBeNull();
      expect(meta).toMatchObject({ isError: true, waybill: { code: "NOT_FOUND" } });
      expect(meta.waybill?.details).toMatchObject({
        nearest: ["P-1002", expect.any(String), expect.any(String)],
      });
      expect(meta.waybill?.message).toContain("P-1002");
    },
  );

  it("are listed page by page, by status", async () => {
    for (const to of ["Rome", "Bern", "Graz"]) await bookParcel(to);
    const pages: string[][] = [];
    for await (const page of createClient(office).pages("parcel.list", { limit: 2, status: "booked" })) {
      pages.push((page as { parcels: Parcel[] }).parcels.map(({ id }) => id));
    }
    expect(pages).toEqual([["P-1002", "P-1003"], ["P-1004", "P-1005"], ["P-1006"]]);
    const { data } = await office.execute("parcel.list", { limit: 5 });
    expect(data).toMatchObject({ total: 6, nextCursor: "P-1005" });
    expect((await office.execute("parcel.list", { cursor: "P-999999999" })).data).toEqual({
      parcels: [],
      total: 6,
    });
  });

  it.each([
    ["parcel.book", {}],
    ["parcel.book", { to: "" }],
    ["parcel.book", { to: "Rome", kg: 30.1 }],
    ["parcel.book", { to: "x".repeat(121) }],
    ["parcel.track", { id: "x".repeat(33) }],
    ["parcel.list", { limit: 101 }],
    ["parcel.list", { cursor: "later" }],
  ])("are refused where the input is wrong: %s %j", async (id, input) => {
    await expect(office.execute(id, input)).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
  });
});

describe("watching parcels", () => {
  it("tells what has happened, then what happens here and in other processes", async () => {
    const seen = watch({ cursor: "3" });
    expect(await seen.next()).toEqual({ what: "delivered", id: "P-1001", cursor: "4" });
    const here = seen.next();
    await bookParcel("Rome");
    expect(await here).toEqual({ what: "booked", id: "P-1004", cursor: "5" });
    const elsewhere = seen.next();
    await bookParcel("Bern", openOffice());
    expect(await elsewhere).toEqual({ what: "booked", id: "P-1005", cursor: "6" });
    await seen.end();
  });

  it("ends when the parcel is delivered", async () => {
    const seen = watch({ id: "p-1002" });
    expect(await seen.next()).toMatchObject({ what: "booked", id: "P-1002" });
    const end = seen.next();
    await bookParcel("Rome");
    await openOffice().execute("parcel.deliver", { id: "P-1002" });
    expect(await end).toMatchObject({ what: "delivered", id: "P-1002" });
    expect(await seen.next()).toBeUndefined();
    const late = watch({ id: "P-1002", cursor: "99" });
    expect(await late.next()).toBeUndefined();
  });

  it("ends after as many events as were asked for, and when nobody listens", async () => {
    const few = watch({ limit: 2 });
    expect([await few.next(), await few.next(), await few.next()].map((each) => each?.cursor)).toEqual([
      "1",
      "2",
      undefined,
    ]);
    const leaving = new AbortController();
    const left = watch({ cursor: "4" }, leaving.signal);
    const next = left.next();
    setTimeout(() => leaving.abort(), 20);
    await expect(next).rejects.toMatchObject({ code: "ABORTED" });
  });

  it("refuses a parcel that is not there, with the nearest", async () => {
    await expect(watch({ id: "P-1012" }).next()).rejects.toMatchObject({
      code: "NOT_FOUND",
      details: { nearest: expect.arrayContaining(["P-1002"]) },
    });
  });
});
