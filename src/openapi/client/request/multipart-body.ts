import { randomBytes } from "node:crypto";
import { joinPointer } from "../../../core/json/json-pointer.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import { type SendableType, writeMediaType } from "../../media-types.ts";
import type { MediaPlan, OperationPlan } from "../plan.ts";
import type { BodyWriter } from "./body-writer.ts";
import { invalidInput } from "./invalid-input.ts";
import { createPartWriter, type Part } from "./multipart-part.ts";
import { isAbsent } from "./parameter-value.ts";

/** Makes what writes objects, or lists where parts have no names, as one of the multipart types. */
export function createMultipartWriter(
  key: string,
  type: SendableType,
  about: { readonly media: MediaPlan | undefined; readonly definitions: OperationPlan["definitions"] },
): BodyWriter {
  const isForm = type.essence === "multipart/form-data";
  const writePart = createPartWriter(key, { ...about, isForm });
  const contentType = writeMediaType(type, ["boundary"]);
  return (value) => {
    const parts: Part[] = [];
    for (const [name, item, pointer] of itemsOf(value, key, isForm))
      parts.push(writePart(name, item, pointer));
    const boundary = newBoundary(parts);
    return { body: assemble(parts, boundary), contentType: `${contentType}; boundary=${boundary}` };
  };
}

/** Each part with its name and place; lists are repeated parts, what has no value is none. */
function* itemsOf(
  value: unknown,
  key: string,
  isForm: boolean,
): Generator<[name: string, item: unknown, pointer: string]> {
  const isList = !isForm && Array.isArray(value);
  if (!isList && !isPlainObject(value)) throw invalidInput(key, "must be an object, each property a part");
  for (const [name, member] of Object.entries(value as object)) {
    const pointer = joinPointer("", name);
    if (!Array.isArray(member)) {
      if (!isAbsent(member)) yield [name, member, pointer];
      continue;
    }
    for (const [index, item] of member.entries()) {
      if (!isAbsent(item)) yield [name, item, `${pointer}/${index}`];
    }
  }
}

/** 128 random bits that no part contains. */
function newBoundary(parts: readonly Part[]): string {
  for (;;) {
    const boundary = `waybill-${randomBytes(16).toString("hex")}`;
    if (!parts.some(({ head, content }) => head.includes(boundary) || includesText(content, boundary)))
      return boundary;
  }
}

function includesText(bytes: Uint8Array, text: string): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(text, 0, "latin1");
}

function assemble(parts: readonly Part[], boundary: string): Uint8Array {
  const chunks: Uint8Array[] = [];
  for (const { head, content } of parts) {
    chunks.push(Buffer.from(`--${boundary}\r\n${head}\r\n`), content, Buffer.from("\r\n"));
  }
  chunks.push(Buffer.from(`--${boundary}--\r\n`));
  return Buffer.concat(chunks);
}
