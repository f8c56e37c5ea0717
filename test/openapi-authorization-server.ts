import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** What a token is good for, and whose it is. */
export interface TokenFacts {
  readonly client: string;
  readonly account?: string;
  readonly scope?: string;
}

/** A real authorization server in a process of its own. */
export interface AuthorizationServer {
  readonly issuer: string;
  /** Grants that worked, and those that were refused. */
  counts(): Promise<{ readonly success: number; readonly error: number }>;
  /** Gives a refresh token of the client `app`, good for one use. */
  grant(): Promise<string>;
  /** Says what a token is good for; null where it is none. */
  look(token: string): Promise<TokenFacts | null>;
  close(): Promise<void>;
}

/** Starts the server, also in a hardened run: it is started without the flags, which it cannot bear. */
export async function startAuthorizationServer(): Promise<AuthorizationServer> {
  const path = fileURLToPath(new URL("./openapi-children/authorization-server.js", import.meta.url));
  const child = fork(path, { execArgv: [], stdio: ["ignore", "ignore", "ignore", "ipc"] });
  const [{ issuer }] = (await once(child, "message")) as [{ issuer: string }];
  const waiting = new Map<number, (answer: unknown) => void>();
  child.on("message", ({ id, answer }: { id: number; answer: unknown }) => {
    waiting.get(id)?.(answer);
    waiting.delete(id);
  });
  let asked = 0;
  const ask = <T>(name: string, value?: string): Promise<T> =>
    new Promise((resolve) => {
      const id = asked++;
      waiting.set(id, (answer) => resolve(answer as T));
      child.send({ id, ask: name, value });
    });
  return {
    issuer,
    counts: () => ask("counts"),
    grant: () => ask("grant"),
    look: (token) => ask("look", token),
    close: async () => {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
    },
  };
}
