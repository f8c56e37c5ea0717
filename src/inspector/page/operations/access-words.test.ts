import { expect, test } from "vitest";
import type { OperationView } from "../../protocol.ts";
import { accessWords, annotationWords, planWords } from "./operations-view.tsx";

const operation = (over: Partial<OperationView>): OperationView => ({
  id: "a.b",
  namespace: "a",
  name: "b",
  version: "1.0.0",
  type: "query",
  description: "",
  ...over,
});

test("an operation without a rule is for everybody", () => {
  expect(accessWords(operation({}))).toEqual(["Everybody who can reach the gateway."]);
});

test("an empty rule asks for an identity", () => {
  expect(accessWords(operation({ access: {} }))).toEqual(["Callers who say who they are."]);
});

test("scopes and resources are conditions of their own", () => {
  const access = {
    scopes: { allOf: ["a:read", "a:write"], anyOf: ["x", "y"] },
    resource: [{ pointer: "/depot/id", type: "depot" }, "hostile"],
  };
  expect(accessWords(operation({ access })).slice(1)).toEqual([
    "They hold all scopes of a:read, a:write.",
    "They hold at least one scope of x, y.",
    "They hold the depot that the input names at /depot/id.",
    "They hold the ? that the input names at ?.",
  ]);
  expect(accessWords(operation({ access: { scopes: { allOf: ["one"] } } }))[1]).toBe(
    "They hold all scopes of one.",
  );
});

test("plans and features are told, odd ones too", () => {
  const features = [{ name: "bulk", tier: "pro" }, null];
  expect(planWords(operation({ tier: "pro", features }))).toEqual([
    "Plan pro or higher.",
    "Feature bulk: plan pro or higher.",
    "Feature ?: plan ? or higher.",
  ]);
  expect(planWords(operation({}))).toEqual([]);
});

test("annotations that are absent claim nothing", () => {
  expect(annotationWords(operation({}))).toEqual([]);
  expect(annotationWords(operation({ annotations: { readOnly: true, idempotent: false } }))).toEqual([
    "Only reads.",
    "Calling it again may do it again.",
  ]);
});
