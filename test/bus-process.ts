import { PendingRequestMap, serveCalls } from "../src/call/index.ts";
import { connectNatsBus } from "../src/call/nats/index.ts";
import { OperationRegistry, toCallError } from "../src/index.ts";
import { query } from "./make-operation.ts";

/** One end of a bus in a process of its own, which tests can stop: `node bus-process.js <url> <caller | worker> <beatMs>`. */
const [url = "", role = "", beatMs = ""] = process.argv.slice(2);

const bus = await connectNatsBus({ servers: url }, { beatMs: Number(beatMs) });
const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** Waits for a call that hangs and reads a stream that does not end, and says how each ended. */
async function ask(): Promise<void> {
  const map = new PendingRequestMap(bus);
  const values = map.subscribe("a.count");
  let read = 0;
  for (; read < 20; read++) await values.next();
  const called = map.call("a.hang").catch((thrown: unknown) => say(`call ${toCallError(thrown).code}`));
  const readRest = async (): Promise<void> => {
    // Reads on once it is told to: whatever has arrived by then waits here.
    await new Promise((resolve) => process.once("SIGUSR2", resolve));
    for await (const _ of values) read++;
  };
  const readAll = readRest().catch((thrown: unknown) => say(`stream ${toCallError(thrown).code}`));
  say("ready");
  await Promise.all([called, readAll]);
}

if (role === "caller") await ask();
else {
  const work = query("a.work", () => process.pid, { annotations: { idempotent: true } });
  await serveCalls(new OperationRegistry([work]), bus);
  say("ready");
}
