// @ts-check
// Kills gateways and brokers one after the other, and starts each again.
import { setTimeout as pause } from "node:timers/promises";

/** @typedef {{ replicaEveryMs: number, brokerEveryMs: number, onKill?: (what: string) => void }} NemesisOptions */

/** Milliseconds that a broker is down. */
const BROKER_DOWN_MS = 1_000;

/**
 * Kills a gateway and a broker as often as it is told to, until the signal; leaves everything running.
 * @param {import("./fleet.js").Fleet} fleet @param {AbortSignal} signal @param {NemesisOptions} options
 */
export async function rage(fleet, signal, { replicaEveryMs, brokerEveryMs, onKill = () => {} }) {
  const kills = { replicas: 0, brokers: 0 };
  /** @param {number} everyMs @param {(turn: number) => Promise<void>} strike */
  const every = async (everyMs, strike) => {
    for (let turn = 0; ; turn++) {
      const struck = performance.now();
      if (turn > 0) await strike(turn - 1);
      const left = Math.max(0, everyMs - (performance.now() - struck));
      await pause(turn > 0 ? left : everyMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
    }
  };
  const killReplica = async (/** @type {number} */ turn) => {
    const replica = fleet.replicas[turn % fleet.replicas.length];
    onKill(`gateway ${turn % fleet.replicas.length}`);
    await replica?.end();
    kills.replicas += 1;
    replica?.start();
  };
  const killBroker = async (/** @type {number} */ turn) => {
    const broker = fleet.brokers[turn % fleet.brokers.length];
    onKill(`broker ${turn % fleet.brokers.length}`);
    await broker?.end();
    kills.brokers += 1;
    await pause(BROKER_DOWN_MS);
    broker?.start();
  };
  await Promise.all([every(replicaEveryMs, killReplica), every(brokerEveryMs, killBroker)]);
  return kills;
}
