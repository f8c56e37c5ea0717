import { BodyBytes, checkLength, tooLarge, unreadable } from "./body-bytes.ts";
import type { HttpAnswer, HttpRequest } from "./exchange.ts";

/** Sees a `Request` as every server of ours does. */
export class FetchRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly origin: string;
  readonly #request: Request;
  #controller: AbortController | undefined;

  constructor(request: Request) {
    const { origin, pathname, search } = new URL(request.url);
    this.#request = request;
    this.method = request.method;
    this.origin = origin;
    this.path = pathname;
    this.query = search.slice(1);
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      const { signal } = this.#request;
      if (signal.aborted) controller.abort(signal.reason);
      else signal.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
      this.#controller = controller;
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    void this.signal;
    this.#controller?.abort(reason);
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined;
  }

  async body(limit: number): Promise<Uint8Array> {
    checkLength(this.header("content-length"), limit);
    const { body } = this.#request;
    if (body === null) return new Uint8Array();
    const bytes = new BodyBytes();
    let isWithin = true;
    try {
      for await (const chunk of body) {
        isWithin = bytes.length + chunk.byteLength <= limit;
        if (!isWithin) break;
        bytes.add(chunk);
      }
    } catch (cause) {
      throw unreadable(cause);
    }
    if (!isWithin) throw tooLarge(limit);
    return bytes.join();
  }

  toRequest(): Request {
    const { url, headers, method } = this.#request;
    return new Request(url, { method, headers });
  }
}

const WITHOUT_BODY = new Set([204, 205, 304]);

/** Makes a `Response` of an answer. */
export function toResponse(answer: HttpAnswer, method: string): Response {
  const { status, body } = answer;
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) {
    if (typeof value === "string") headers.set(name, value);
    else for (const one of value) headers.append(name, one);
  }
  if (body === undefined || WITHOUT_BODY.has(status)) return new Response(null, { status, headers });
  if (typeof body === "string" || body instanceof Uint8Array) {
    const bytes = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
    headers.set("content-length", String(bytes));
    return new Response(method === "HEAD" ? null : (body as BodyInit), { status, headers });
  }
  return new Response(toReadable(body), { status, headers });
}

/** A stream that is read no faster than its reader asks for more. */
function toReadable(body: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const texts = body[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream(
    {
      async pull(controller) {
        const step = await texts.next();
        if (step.done === true) controller.close();
        else controller.enqueue(encoder.encode(step.value));
      },
      async cancel() {
        await texts.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
