import { isObject } from "../../../core/schema/json-schema.ts";
import type { DocumentFile, DocumentVersion, Located } from "./document-file.ts";
import type { DocumentFiles } from "./document-files.ts";
import type { SchemaBook } from "./schema-book.ts";

/** Where an operation stands. */
export interface OperationPlace {
  /** The path item, references followed. */
  readonly item: Located;
  readonly operation: Located;
}

/** What reading an operation needs of its document. */
export interface DocumentReader {
  readonly files: DocumentFiles;
  readonly book: SchemaBook;
  readonly version: DocumentVersion;
}

type Fields = Record<string, unknown>;

const PARAMETER_FIELDS = [
  ...[
    "name",
    "in",
    "description",
    "required",
    "deprecated",
    "allowEmptyValue",
    "style",
    "explode",
    "allowReserved",
  ],
  "collectionFormat",
];
const SIMPLE_SCHEMA = [
  ...[
    "type",
    "format",
    "items",
    "default",
    "enum",
    "pattern",
    "multipleOf",
    "uniqueItems",
    "minimum",
    "maximum",
  ],
  ...["exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems"],
];
const MAX_PARAMETERS = 2_000;

/** Copies an operation with everything it refers to in place, but for schemas, which lead to definitions. */
export function inlineOperation(place: OperationPlace, reader: DocumentReader, notes: Set<string>): Fields {
  return new Inlining(reader, notes).operation(place);
}

class Inlining {
  readonly #reader: DocumentReader;
  readonly #notes: Set<string>;

  constructor(reader: DocumentReader, notes: Set<string>) {
    this.#reader = reader;
    this.#notes = notes;
  }

  operation({ item, operation }: OperationPlace): Fields {
    const source = operation.value as Fields;
    const root = this.#reader.files.root.root as Fields;
    const result: Fields = { parameters: this.#parameters(item, operation) };
    if (this.#reader.version === "2.0") {
      result["consumes"] = mediaTypes(source["consumes"]) ??
        mediaTypes(root["consumes"]) ?? ["application/json"];
      result["produces"] = mediaTypes(source["produces"]) ??
        mediaTypes(root["produces"]) ?? ["application/json"];
    } else if (source["requestBody"] !== undefined) {
      const body = this.#follow(source["requestBody"], operation.file, "The body");
      if (body !== undefined) result["requestBody"] = this.#body(body);
    }
    result["responses"] = this.#responses(operation);
    return result;
  }

  /** Those of the operation stand in for those of its path that have the same name and place. */
  #parameters(item: Located, operation: Located): Fields[] {
    const found = new Map<string, Fields>();
    for (const { value, file } of [item, operation]) {
      const list = (value as Fields)["parameters"];
      if (list === undefined) continue;
      if (!Array.isArray(list)) {
        this.#notes.add("The parameters are not a list; they were left out.");
        continue;
      }
      for (const entry of list.slice(0, MAX_PARAMETERS)) {
        const parameter = this.#parameter(entry, file);
        if (parameter === undefined) continue;
        const name = String(parameter["name"]);
        const sameName = parameter["in"] === "header" ? name.toLowerCase() : name;
        found.set(parameter["in"] === "body" ? "body" : `${parameter["in"]} ${sameName}`, parameter);
      }
    }
    return [...found.values()];
  }

  #parameter(entry: unknown, file: DocumentFile): Fields | undefined {
    const at = this.#follow(entry, file, "A parameter");
    if (at === undefined) return undefined;
    const source = at.value as Fields;
    const { name, in: place } = source;
    if (typeof place !== "string" || (place !== "body" && (typeof name !== "string" || name === ""))) {
      this.#notes.add("A parameter has no name or no place; it was left out.");
      return undefined;
    }
    const result = this.#plain(source, PARAMETER_FIELDS);
    if (this.#reader.version === "2.0" && place !== "body") {
      this.#nestedLists(source);
      return { ...this.#simple(source, at.file), ...result };
    }
    if (source["schema"] !== undefined) result["schema"] = this.#schema(source["schema"], at.file);
    if (source["content"] !== undefined) result["content"] = this.#content(source["content"], at.file);
    return result;
  }

  #nestedLists({ name, items }: Fields): void {
    if (!isObject(items) || items["type"] !== "array") return;
    this.#notes.add(
      `The list ${JSON.stringify(name)} holds lists; those are written as JSON, not as their collectionFormat says.`,
    );
  }

  /** The keywords that Swagger 2.0 has beside the others of a parameter or header. */
  #simple(source: Fields, file: DocumentFile): Fields {
    const schema: Fields = {};
    for (const keyword of SIMPLE_SCHEMA) if (source[keyword] !== undefined) schema[keyword] = source[keyword];
    const copied = this.#schema(schema, file);
    return isObject(copied) ? copied : {};
  }

  #body({ value, file }: Located): Fields {
    const source = value as Fields;
    return {
      ...this.#plain(source, ["description", "required"]),
      content: this.#content(source["content"], file),
    };
  }

  #responses({ value, file }: Located): Fields {
    const result: Fields = {};
    for (const [status, entry] of this.#entries((value as Fields)["responses"], "The responses")) {
      if (status.startsWith("x-")) continue;
      const at = this.#follow(entry, file, `The response ${JSON.stringify(status)}`);
      if (at !== undefined) result[status] = this.#response(at);
    }
    return result;
  }

  #response({ value, file }: Located): Fields {
    const source = value as Fields;
    const result: Fields = {
      ...this.#plain(source, ["description"]),
      headers: this.#headers(source["headers"], file),
    };
    if (source["content"] !== undefined) result["content"] = this.#content(source["content"], file);
    if (source["schema"] !== undefined && this.#reader.version === "2.0") {
      result["schema"] = this.#schema(source["schema"], file);
    }
    return result;
  }

  #headers(headers: unknown, file: DocumentFile): Fields {
    const result: Fields = {};
    for (const [name, entry] of this.#entries(headers, "The headers")) {
      const at = this.#follow(entry, file, "A header");
      if (at === undefined) continue;
      const source = at.value as Fields;
      const header = this.#plain(source, ["description", "required"]);
      if (this.#reader.version === "2.0") Object.assign(header, this.#simple(source, at.file));
      else if (source["schema"] !== undefined) header["schema"] = this.#schema(source["schema"], at.file);
      else if (source["content"] !== undefined) header["content"] = this.#content(source["content"], at.file);
      result[name] = header;
    }
    return result;
  }

  #content(content: unknown, file: DocumentFile): Fields {
    const result: Fields = {};
    for (const [mediaType, entry] of this.#entries(content, "The content")) {
      const at = this.#follow(entry, file, "A media type");
      if (at === undefined) continue;
      const source = at.value as Fields;
      const media: Fields = {};
      for (const key of ["schema", "itemSchema"]) {
        if (source[key] !== undefined) media[key] = this.#schema(source[key], at.file);
      }
      this.#encodings(source, media, at.file);
      result[mediaType] = media;
    }
    return result;
  }

  /** By name, and since 3.2 by place. */
  #encodings({ encoding, prefixEncoding, itemEncoding }: Fields, media: Fields, file: DocumentFile): void {
    if (encoding !== undefined) {
      const entries = this.#entries(encoding, "The encoding").filter(([, entry]) => isObject(entry));
      media["encoding"] = Object.fromEntries(
        entries.map(([name, entry]) => [name, this.#encoding(entry, file)]),
      );
    }
    if (Array.isArray(prefixEncoding)) {
      const first = prefixEncoding.slice(0, MAX_PARAMETERS);
      media["prefixEncoding"] = first.map((entry) => this.#encoding(entry, file));
    }
    if (isObject(itemEncoding)) media["itemEncoding"] = this.#encoding(itemEncoding, file);
  }

  #encoding(entry: unknown, file: DocumentFile): Fields {
    if (!isObject(entry)) return {};
    const fields = this.#plain(entry, ["contentType", "style", "explode", "allowReserved"]);
    if (entry["headers"] !== undefined) fields["headers"] = this.#headers(entry["headers"], file);
    return fields;
  }

  #schema(schema: unknown, file: DocumentFile): unknown {
    return this.#reader.book.copy(schema, file, this.#notes);
  }

  #plain(source: Fields, fields: readonly string[]): Fields {
    const result: Fields = {};
    for (const field of fields) {
      const value = Object.hasOwn(source, field) ? source[field] : undefined;
      if (typeof value === "string" || typeof value === "boolean") result[field] = value;
    }
    return result;
  }

  #entries(map: unknown, what: string): [string, unknown][] {
    if (map === undefined) return [];
    if (isObject(map)) return Object.entries(map).filter(([key]) => key !== "__proto__");
    this.#notes.add(`${what} of something are not an object; they were left out.`);
    return [];
  }

  #follow(value: unknown, file: DocumentFile, what: string): Located | undefined {
    const at = this.#reader.files.follow({ value, file, key: "" });
    if (typeof at !== "string" && isObject(at.value)) return at;
    const reason = typeof at === "string" ? `leads nowhere (${at})` : "is not an object";
    this.#notes.add(`${what} ${reason}; it was left out.`);
    return undefined;
  }
}

function mediaTypes(list: unknown): string[] | undefined {
  if (typeof list === "string") return [list];
  if (!Array.isArray(list)) return undefined;
  const types = list.filter((type): type is string => typeof type === "string" && type.includes("/"));
  return types.length > 0 ? types : undefined;
}
