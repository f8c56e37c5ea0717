import { parentPort } from "node:worker_threads";
import { answerLook, type LookAsk } from "./answer-look.ts";

// A thread of its own: what takes long here keeps no call of the gateway waiting.
parentPort?.on("message", (ask: LookAsk) => {
  const answer = answerLook(ask);
  parentPort?.postMessage(answer, "json" in answer ? [answer.json.buffer] : []);
});
parentPort?.postMessage("ready");
