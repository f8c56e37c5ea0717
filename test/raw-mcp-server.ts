import { InMemoryTransport, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";

/** Answers one request with its `result`; throws an object with a code to answer with an error. */
export type RawAnswer = (params: Readonly<Record<string, unknown>>, request: RawRequest) => unknown;

/** A request as it came. */
export interface RawRequest {
  readonly id: string | number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** A server that answers word for word what a test says, over a transport in memory. */
export interface RawMcpServer {
  /** What `fromMcp` takes. */
  readonly transport: () => Transport;
  /** Everything that came, notifications included. */
  readonly received: { readonly method: string; readonly params: Readonly<Record<string, unknown>> }[];
  /** Tells all who are connected. */
  notify(method: string, params?: Readonly<Record<string, unknown>>): void;
  /** Asks whoever connected last, and gives the whole answer. */
  ask(method: string, params: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>;
  /** Ends every connection, as a server does that stops. */
  drop(): Promise<void>;
}

const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true },
  prompts: {},
  logging: {},
};

/** Makes a 2025 server out of answers by method; results are not looked at by anybody on their way. */
export function createRawMcpServer(answers: Readonly<Record<string, RawAnswer>>): RawMcpServer {
  const received: { method: string; params: Readonly<Record<string, unknown>> }[] = [];
  const ends = new Set<InMemoryTransport>();
  const asked: ((answer: Readonly<Record<string, unknown>>) => void)[] = [];
  const send = (to: InMemoryTransport, message: object) => {
    // Whoever has left meanwhile hears nothing.
    to.send(JSON.parse(JSON.stringify({ jsonrpc: "2.0", ...message })) as JSONRPCMessage).catch(() => {});
  };
  const answer = async (to: InMemoryTransport, request: RawRequest) => {
    const { id, method, params } = request;
    const handler = answers[method] ?? (method === "initialize" ? initialize : undefined);
    if (handler === undefined) return send(to, { id, error: { code: -32601, message: "Method not found" } });
    try {
      send(to, { id, result: await handler(params, request) });
    } catch (error) {
      send(to, { id, error });
    }
  };
  return {
    received,
    transport: () => {
      const [here, there] = InMemoryTransport.createLinkedPair();
      ends.add(there);
      there.onclose = () => void ends.delete(there);
      there.onmessage = (message) => {
        const { id, method, params = {} } = message as Partial<RawRequest>;
        if (method === undefined) {
          asked[Number(id)]?.(message as never);
          return;
        }
        received.push({ method, params });
        if (id !== undefined) void answer(there, { id, method, params });
      };
      void there.start();
      return here;
    },
    notify: (method, params = {}) => {
      for (const end of ends) send(end, { method, params });
    },
    ask: (method, params) => {
      const [end] = [...ends].slice(-1);
      return new Promise((resolve) => {
        const id = asked.push(resolve) - 1;
        if (end !== undefined) send(end, { id, method, params });
      });
    },
    drop: async () => {
      for (const end of [...ends]) await end.close();
    },
  };
}

function initialize({ protocolVersion }: Readonly<Record<string, unknown>>): unknown {
  return { protocolVersion, capabilities: CAPABILITIES, serverInfo: { name: "raw", version: "1.2.3" } };
}
