// @ts-check
// A balancer in a process of its own: `node balancer.js <port> <replica port …>`. It sends each request to a replica at random, over a connection of
// its own, and tries none twice. A replica whose `/ready` is not 200 is left out; so is one that refused a connection, until it is ready again.
// With BALANCER=retry it asks nobody for `/ready`, and tries the others after a 503.
import { createServer, request } from "node:http";

const LOOK_EVERY_MS = 200;
const LOOK_WITHIN_MS = 5_000;

const [port = 0, ...ports] = process.argv.slice(2).map(Number);
const RETRIES = process.env["BALANCER"] === "retry";
const replicas = ports.map((to) => ({ port: to, isIn: RETRIES, isAsked: false }));
const counts = { answered: replicas.map(() => 0), refused: 0, cut: 0, retried: 0 };

/** @param {(typeof replicas)[number]} replica */
function look(replica) {
  if (replica.isAsked) return;
  replica.isAsked = true;
  const settle = (/** @type {boolean} */ isIn) => {
    replica.isIn = isIn;
    replica.isAsked = false;
  };
  const asking = request({ port: replica.port, host: "127.0.0.1", path: "/ready", agent: false });
  asking.on("response", (answer) => {
    answer.resume();
    settle(answer.statusCode === 200);
  });
  asking.on("error", () => settle(false));
  asking.setTimeout(LOOK_WITHIN_MS, () => asking.destroy(new Error("too slow")));
  asking.end();
}

if (!RETRIES) setInterval(() => replicas.forEach(look), LOOK_EVERY_MS);

/** Reads a body that may have to be sent again. @param {import("node:http").IncomingMessage} incoming @returns {Promise<Buffer>} */
async function readBody(incoming) {
  const pieces = [];
  for await (const piece of incoming) pieces.push(piece);
  return Buffer.concat(pieces);
}

const server = createServer(async (incoming, answer) => {
  const choice = replicas.filter(({ isIn }) => isIn);
  const first = Math.floor(Math.random() * choice.length);
  const refuse = (/** @type {number} */ status) => {
    if (answer.headersSent) answer.destroy();
    else answer.writeHead(status, { "retry-after": "1" }).end();
  };
  const { method, url: path, headers } = incoming;
  const { connection: _, ...sent } = headers;
  const kept = RETRIES ? await readBody(incoming).catch(() => undefined) : undefined;

  const send = (/** @type {number} */ tries) => {
    const replica = choice[(first + tries) % choice.length];
    if (replica === undefined) {
      counts.refused += 1;
      incoming.resume();
      return refuse(503);
    }
    const outgoing = request({
      port: replica.port,
      host: "127.0.0.1",
      method,
      path,
      headers: sent,
      agent: false,
    });
    outgoing.on("response", (reply) => {
      if (RETRIES && reply.statusCode === 503 && tries + 1 < choice.length) {
        counts.retried += 1;
        reply.resume();
        return send(tries + 1);
      }
      const at = replicas.indexOf(replica);
      counts.answered[at] = (counts.answered[at] ?? 0) + 1;
      const { connection: __, "keep-alive": ___, ...named } = reply.headers;
      answer.writeHead(reply.statusCode ?? 502, named);
      answer.flushHeaders();
      reply.pipe(answer);
      reply.on("error", () => answer.destroy());
    });
    outgoing.on("error", (thrown) => {
      // Nothing was sent where nobody listens; anything else may have run.
      const isRefused = "code" in thrown && thrown.code === "ECONNREFUSED";
      if (isRefused && !RETRIES) replica.isIn = false;
      if (isRefused) counts.refused += 1;
      else if (!answer.destroyed) counts.cut += 1;
      refuse(isRefused ? 503 : 502);
    });
    answer.on("close", () => outgoing.destroy());
    if (RETRIES) outgoing.end(kept);
    else incoming.pipe(outgoing);
  };
  send(0);
});

process.on("message", () =>
  process.send?.({ ...counts, in: replicas.flatMap(({ isIn }, at) => (isIn ? [at] : [])) }),
);
process.once("disconnect", () => process.exit());
server.listen(port, "127.0.0.1", () => process.send?.("listening"));
