// @ts-check
// Kills gateways and brokers of a fleet while tasks run, and tells what became of them. HELP says how.
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { runTaskStorm } from "./task-storm.js";

const HELP = `Usage: npm run fleet:tasks [-- options]   (or: node test/fleet/run-tasks.js [options])

Starts three gateways, three brokers and a balancer, keeps tasks running, and meanwhile kills a gateway every 5 s and a broker every 30 s. Every task
whose id a client got settles once, with its own result, says the same when it is asked again, and is seen by its owner alone. Lines that begin with
FAULT say what is wrong; the exit code is 1 if there is one.

  --minutes <number>   how long things are killed (default 5)
  --running <number>   tasks that run at a time (default 200)
  --cli <path>         the command to test (default dist/cli.js, which npm run fleet:tasks builds)
  --help               this`;

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "5" },
    running: { type: "string", default: "200" },
    cli: { type: "string" },
    help: { type: "boolean" },
  },
});
if (values.help === true) {
  process.stdout.write(`${HELP}\n`);
  process.exit(0);
}
const [minutes, running] = [Number(values.minutes), Number(values.running)];
if (!(minutes > 0)) throw new TypeError("--minutes must be a number above 0.");
if (!(running >= 1)) throw new TypeError("--running must be a number from 1 on.");
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

const { counts, problems } = await runTaskStorm({
  seconds: minutes * 60,
  running,
  say: (text) => process.stderr.write(`tasks: ${text}\n`),
  ...(values.cli !== undefined && { cli: resolve(values.cli) }),
});
process.stdout.write(
  `tasks whose id was told   ${counts.created}
settled                   ${counts.settled}
not begun, or not told    ${counts.unknown}
looks                     ${counts.looks}
killed                    ${counts.replicas} gateways, ${counts.brokers} brokers\n`,
);
for (const problem of problems.slice(0, 50)) process.stdout.write(`FAULT  ${problem}\n`);
process.exit(problems.length === 0 && counts.settled === counts.created ? 0 : 1);
