import type { IncomingMessage } from "node:http";
import { CallError } from "../../core/errors/errors.ts";
import type { NodeRequest } from "../../http/node-exchange.ts";
import { SAFE_HEADERS } from "./answer-headers.ts";
import { badRequest } from "./failure-of.ts";
import { findPageFolder, type PageFile, type PageFiles, readPageFiles } from "./page-files.ts";

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
