import { get, request } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { endsInTime } from "../../test/lateness.ts";
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

  it("Http: keeps so many connections, and closes the oldest that is idle for one more", async () => {
    let held = 0;
    const onRequest: Listened["onRequest"] = ({ path, response }) => {
      if (path === "/hold") held += 1;
      else response.end("here");
    };
    const { listener } = await start({ onRequest }, { connections: 3 });
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
    [{ unsentBytes: 0 }, "unsentBytes must be a whole number, 1 or more; it is 0."],
    [{ connections: 1.5 }, "connections must be a whole number, 1 or more; it is 1.5."],
    [{ stalledMs: 0 }, "stalledMs must be a whole number from 1 to 2147483647; it is 0."],
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
