import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import { CallError } from "../../core/errors/errors.ts";
import type { NodeRequest } from "../../http/node-exchange.ts";
import { badRequest, SAFE_HEADERS } from "./answers.ts";

/** Sends the files of the page, which are read once, when the first is asked for. */
export class PageServer {
  readonly #find: () => string | undefined;
  #files: Promise<PageFiles> | undefined;

  constructor(find: () => string | undefined = findPageFolder) {
    this.#find = find;
  }

  /** Answers at a path below the inspector's own: `""` leads to the page, which is at `"/"`. */
  async send(path: string, request: NodeRequest): Promise<void> {
    const { message } = request;
    if (message.method !== "GET" && message.method !== "HEAD")
      throw badRequest("This address can only be read.", 405);
    if (path === "") {
      await request.send({
        status: 308,
        headers: { ...SAFE_HEADERS, location: "inspect/" },
        body: undefined,
      });
      return;
    }
    const file = (await this.#read()).get(path.slice(1));
    if (file === undefined)
      throw new CallError("NOT_FOUND", "The inspector has no such file.", { stack: false });
    await request.send(answerOf(file, message));
  }

  async #read(): Promise<PageFiles> {
    if (this.#files !== undefined) return await this.#files;
    const folder = this.#find();
    if (folder === undefined) {
      throw new CallError("UNAVAILABLE", 'The page of the inspector was not built; run "npm run build".', {
        stack: false,
      });
    }
    this.#files = readPageFiles(folder);
    // What could not be read may be readable the next time.
    this.#files.catch(() => {
      this.#files = undefined;
    });
    return await this.#files;
  }
}

function answerOf({ type, cacheControl, bytes, compressed }: PageFile, { headers }: IncomingMessage) {
  const taken = takenEncodings(headers["accept-encoding"]);
  const [encoding, short] = [...compressed].find(([name]) => taken.has(name)) ?? [];
  return {
    status: 200,
    headers: {
      ...SAFE_HEADERS,
      "content-type": type,
      "cache-control": cacheControl,
      vary: "accept-encoding",
      ...(encoding !== undefined && { "content-encoding": encoding }),
    },
    body: short ?? bytes,
  };
}

/** More of them than any browser sends are not looked at. */
const MOST_ENCODINGS = 20;

function takenEncodings(accepted: string | string[] | undefined): ReadonlySet<string> {
  const encodings = [accepted ?? ""].flat().join(",").split(",", MOST_ENCODINGS);
  const named = encodings.map((encoding) => {
    const [name = "", ...parameters] = encoding.split(";", 3).map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith("q="));
    return { name, isTaken: weight === undefined || Number(weight.slice("q=".length)) > 0 };
  });
  return new Set(named.filter(({ isTaken }) => isTaken).map(({ name }) => name));
}

/** One file of the page, as it is sent. */
export interface PageFile {
  readonly type: string;
  readonly cacheControl: string;
  readonly bytes: Buffer;
  /** The same, compressed, by the name of the encoding, shortest first; without those that are no shorter. */
  readonly compressed: ReadonlyMap<string, Buffer>;
}

/** The files of the page by their path below `/inspect/`; the page itself is `""`. */
export type PageFiles = ReadonlyMap<string, PageFile>;

const TYPES: ReadonlyMap<string, string> = new Map([
  [".html", "text/html; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
  [".css", "text/css; charset=utf-8"],
  [".svg", "image/svg+xml"],
  [".png", "image/png"],
  [".ico", "image/x-icon"],
  [".woff2", "font/woff2"],
  [".txt", "text/plain; charset=utf-8"],
  [".json", "application/json; charset=utf-8"],
]);

/** Files that say what they hold in their name. */
const HASHED = /^assets\/.+-[\w-]{8,}\.\w+$/;

const INDEX = "index.html";
const COMPRESSORS = [
  ["br", promisify(brotliCompress)],
  ["gzip", promisify(gzip)],
] as const;

/** Where the built page lies: beside the built code, or from the sources in what was built of them. Nothing where it was not built. */
export function findPageFolder(here: string = import.meta.url): string | undefined {
  const places = here.endsWith(".ts") ? ["../../../dist/inspector/"] : ["./inspector/", "../inspector/"];
  const folders = places.map((place) => fileURLToPath(new URL(place, here)));
  return folders.find((folder) => existsSync(join(folder, INDEX)));
}

/** Reads the files of a folder, all there are: nothing else is ever served, whatever a path says. */
export async function readPageFiles(folder: string): Promise<PageFiles> {
  const found = await readdir(folder, { withFileTypes: true, recursive: true });
  const files = found
    .filter((entry) => entry.isFile() && TYPES.has(extname(entry.name)))
    .map((entry) => join(entry.parentPath, entry.name));
  const read = await Promise.all(files.map((path) => readPageFile(path, nameOf(path, folder))));
  return new Map(read.map(([name, file]) => [name === INDEX ? "" : name, file]));
}

function nameOf(path: string, folder: string): string {
  const root = folder.endsWith(sep) ? folder : folder + sep;
  return path.slice(root.length).split(sep).join("/");
}

async function readPageFile(path: string, name: string): Promise<[string, PageFile]> {
  const bytes = await readFile(path);
  const compressed = await Promise.all(
    COMPRESSORS.map(async ([encoding, compress]) => [encoding, await compress(bytes)] as const),
  );
  const cacheControl = HASHED.test(name)
    ? "public, max-age=31536000, immutable"
    : name === INDEX
      ? "no-store"
      : "no-cache";
  const type = TYPES.get(extname(name)) ?? "application/octet-stream";
  const shorter = new Map(compressed.filter(([, short]) => short.length < bytes.length));
  return [name, { type, cacheControl, bytes, compressed: shorter }];
}
