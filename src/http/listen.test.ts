import { Agent, get, request } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { endsInTime } from "../../test/lateness.ts";
import { until } from "../../test/make-operation.ts";
import { addAbortListener } from "../core/execution/cancellation.ts";
import {
  checkListenOptions,
  type HttpListener,
  type Listened,
  type ListenOptions,
  listenHttp,
} from "./listen.ts";
import type { NodeRequest } from "./node-exchange.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of open.splice(0).reverse()) await end();
});

async function start(listened: Partial<Listened> = {}, options?: ListenOptions) {
  const closed: number[] = [];
  const onClose = async (timeoutMs: number) => void closed.push(timeoutMs);
  const listener = await listenHttp(
    { onRequest: ({ response }) => response.end("here"), onClose, ...listened },
    options,
  );
  open.push(() => listener.close({ timeoutMs: 0 }));
  return { listener, closed };
}

async function connectTo(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  open.push(() => socket.destroy());
  await new Promise((resolve) => socket.once("connect", resolve));
  return socket;
}

/** Asks for something over a connection, and gives the answer back as it came. */
function ask(socket: Socket): Promise<string> {
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  return new Promise((resolve) => {
    let text = "";
    const read = (chunk: Buffer): void => {
      text += chunk.toString();
      if (!text.endsWith("here")) return;
      socket.off("data", read);
      resolve(text);
    };
    socket.on("data", read);
  });
}

/** Closes with time for all that goes on; both sides give a connection up that is idle for some seconds. */
const closesSoon = (listener: HttpListener) =>
  endsInTime(0, () => listener.close({ timeoutMs: 3_600_000 }), 3_000);

describe("listenHttp", () => {
  it("Http: listens on a free port of this machine and says where", async () => {
    const { listener } = await start();
    expect(listener.origin).toBe(`http://127.0.0.1:${listener.port}`);
    expect(await (await fetch(listener.origin)).text()).toBe("here");
  });

  it("Http: closes once, tells whoever answers how long that may take, and hears nothing more", async () => {
    const { listener, closed } = await start();
    await Promise.all([listener.close({ timeoutMs: 300 }), listener.close(), listener.close()]);
    expect(closed).toEqual([300]);
    await expect(fetch(listener.origin)).rejects.toThrow();
  });

  it("Http: tells whoever answers when it cannot listen, and leaves nothing open", async () => {
    const { listener } = await start();
    const closed: number[] = [];
    const onClose = async (timeoutMs: number) => void closed.push(timeoutMs);
    const used = start({ onClose }, { port: listener.port });
    await expect(used).rejects.toThrow(`127.0.0.1 port ${listener.port} is in use; give another "port"`);
    await expect(used).rejects.toMatchObject({ code: "EADDRINUSE" });
    expect(closed).toEqual([0]);
  });

  it("Http: waits for no connection that has not said a word", async () => {
    const { listener } = await start();
    await connectTo(listener.port);
    await connectTo(listener.port);
    expect(await (await fetch(listener.origin)).text()).toBe("here");
    expect(await closesSoon(listener)).toBe(true);
  });

  it("Http: waits for no connection that is kept for later, also when it falls idle while closing", async () => {
    const answers: (() => void)[] = [];
    const { listener } = await start({
      onRequest: ({ response }) => void answers.push(() => response.end("late")),
    });
    const answered = fetch(listener.origin).then((response) => response.text());
    while (answers.length < 1) await sleep(5);
    setTimeout(() => answers[0]?.(), 100);
    expect(await closesSoon(listener)).toBe(true);
    expect(await answered).toBe("late");
  });

  it("Http: keeps a connection for longer than load balancers do, and says so", async () => {
    const { listener } = await start();
    const socket = await connectTo(listener.port);
    expect(await ask(socket)).toMatch(/connection: keep-alive\r\nkeep-alive: timeout=75\r\n/i);
    expect(await ask(socket)).toMatch(/connection: keep-alive/i);
  });

  it("Http: says that a connection ends with every answer that is sent while it closes", async () => {
    const asked: NodeRequest[] = [];
    const onClose = () => new Promise<void>((resolve) => setTimeout(resolve, 100));
    const { listener } = await start({ onRequest: (request) => void asked.push(request), onClose });
    const sockets = [await connectTo(listener.port), await connectTo(listener.port)];
    const answers = sockets.map((socket) => ask(socket));
    while (asked.length < 2) await sleep(5);
    const answer = { status: 200, headers: {}, body: "here" };
    asked[0]?.send(answer);
    expect(await answers[0]).toMatch(/connection: keep-alive/i);
    const closed = listener.close();
    asked[1]?.send({ ...answer, headers: {} });
    expect(await answers[1]).toMatch(/connection: close/i);
    await closed;
  });

  it("Http: answers what has reached it when it closes, over connections that are kept and new ones", async () => {
    const { listener } = await start();
    const kept = await connectTo(listener.port);
    await ask(kept);
    const fresh = await connectTo(listener.port);
    const cut = (socket: Socket) =>
      new Promise<string>((resolve) => socket.once("close", () => resolve("cut off")));
    const answers = [kept, fresh].map((socket) => Promise.race([ask(socket), cut(socket)]));
    const closed = listener.close();
    for (const answer of answers) expect(await answer).toMatch(/here$/);
    await closed;
  });

  it("Http: answers many connections that wait to be taken when it closes", async () => {
    const { listener } = await start();
    const sockets = Array.from({ length: 30 }, () =>
      connect(listener.port, "127.0.0.1").on("error", () => {}),
    );
    open.push(() => void sockets.forEach((socket) => void socket.destroy()));
    const cut = (socket: Socket) =>
      new Promise<string>((resolve) => socket.once("close", () => resolve("cut off")));
    const answers = sockets.map((socket) => Promise.race([ask(socket), cut(socket)]));
    await new Promise((resolve) => setImmediate(resolve));
    const closed = listener.close();
    expect(await Promise.all(answers)).toEqual(Array(30).fill(expect.stringMatching(/here$/)));
    await closed;
  });

  it("Http: keeps so many connections, and closes the oldest that is idle for one more", async () => {
    let held = 0;
    const onRequest: Listened["onRequest"] = ({ path, response }) => {
      if (path === "/hold") held += 1;
      else response.end("here");
    };
    const { listener } = await start({ onRequest }, { limits: { connections: 3 } });
    const closed: string[] = [];
    const connected = async (name: string): Promise<Socket> => {
      const socket = await connectTo(listener.port);
      socket.resume().once("close", () => closed.push(name));
      return socket;
    };
    const busy = await connected("busy");
    busy.write("GET /hold HTTP/1.1\r\nhost: localhost\r\n\r\n");
    while (held < 1) await sleep(5);
    for (const name of ["first", "second"]) await ask(await connected(name));
    expect(closed).toEqual([]);
    await ask(await connected("third"));
    while (closed.length < 1) await sleep(5);
    await ask(await connected("fourth"));
    while (closed.length < 2) await sleep(5);
    expect(closed).toEqual(["first", "second"]);
  });

  it("Http: tells all that was asked at once over a connection of its end, and Node nothing of a leak", async () => {
    const warnings: string[] = [];
    const onWarning = ({ name }: Error): void => void warnings.push(name);
    process.on("warning", onWarning);
    open.push(() => process.off("warning", onWarning));
    let asked = 0;
    let ended = 0;
    const count = { onAbort: () => (ended += 1) };
    const { listener } = await start({
      onRequest(request) {
        asked += 1;
        addAbortListener(request.signal, count);
      },
    });
    const socket = await connectTo(listener.port);
    socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(50));
    await expect.poll(() => asked).toBe(50);
    socket.destroy();
    await expect.poll(() => ended).toBe(50);
    expect(warnings).toEqual([]);
  });

  it("Http: gives back what answers behind an unread one hold, once their connection is gone", async () => {
    let all: NodeRequest[] = [];
    let sent = 0;
    let left = 0;
    async function* forever(): AsyncGenerator<string> {
      try {
        for (;;) yield "x".repeat(100_000);
      } finally {
        left += 1;
      }
    }
    const onRequest = (given: NodeRequest): void => {
      all.push(given);
      given.onSent(() => (sent += 1));
      if (given.path === "/never") return;
      void given.send({ status: 200, headers: {}, body: given.path === "/stream" ? forever() : BIG });
    };
    // Room for the answers of one connection.
    const { listener } = await start({ onRequest }, { limits: { unsentBytes: 4 * BIG.length } });
    for (let round = 1; round <= 3; round++) {
      all = [];
      const socket = await connectTo(listener.port);
      socket.pause();
      socket.write(["/", "/", "/", "/stream", "/never"].map(asking).join(""));
      await until(() => all.length === 5 && all[2]?.response.writableEnded === true);
      socket.destroy();
      await until(() => sent === 5 * round && left === round);
      expect(all.slice(0, 4).map(({ response }) => response.statusCode)).toEqual([200, 200, 200, 200]);
      expect(all.every(({ signal }, at) => at === 0 || signal.aborted)).toBe(true);
    }
    let isTold = false;
    all[4]?.onSent(() => {
      isTold = true;
    });
    expect(isTold).toBe(true);
  });

  it("Http: ends in time what goes on for ever, be it an answer, a request or headers", async () => {
    let requests = 0;
    const onRequest: Listened["onRequest"] = ({ response }) => {
      requests += 1;
      response.write("and so on");
    };
    const { listener } = await start({ onRequest });
    const ends: Promise<unknown>[] = [];
    const ended = (socket: { once(event: "close", then: () => void): unknown }) =>
      ends.push(new Promise<void>((resolve) => socket.once("close", resolve)));
    ended(get(listener.origin).on("error", () => {}));
    const post = request(listener.origin, { method: "POST" }).on("error", () => {});
    post.write("half");
    ended(post);
    const slow = await connectTo(listener.port);
    slow.write("GET / HTTP/1.1\r\nhost: local");
    ended(slow.resume());
    while (requests < 2) await sleep(5);
    const started = performance.now();
    await listener.close({ timeoutMs: 300 });
    expect(performance.now() - started).toBeGreaterThan(250);
    await Promise.all(ends);
  });
});

describe("checkListenOptions", () => {
  it.each([
    [{ port: -1 }, "port must be a whole number from 0 to 65535; it is -1."],
    [{ port: 65_536 }, "port must be a whole number from 0 to 65535; it is 65536."],
    [{ port: "80" }, "port must be a whole number from 0 to 65535; it is of type string."],
    [{ host: 1 }, "host must be a string; it is 1."],
    [
      { limits: { unsentBytes: 0 } },
      "limits.unsentBytes must be a whole number from 1 to 9007199254740991; it is 0.",
    ],
    [
      { limits: { connections: 1.5 } },
      "limits.connections must be a whole number from 1 to 9007199254740991; it is 1.5.",
    ],
    [{ limits: { stalledMs: 0 } }, "limits.stalledMs must be a whole number from 1 to 2147483647; it is 0."],
    [{ unsafeOpen: "no" }, "unsafeOpen must be true or false; it is of type string."],
  ])("Http: refuses %j", (options, message) => {
    expect(() => checkListenOptions(options as ListenOptions, true)).toThrow(new TypeError(message));
  });

  it.each(["0.0.0.0", "::", "192.168.1.2", "api.example", "localhost.example", "127.0.0.1.nip.io", ""])(
    "Http: lets others reach %j only with authentication, or when told that everybody may",
    (host) => {
      expect(() => checkListenOptions({ host }, false)).toThrow("Others can reach");
      expect(() => checkListenOptions({ host }, true)).not.toThrow();
      expect(() => checkListenOptions({ host, unsafeOpen: true }, false)).not.toThrow();
    },
  );

  it.each(["localhost", "127.0.0.1", "127.1.2.3", "::1", undefined])(
    "Http: needs nothing to listen on %j, which is this machine",
    (host) => expect(() => checkListenOptions({ host, port: 65_535 }, false)).not.toThrow(),
  );
});

describe("an exchange over node:http", () => {
  it("Http: has a signal of its own, on whatever connection it comes", async () => {
    const aborted: boolean[] = [];
    const listener = await listenHttp({
      onRequest(asked) {
        aborted.push(asked.signal.aborted);
        asked.abort(new Error("over"));
        void asked.send({ status: 200, headers: {}, body: "done" });
      },
      onClose: async () => {},
    });
    open.push(() => listener.close({ timeoutMs: 0 }));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    open.push(() => agent.destroy());
    const ports: unknown[] = [];
    for (let i = 0; i < 3; i++) {
      await new Promise<void>((resolve, reject) => {
        const sent = request(listener.origin, { agent }, (response) => {
          ports.push(response.socket.localPort);
          response.resume().on("end", resolve);
        });
        sent.on("error", reject).end();
      });
    }
    expect(new Set(ports).size).toBe(1);
    expect(aborted).toEqual([false, false, false]);
  });
});

/** Far more than the buffers of a loopback connection hold. */
const BIG = "x".repeat(16 * 1_024 * 1_024);

const asking = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

/** Sends a request over a connection of its own, waits for the first bytes of the answer, and reads no more of it. */
async function leaveUnread(port: number, path: string): Promise<void> {
  const socket = await connectTo(port);
  socket.write(asking(path));
  await new Promise((resolve) => socket.once("readable", resolve));
}

describe("a client that takes nothing", () => {
  it("RE-30 loses its connection, and one that waits for something does not", async () => {
    const asked: string[] = [];
    const closed: string[] = [];
    const listener = await listenHttp(
      {
        onRequest(request) {
          const { path, response } = request;
          asked.push(path);
          response.once("close", () => closed.push(path));
          if (path === "/big") void request.send({ status: 200, headers: {}, body: BIG });
          if (path === "/begun") response.write("more comes later");
        },
        onClose: async () => {},
      },
      { limits: { stalledMs: 200 } },
    );
    open.push(() => listener.close({ timeoutMs: 0 }));
    // One has been answered nothing yet, the other has read all there is.
    for (const path of ["/not-begun", "/begun"]) {
      const socket = await connectTo(listener.port);
      socket.resume().write(asking(path));
    }
    await until(() => asked.length === 2);
    for (let n = 0; n < 3; n++) await leaveUnread(listener.port, "/big");
    await until(() => closed.length === 3);
    expect(closed).toEqual(["/big", "/big", "/big"]);
  });

  it("RE-30 loses it while a stream waits for it, too", async () => {
    let isEnded = false;
    const listener = await listenHttp(
      {
        onRequest(asked) {
          async function* texts() {
            try {
              for (;;) yield BIG.slice(0, 1_048_576);
            } finally {
              isEnded = true;
            }
          }
          void asked.send({ status: 200, headers: {}, body: texts() });
        },
        onClose: async () => {},
      },
      { limits: { stalledMs: 200 } },
    );
    open.push(() => listener.close({ timeoutMs: 0 }));
    await leaveUnread(listener.port, "/");
    await until(() => isEnded);
  });
});
