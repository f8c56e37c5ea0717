import { expect, it } from "vitest";
import { query, rejection } from "../../../test/make-operation.ts";
import { toolError } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";

import { createObserver } from "../../gateway/serve/observe/observer.ts";
import { CallLog } from "./call-log.ts";
import { statsBySource } from "./call-stats.ts";

const ALL = { identity: undefined, isOperator: true, isAuthOn: false, isCurrent: () => true };

it("counts what failed and what said no as errors, and not what its caller gave up", async () => {
  const observer = createObserver();
  const registry = new OperationRegistry([
    query("desk.ok", () => 1),
    query("desk.no", () => toolError(0, { code: "ABORTED" })),
    query("desk.broken", () => {
      throw new CallError("NOT_FOUND", "There is none.");
    }),
    query("desk.slow", (_, { signal }) => new Promise((resolve) => (signal.onabort = resolve))),
  ]);
  registry.use(observer);
  const log = new CallLog(observer);
  const stop = new AbortController();
  const slow = rejection(registry.execute("desk.slow", undefined, { signal: stop.signal }));
  await registry.execute("desk.ok");
  await registry.execute("desk.no");
  await rejection(registry.execute("desk.broken"));
  stop.abort();
  await slow;
  expect(statsBySource(log, ALL).get("desk")).toMatchObject({ count: 4, errors: 2 });
  log.close();
});
