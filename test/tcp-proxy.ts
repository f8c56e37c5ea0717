import { connect, createServer, type Socket } from "node:net";

/** A way to a server that can be cut and restored. */
export interface TcpProxy {
  readonly port: number;
  /** Connections through it that are open. */
  readonly open: number;
  /** Ends the connections through it, as a cable that is pulled would, and takes no others. */
  cut(): void;
  restore(): void;
  stop(): Promise<void>;
}

/** Starts a proxy on a free loopback port. */
export async function startProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) {
      near.destroy();
      return;
    }
    const far = connect(target, "127.0.0.1");
    sockets.add(near);
    const end = (): void => {
      sockets.delete(near);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) socket.once("close", end).on("error", end);
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const cut = (): void => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    get open() {
      return sockets.size;
    },
    cut,
    restore() {
      isCut = false;
    },
    stop() {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
