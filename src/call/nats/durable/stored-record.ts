import { createHash } from "node:crypto";
import type { MsgHdrs } from "@nats-io/transport-node";
import type { DropReason } from "../../call-counters.ts";
import type { DurableStore, Placed, Put } from "./durable-store.ts";

/** Says how a body too large for one message was split: number of parts, bytes in all, hash of them, name of the set. */
const PARTS_HEADER = "Waybill-Parts";

const PARTS = /^([1-9][0-9]{0,8}) ([1-9][0-9]{0,11}) ([A-Za-z0-9_-]{43}) ([A-Za-z0-9-]{1,64})$/;

/** Names the parts of a body. */
export type PartSubject = (set: string, index: number) => string;

/** What a message of either kind shows of itself. */
export interface RecordHead {
  readonly headers: MsgHdrs | undefined;
  readonly data: Uint8Array;
}

/** Stores a body of any size: its parts first where it needs some, then the one message that counts. */
export async function writeRecord(
  store: DurableStore,
  head: Placed,
  partSubject: PartSubject,
  until: number,
): Promise<Put> {
  const { partBytes } = store;
  const { data, nonce, stream } = head;
  if (data.length <= partBytes) return store.put(head, until);
  const count = Math.ceil(data.length / partBytes);
  for (let index = 0; index < count; index++) {
    const part = data.subarray(index * partBytes, (index + 1) * partBytes);
    // One that is there already is ours: nobody else knows the nonce.
    await store.put({ stream, subject: partSubject(nonce, index), data: part, nonce }, until);
  }
  const parts = `${count} ${data.length} ${digest(data)} ${nonce}`;
  const headers = { ...head.headers, [PARTS_HEADER]: parts };
  return store.put({ ...head, data: new Uint8Array(0), headers }, until);
}

/** Reads a body back, or says why it cannot be. */
export async function readRecord(
  store: DurableStore,
  stream: string,
  head: RecordHead,
  partSubject: PartSubject,
  until: number,
): Promise<Uint8Array | DropReason> {
  const maxBytes = store.settings.limits.messageBytes;
  const parts = head.headers?.get(PARTS_HEADER) ?? "";
  if (parts === "") return head.data.length > maxBytes ? "oversized" : head.data;
  const [, count = "", bytes = "", hash, set = ""] = PARTS.exec(parts) ?? [];
  if (set === "" || Number(count) > Number(bytes)) return "malformed";
  if (Number(bytes) > maxBytes) return "oversized";
  const body = new Uint8Array(Number(bytes));
  let at = 0;
  for (let index = 0; index < Number(count); index++) {
    const part = await store.last(stream, partSubject(set, index), until);
    if (part === undefined) return "gaps";
    const { data } = part;
    if (at + data.length > body.length) return "malformed";
    body.set(data, at);
    at += data.length;
  }
  return at === body.length && digest(body) === hash ? body : "malformed";
}

function digest(body: Uint8Array): string {
  return createHash("sha256").update(body).digest("base64url");
}
