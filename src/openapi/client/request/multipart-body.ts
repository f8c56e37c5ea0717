import { randomBytes } from "node:crypto";
import { joinPointer } from "../../../core/json/json-pointer.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import { type SendableType, writeMediaType } from "../../media-types.ts";
import type { MediaPlan, OperationPlan } from "../plan.ts";
import type { BodyWriter } from "./body-writer.ts";
import { invalidInput } from "./invalid-input.ts";
import { type Part, type PartValue, writePart } from "./multipart-part.ts";
import { checkSeparable, isEmptyShape, joinShape } from "./parameter-text.ts";
import { isAbsent, shapeOf } from "./parameter-value.ts";
import { createPartRules, type PartRules } from "./part-rules.ts";

/** Makes what writes objects, or lists where parts have no names, as one of the multipart types. */
export function createMultipartWriter(
  key: string,
  type: SendableType,
  about: { readonly media: MediaPlan | undefined; readonly definitions: OperationPlan["definitions"] },
): BodyWriter {
  const isForm = type.essence === "multipart/form-data";
  const rules = createPartRules(about.media, about.definitions);
  const contentType = writeMediaType(type, ["boundary"]);
  return (value) => {
    const isList = !isForm && Array.isArray(value);
    if (!isList && !isPlainObject(value)) throw invalidInput(key, "must be an object, each property a part");
    const values = isList ? placedParts(value, key, rules) : namedParts(value, { key, isForm, rules });
    const parts = Array.from(values, writePart);
    const boundary = newBoundary(parts);
    return { body: assemble(parts, boundary), contentType: `${contentType}; boundary=${boundary}` };
  };
}

/** Parts without names: each item is one, what has no value is none. */
function* placedParts(list: readonly unknown[], key: string, rules: PartRules): Generator<PartValue> {
  for (const [index, value] of list.entries()) {
    if (isAbsent(value)) continue;
    yield { value, name: undefined, key, pointer: `/${index}`, rule: rules(index) };
  }
}

/** Parts by name: lists are repeated, or joined where the document says so. */
function* namedParts(
  object: object,
  { key, isForm, rules }: { readonly key: string; readonly isForm: boolean; readonly rules: PartRules },
): Generator<PartValue> {
  for (const [property, member] of Object.entries(object)) {
    const pointer = joinPointer("", property);
    const rule = rules(property);
    const part = { name: isForm ? property : undefined, key, pointer, rule };
    if (!Array.isArray(member)) {
      if (!isAbsent(member)) yield { ...part, value: member };
    } else if (rule.separator !== undefined) {
      const value = joinList(member, key, rule.separator);
      if (value !== undefined) yield { ...part, value };
    } else {
      for (const [index, value] of member.entries()) {
        if (!isAbsent(value)) yield { ...part, value, pointer: `${pointer}/${index}` };
      }
    }
  }
}

function joinList(list: readonly unknown[], key: string, separator: string): string | undefined {
  const shape = shapeOf(list, key);
  if (isEmptyShape(shape)) return undefined;
  checkSeparable(shape, separator, key);
  return joinShape(shape, { separator, pairs: false, encode: (text) => text });
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
