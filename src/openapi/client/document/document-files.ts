import { CallError } from "../../../core/errors/errors.ts";
import { isObject } from "../../../core/schema/json-schema.ts";
import { percentDecoded } from "../../../core/text/parse-url.ts";
import { type DocumentFile, type Located, namedSchemas, outwardReferences } from "./document-file.ts";
import { type DocumentLoader, nameOf, refuseReach } from "./load-source.ts";

/** How files of a document are read. */
export interface FilesOptions {
  readonly loader: DocumentLoader;
  /** Files, the document and those that cannot be read included. */
  readonly files: number;
  readonly warn: (message: string, cause?: unknown) => void;
}

/** Files read at a time. */
const AT_A_TIME = 8;
/** References that lead to references, before they are taken to lead nowhere. */
const MAX_HOPS = 64;
/** Keys looked up for one reference, those of references on its way included. */
const MAX_STEPS = 10_000;

/** All files of a document, and what references between them mean. */
export class DocumentFiles {
  readonly root: DocumentFile;
  readonly #files = new Map<string, DocumentFile>();
  readonly #refused = new Map<string, string>();
  readonly #names = new Map<DocumentFile, Map<string, unknown>>();
  #steps = 0;

  constructor(root: DocumentFile) {
    this.root = root;
    this.#files.set(root.url, root);
  }

  /** Loads every file that the document leads to, as far as it may reach. */
  async loadReferenced(options: FilesOptions): Promise<void> {
    const asked = new Set([this.root.url]);
    let pending = this.#referenced(this.root, asked, options.files);
    while (pending.length > 0) {
      const loaded = await Promise.all(pending.slice(0, AT_A_TIME).map((url) => this.#load(url, options)));
      pending = pending.slice(AT_A_TIME);
      for (const file of loaded) {
        if (file !== undefined) pending.push(...this.#referenced(file, asked, options.files));
      }
    }
  }

  /** The files that a file refers to and nobody has asked for yet. */
  #referenced(file: DocumentFile, asked: Set<string>, limit: number): URL[] {
    const found: URL[] = [];
    for (const reference of outwardReferences(file.root)) {
      const url = addressOf(reference, file);
      if (url === undefined || asked.has(url.href)) continue;
      if (asked.size >= limit) {
        const name = nameOf(new URL(this.root.url));
        throw new CallError("TOO_LARGE", `${name} refers to more than ${limit} files (limits.files).`);
      }
      asked.add(url.href);
      found.push(url);
    }
    return found;
  }

  async #load(url: URL, { loader, warn }: FilesOptions): Promise<DocumentFile | undefined> {
    try {
      const reason = await refuseReach(new URL(this.root.url), url);
      if (reason !== undefined) throw new Error(`${nameOf(url)} is not read: ${reason}.`);
      const { value } = await loader.load(url);
      const file = { url: url.href, root: value };
      this.#files.set(url.href, file);
      return file;
    } catch (error) {
      if (loader.ended !== undefined) throw loader.ended;
      const reason = error instanceof Error ? error.message : "It cannot be read.";
      this.#refused.set(url.href, reason);
      warn(`A reference of the document leads nowhere. ${reason}`, error);
      return undefined;
    }
  }

  /** Finds what a reference in `from` means; a text says why there is nothing. */
  resolve(reference: string, from: DocumentFile, hops = 0): Located | string {
    if (hops === 0) this.#steps = 0;
    if (hops > MAX_HOPS) return "it leads in circles";
    const hash = reference.indexOf("#");
    const address = hash === -1 ? reference : reference.slice(0, hash);
    const fragment = hash === -1 ? "" : percentDecoded(reference.slice(hash + 1));
    const file = address === "" ? from : this.#file(address, from);
    if (file === undefined) return this.#byId(reference, from) ?? this.#whyNot(address, from);
    if (fragment === "" || fragment.startsWith("/")) return this.#walk(file, fragment, hops);
    const value = this.#namesOf(file).get(`#${fragment}`);
    return value === undefined ? "there is no such anchor" : { value, file, key: `${file.url}#${fragment}` };
  }

  #file(address: string, from: DocumentFile): DocumentFile | undefined {
    const url = addressOf(address, from);
    return url === undefined ? undefined : this.#files.get(url.href);
  }

  #byId(reference: string, from: DocumentFile): Located | undefined {
    const value = this.#namesOf(from).get(reference);
    return value === undefined ? undefined : { value, file: from, key: `${from.url}#$id=${reference}` };
  }

  #whyNot(address: string, from: DocumentFile): string {
    const url = addressOf(address, from);
    if (url === undefined) return "the document has no place that other files could be relative to";
    return this.#refused.get(url.href) ?? "that file was not read";
  }

  #namesOf(file: DocumentFile): Map<string, unknown> {
    const known = this.#names.get(file) ?? namedSchemas(file.root);
    this.#names.set(file, known);
    return known;
  }

  #walk(start: DocumentFile, pointer: string, hops: number): Located | string {
    const tokens = pointer === "" ? [] : pointer.slice(1).split("/");
    let here: Located = { value: start.root, file: start, key: `${start.url}#` };
    for (const token of tokens) {
      const next = this.#step(here, token, hops);
      if (typeof next === "string") return next;
      here = next;
    }
    return here;
  }

  /** One key further; where a reference stands in its way, behind that. */
  #step(from: Located, token: string, hops: number): Located | string {
    const key = token.replace(/~1/g, "/").replace(/~0/g, "~");
    let here = from;
    for (let hop = hops; hop <= MAX_HOPS; hop++) {
      const { value, file } = here;
      if (++this.#steps > MAX_STEPS) break;
      if (typeof value !== "object" || value === null) return "it points at nothing";
      if (Object.hasOwn(value, key)) {
        return { value: (value as Record<string, unknown>)[key], file, key: `${here.key}/${token}` };
      }
      const reference = isObject(value) && Object.hasOwn(value, "$ref") ? value["$ref"] : undefined;
      if (typeof reference !== "string") return "it points at nothing";
      const behind = this.resolve(reference, file, hop + 1);
      if (typeof behind === "string") return behind;
      here = behind;
    }
    return "it leads in circles";
  }

  /** Follows `$ref` until something else stands there; siblings of a reference win over what it leads to. */
  follow(at: Located): Located | string {
    let here = at;
    let siblings: Record<string, unknown> | undefined;
    for (let hop = 0; hop <= MAX_HOPS; hop++) {
      const { value } = here;
      if (!isObject(value) || !Object.hasOwn(value, "$ref") || typeof value["$ref"] !== "string") {
        return siblings === undefined || !isObject(value)
          ? here
          : { ...here, value: { ...value, ...siblings } };
      }
      const { $ref: reference, ...rest } = value as { $ref: string };
      if (Object.keys(rest).length > 0) siblings = { ...rest, ...siblings };
      const next = this.resolve(reference, here.file);
      if (typeof next === "string") return next;
      here = next;
    }
    return "it leads in circles";
  }
}

function addressOf(reference: string, from: DocumentFile): URL | undefined {
  try {
    const url = from.url === "" ? new URL(reference) : new URL(reference, from.url);
    url.hash = "";
    return url;
  } catch {
    return undefined;
  }
}
