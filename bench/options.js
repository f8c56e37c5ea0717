// @ts-check
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";

/**
 * @typedef {object} BenchOptions
 * @property {boolean} quick shorter and noisier
 * @property {boolean} strict exit with 1 when a target is lost
 * @property {readonly string[]} only names of benches or cases; none means all
 */

const HELP = `Times Waybill against its peers and against hand-written code.

  node run.js [options]          every bench, one after the other
  node call.js [options]         one bench

  --only <name>   a bench ("call") or one of its cases ("call/small"); may be given more than once
  --quick         fewer and shorter rounds: a first look, not a figure to publish
  --strict        exit with 1 when a target is lost
  --help          this text
`;

/**
 * Reads the command line; prints the help and ends when asked for it or when an option is unknown.
 * @returns {BenchOptions}
 */
export function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: "string", multiple: true, default: [] },
        quick: { type: "boolean", default: false },
        strict: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
    if (!values.help) return { quick: values.quick, strict: values.strict, only: values.only };
    console.log(HELP);
    process.exit(0);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${HELP}`);
    process.exit(2);
  }
}

/**
 * Says whether a case ("call/small") was asked for, by its own name or that of its bench.
 * @param {string} name
 * @param {BenchOptions} options
 */
export function isWanted(name, { only }) {
  return only.length === 0 || only.some((wanted) => name === wanted || name.startsWith(`${wanted}/`));
}

/**
 * Returns how long to measure.
 * @param {BenchOptions} options
 */
export function timing({ quick }) {
  return quick ? { rounds: 15, sliceMs: 5, warmUpMs: 150 } : { rounds: 60, sliceMs: 20, warmUpMs: 1000 };
}

/**
 * Returns the same for sides that are processes of their own: a slice is long enough for many calls, and each of them has its code
 * compiled before anything counts.
 * @param {BenchOptions} options
 */
export function serverTiming({ quick }) {
  return quick ? { rounds: 15, sliceMs: 40, warmUpMs: 2_000 } : { rounds: 40, sliceMs: 100, warmUpMs: 5_000 };
}

/** Says what the figures were taken on, and warns when the machine has other work to do. */
export function printMachine() {
  const load = loadavg()[0] ?? 0;
  const cores = availableParallelism();
  const warning = load > cores / 2 ? " (BUSY: expect noise, trust nothing that is close to its target)" : "";
  console.log(`Node ${process.version}, ${cores} cores, load ${load.toFixed(1)}${warning}`);
}
