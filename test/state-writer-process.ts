import { createLocalStateStore } from "../src/gateway/state/local-state-store.ts";
import { StateLog } from "../src/gateway/state/state-log.ts";

/** Writes records until it is killed, and says of each that it was acknowledged. */
const folder = process.argv[2] as string;
const bounds = { records: 1e6, bytes: 1e9, ownRecords: 1e6, ownBytes: 1e9 };
const log = await StateLog.open(folder, {
  now: Date.now,
  onFault: (fault) => process.stdout.write(`! ${fault}\n`),
});
const store = createLocalStateStore({ log });
process.stdout.write(`open ${log.records.size}\n`);

const write = async (worker: number): Promise<void> => {
  for (let count = 0; ; count++) {
    const key = `${process.pid} ${worker} ${count}`;
    const value = Buffer.from(key.repeat(1 + (count % 50)));
    const expiresAt = store.now() + 3_600_000;
    const made = await store.create({ collection: "keys", owner: "ann", key }, value, { expiresAt, bounds });
    if (made.state !== "created") throw new Error(made.state);
    process.stdout.write(`${key}\n`);
  }
};
await Promise.all([1, 2, 3, 4].map(write));
