import type { CheckList, CheckStatus } from "./check-report.ts";
import type { CheckId } from "./check-titles.ts";

/** What one look at something says; several looks make one check. */
export interface Finding {
  readonly id: CheckId;
  readonly status: CheckStatus;
  readonly message: string;
  readonly evidence?: unknown;
  /** In place of what is usual for the kind of check. */
  readonly fix?: string;
}

const WEIGHT: Readonly<Record<CheckStatus, number>> = { skip: 0, pass: 1, warn: 2, fail: 3 };

/** Adds one check for each kind of finding: the worst of them, and of equals the first. */
export function addFindings(list: CheckList, subject: string, findings: readonly Finding[]): void {
  const worst = new Map<CheckId, Finding>();
  for (const finding of findings) {
    const known = worst.get(finding.id);
    if (known === undefined || WEIGHT[finding.status] > WEIGHT[known.status]) worst.set(finding.id, finding);
  }
  for (const { id, status, message, evidence, fix } of worst.values()) {
    list[status](id, subject, message, { evidence, ...(fix !== undefined && { fix }) });
  }
}
