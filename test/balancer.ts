import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { atEnd } from "./gateway-sources.ts";
import { listen } from "./mcp-servers/http-servers.ts";
import { createRandom } from "./random.ts";

/** Spreads requests over replicas at random. */
export interface Balancer {
  readonly url: string;
  /** How many requests each replica has answered, in their order. */
  readonly answered: readonly number[];
  /** How many requests went on to another replica after a 503. */
  readonly retried: number;
}

interface BalancerOptions {
  /** Tries the other replicas after a 503, in turn, as balancers can be told to. */
  readonly retries: boolean;
}

/** Starts a balancer before replicas, which ends with the test. */
export async function startBalancer(
  replicas: readonly { readonly url: string }[],
  { retries }: BalancerOptions,
): Promise<Balancer> {
  const random = createRandom(11);
  const answered = replicas.map(() => 0);
  const counts = { retried: 0 };
  const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(incoming);
    const first = random.below(replicas.length);
    for (let turn = 0; ; turn++) {
      const at = (first + turn) % replicas.length;
      const found = await pass(incoming, body, `${replicas[at]?.url}${incoming.url}`, response);
      const isLast = !retries || turn === replicas.length - 1;
      if (found.statusCode === 503 && !isLast) {
        counts.retried += 1;
        found.resume();
        continue;
      }
      answered[at] = (answered[at] ?? 0) + 1;
      response.writeHead(found.statusCode ?? 502, found.headers);
      response.flushHeaders();
      found.pipe(response);
      found.on("error", () => response.destroy());
      return;
    }
  };
  const { url, close } = await listen((incoming, response) => {
    serve(incoming, response).catch(() => response.destroy());
  });
  atEnd(close);
  return {
    url,
    answered,
    get retried() {
      return counts.retried;
    },
  };
}

async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

function pass(
  { method, headers }: IncomingMessage,
  body: Buffer,
  url: string,
  response: ServerResponse,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers }, resolve);
    outgoing.on("error", reject);
    response.on("close", () => outgoing.destroy());
    outgoing.end(body);
  });
}
