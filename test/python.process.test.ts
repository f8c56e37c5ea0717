import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { FORMAT_NAMES } from "../src/formats/index.ts";
import { canonicalJson } from "./canonical-json.ts";
import { type BlockCase, blockCase } from "./envelope-mutations.ts";
import { BLOCK_CODES, judge, type Verdict } from "./judge-formats.ts";
import { createRandom, type Random } from "./random.ts";
import { ROOT, runCommand } from "./run-node.ts";
import { scaled } from "./runs.ts";
import { type ResultCase, resultCase } from "./tool-result-mutations.ts";

const FOLDER = join(ROOT, "python");
const ENV = { PYTHONDONTWRITEBYTECODE: "1" };
const CASES = scaled(5_000);
const BATCH = 500;
const SEED = 20_250_617;

const MISSING = spawnSync("python3", ["--version"]).status !== 0;
const REASON = MISSING ? " (not run: python3 is not on PATH)" : "";

const SEEN_AT_LEAST_ONCE = [
  ...["whitespace", "url_alphabet", "missing_padding", "stray_bits", "bom"],
  ...[...FORMAT_NAMES, "ambiguous", "not_a_tool_result"].map((what) => `result ${what}`),
];

type Case = BlockCase | ResultCase;

/** One Python process that answers case after case. */
function startJudge() {
  const child: ChildProcessWithoutNullStreams = spawn("python3", ["-m", "tests.judge"], {
    cwd: FOLDER,
    env: { ...process.env, ...ENV },
  });
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  // A process that does not start, or stops, shows in the answers that are missing.
  for (const source of [child, child.stdin]) {
    source.on("error", (error: Error) => {
      complaints += error.message;
    });
  }
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async ask(cases: readonly Case[]): Promise<Verdict[]> {
      child.stdin.write(cases.map((given) => `${JSON.stringify(given)}\n`).join(""));
      const answers: Verdict[] = [];
      while (answers.length < cases.length) {
        const { value, done } = await lines.next();
        if (done) throw new Error(`Python stopped answering. ${complaints}`);
        answers.push(JSON.parse(value));
      }
      return answers;
    },
    stop: () => child.stdin.end(),
  };
}

/** What must agree. Where the data of an envelope by itself came from, only its source can say. */
function comparable({ obtained, ...others }: Verdict, isBare: boolean): string {
  const hasPlace = others.format !== "ambiguous" && !isBare;
  return canonicalJson({ ...others, ...(hasPlace && { obtained }) });
}

function nextCase(random: Random): Case {
  return random.chance(0.25) ? resultCase(random) : blockCase(random);
}

interface Tally {
  readonly disagreements: unknown[];
  readonly seen: Map<string, number>;
  judged: number;
  blocks: number;
}

function compare(given: Case, ours: Verdict, theirs: Verdict, tally: Tally): void {
  const note = (what: string) => tally.seen.set(what, (tally.seen.get(what) ?? 0) + 1);
  tally.judged += 1;
  if (given.kind === "block") {
    tally.blocks += 1;
    note(ours.code ?? "read");
    for (const name of ours.tolerated ?? []) note(name);
  } else note(`result ${ours.format ?? ours.code}`);
  const isBare = theirs["obtained"] === "return-value";
  if (comparable(ours, isBare) !== comparable(theirs, isBare) || theirs.bug !== undefined)
    tally.disagreements.push({ given, ours, theirs });
}

async function fuzz(cases: number): Promise<Tally> {
  const random = createRandom(SEED);
  const python = startJudge();
  const tally: Tally = { disagreements: [], seen: new Map(), judged: 0, blocks: 0 };
  try {
    for (let asked = 0; asked < cases && tally.disagreements.length < 10; asked += BATCH) {
      const batch = Array.from({ length: Math.min(BATCH, cases - asked) }, () => nextCase(random));
      const answers = await python.ask(batch);
      batch.forEach((given, i) => {
        compare(given, judge(given), answers[i] as Verdict, tally);
      });
    }
  } finally {
    python.stop();
  }
  return tally;
}

describe.skipIf(MISSING && process.env["CI"] !== "true")(`the Python consumer${REASON}`, () => {
  it("TE-9 passes its own tests, the shared vectors among them", async () => {
    const args = ["-m", "unittest", "discover", "-s", "tests", "-t", "."];
    const ran = await runCommand("python3", args, { cwd: FOLDER, env: ENV });
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stderr).toMatch(/^Ran [1-9]\d+ tests/m);
  });

  it("TE-4 TE-5 TE-9 agrees about every case, valid or spoiled, read strictly or leniently", {
    timeout: 120_000 + CASES * 30,
  }, async () => {
    const { disagreements, seen, judged, blocks } = await fuzz(CASES);
    console.info(`${judged} cases judged in both languages`, Object.fromEntries([...seen].sort()));
    expect(disagreements).toEqual([]);
    expect(judged).toBe(CASES);
    const rare = [...BLOCK_CODES, "read"].filter((code) => (seen.get(code) ?? 0) < blocks * 0.02);
    expect(rare).toEqual([]);
    expect(SEEN_AT_LEAST_ONCE.filter((what) => !seen.has(what))).toEqual([]);
  });
});
