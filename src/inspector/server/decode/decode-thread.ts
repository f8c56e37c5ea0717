import { parentPort } from "node:worker_threads";
import { type DecodeJob, runDecodeJob } from "./decode-results.ts";

// A thread of its own: what takes long here keeps no call of the gateway waiting.
parentPort?.on("message", (job: DecodeJob) => {
  const answer = runDecodeJob(job);
  parentPort?.postMessage(answer, "json" in answer ? [answer.json.buffer] : []);
});
parentPort?.postMessage("ready");
