import type { CallFailure, IssueView } from "../../protocol.ts";
import { listIn, ownOf } from "../form/json-value.ts";

const MOST_ISSUES = 500;

/** The fields a refused input missed, where a failure names them; whatever else is in its details is left alone. */
export function failureIssues({ code, details }: CallFailure): readonly IssueView[] {
  const issues = code === "VALIDATION_ERROR" ? listIn(ownOf(details, "issues")) : [];
  return issues.slice(0, MOST_ISSUES).filter(isIssue);
}

function isIssue(value: unknown): value is IssueView {
  return ["pointer", "expected", "found"].every((name) => typeof ownOf(value, name) === "string");
}
