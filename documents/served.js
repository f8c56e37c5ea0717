import { fork } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { parseArgs } from "node:util";
import { findDocuments } from "./find-documents.js";

const HELP = `Serves public OpenAPI documents onward and measures what that makes of them.

  node documents/served.js              the 200 largest documents but the two of Microsoft's
  node documents/served.js --count 20   so many of the largest
  node documents/served.js --all        every document of the installed packages but those two (an hour)
  node documents/served.js --only NAME  those whose name contains NAME

Each document is read, mounted and served in a process of its own. Printed are those whose served document is more than
twice as large as what came in, both as compact JSON, or that take more than 5 s of processor time until it is served,
the worst first; and how many stay within 1.5 times and 2 times. The size does not count what every served document
holds, whatever is mounted. Exit code 1 when there is one of them.`;

/** Two documents of Microsoft's have 34,000 operations between them. */
const LARGEST = 15_000_000;
const MOST_TIMES = 2;
const AIMED_TIMES = 1.5;
const MOST_SECONDS = 5;

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "200" },
    all: { type: "boolean", default: false },
    only: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}

const documents = chooseDocuments();
const served = [];
const failures = [];
for (const [number, { path, name }] of documents.entries()) {
  await measure(path, name);
  if (process.stderr.isTTY || number % 25 === 24)
    process.stderr.write(`${number + 1} of ${documents.length} documents\n`);
}
report();

function chooseDocuments() {
  const found = findDocuments(Number.POSITIVE_INFINITY).map((each) => ({
    ...each,
    size: statSync(each.path).size,
  }));
  if (values.only !== undefined) return found.filter(({ name }) => name.includes(values.only));
  const fitting = found.filter(({ size }) => size < LARGEST).sort((a, b) => b.size - a.size);
  return values.all ? fitting : fitting.slice(0, Number(values.count));
}

async function measure(path, name) {
  const child = fork(new URL("./serve-document.js", import.meta.url), [path]);
  const exited = once(child, "exit");
  const [message] = await Promise.race([once(child, "message"), exited.then(() => [undefined])]);
  await exited;
  if (message === undefined) failures.push(name);
  else served.push({ name, ...message, times: (message.served - message.always) / message.incoming });
}

/** How far beyond what is allowed a document is. */
function excess({ times, seconds }) {
  return Math.max(times / MOST_TIMES, seconds / MOST_SECONDS);
}

function report() {
  for (const name of failures) console.log(`${name}: not served`);
  const beyond = served.filter((each) => excess(each) > 1).sort((a, b) => excess(b) - excess(a));
  for (const { name, times, seconds, incoming, operations } of beyond) {
    const megabytes = (incoming / 1e6).toFixed(2);
    console.log(
      `${times.toFixed(2)}×  ${seconds.toFixed(2)} s  ${megabytes} MB, ${operations} operations: ${name}`,
    );
  }
  const within = (most) => served.filter(({ times }) => times <= most).length;
  const slowest = Math.max(0, ...served.map(({ seconds }) => seconds));
  console.log(
    `\n${served.length} documents: ${within(AIMED_TIMES)} within ${AIMED_TIMES}×, ${within(MOST_TIMES)} within ${MOST_TIMES}×; ` +
      `the slowest took ${slowest.toFixed(2)} s of processor time.`,
  );
  if (beyond.length + failures.length > 0) process.exitCode = 1;
}
