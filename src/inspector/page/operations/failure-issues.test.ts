import { expect, test } from "vitest";
import { failureIssues } from "./operation-desk.ts";

const issue = { pointer: "/a", expected: "a text", found: "a number" };

test("the issues of a refused input are found in its details", () => {
  const details = { issues: [issue, null, "x", { pointer: 1, expected: "", found: "" }] };
  expect(failureIssues({ code: "VALIDATION_ERROR", message: "", details })).toEqual([issue]);
});

test("other failures and odd details have none", () => {
  expect(failureIssues({ code: "TIMEOUT", message: "", details: { issues: [issue] } })).toEqual([]);
  for (const details of [undefined, null, "x", [], { issues: { length: 1 } }]) {
    expect(failureIssues({ code: "VALIDATION_ERROR", message: "", details })).toEqual([]);
  }
});
