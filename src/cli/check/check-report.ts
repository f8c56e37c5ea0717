import { PACKAGE_VERSION } from "../../core/package-version.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { CHECK_KINDS, type CheckId } from "./check-titles.ts";

/** How a check ended. */
export type CheckStatus = "pass" | "warn" | "fail" | "skip";

/** One question asked of a server or document, and the answer; every text is fit to be shown. */
export interface Check {
  readonly id: CheckId;
  readonly title: string;
  /** The tool, operation, resource or prompt it is about; empty for the server or document as a whole. */
  readonly subject: string;
  readonly status: CheckStatus;
  readonly message: string;
  /** What was seen, as text; cut. */
  readonly evidence?: string;
  /** What to do; with warnings and failures. */
  readonly fix?: string;
}

/** How many checks ended which way. */
export type CheckCounts = Readonly<Record<CheckStatus, number>>;

/** What is known of a server or document once it has been checked: what `--json` prints. */
export interface CheckReport {
  /** The version of Waybill that looked. */
  readonly waybill: string;
  /** What was checked, without secrets. */
  readonly target: string;
  readonly kind: "mcp" | "openapi";
  /** What it calls itself. */
  readonly name?: string;
  readonly version?: string;
  /** The revision of MCP that was spoken. */
  readonly protocol?: string;
  /** False where it could not be connected to, or not be read. */
  readonly reachable: boolean;
  /** Why nothing of an API was called; absent where it was. */
  readonly notCalled?: string;
  readonly counts: CheckCounts;
  /** In the order they were made. */
  readonly checks: readonly Check[];
  /** Checks that were counted and are not listed, being too many. */
  readonly omitted: number;
}

/** Bounds on what is told. */
export const REPORT_LIMITS = {
  /** Checks that are listed; passes are left out first. */
  checks: 5_000,
  message: 500,
  subject: 200,
  evidence: 1_000,
} as const;

/** What may be said with a check besides its message. */
export interface CheckExtras {
  readonly evidence?: unknown;
  /** In place of what is usual for the kind of check. */
  readonly fix?: string;
}

/** What a report says of its target. */
type TargetFacts = Pick<CheckReport, "target" | "kind">;

/** Collects checks while they are made; whatever is put in comes out cleaned, masked and bounded. */
export class CheckList {
  readonly #target: TargetFacts;
  readonly #mask: (text: string) => string;
  readonly #checks: Check[] = [];
  readonly #counts = { pass: 0, warn: 0, fail: 0, skip: 0 };
  #omitted = 0;
  #facts: Pick<CheckReport, "name" | "version" | "protocol"> = {};
  #isReachable = true;
  #notCalled: string | undefined;

  constructor(target: TargetFacts, mask: (text: string) => string = (text) => text) {
    this.#mask = mask;
    this.#target = { ...target, target: this.#line(target.target, REPORT_LIMITS.message) };
  }

  pass(id: CheckId, subject: string, message: string): void {
    this.#add(id, subject, "pass", message, {});
  }

  skip(id: CheckId, subject: string, message: string): void {
    this.#add(id, subject, "skip", message, {});
  }

  warn(id: CheckId, subject: string, message: string, extras: CheckExtras = {}): void {
    this.#add(id, subject, "warn", message, extras);
  }

  fail(id: CheckId, subject: string, message: string, extras: CheckExtras = {}): void {
    this.#add(id, subject, "fail", message, extras);
  }

  /** Says that the target could not be reached at all. */
  unreachable(id: CheckId, message: string): void {
    this.#isReachable = false;
    this.fail(id, "", message);
  }

  /** Says why nothing of an API was called. */
  notCalled(reason: string): void {
    this.#notCalled = reason;
  }

  /** Keeps what the target says of itself. */
  describe(facts: { readonly name?: unknown; readonly version?: unknown; readonly protocol?: string }): void {
    const { name, version, protocol } = facts;
    this.#facts = {
      ...(typeof name === "string" && { name: this.#line(name, 200) }),
      ...(typeof version === "string" && { version: this.#line(version, 100) }),
      ...(protocol !== undefined && { protocol: this.#line(protocol, 40) }),
    };
  }

  get report(): CheckReport {
    return {
      waybill: PACKAGE_VERSION,
      ...this.#target,
      ...this.#facts,
      reachable: this.#isReachable,
      ...(this.#notCalled !== undefined && { notCalled: this.#notCalled }),
      counts: { ...this.#counts },
      checks: [...this.#checks],
      omitted: this.#omitted,
    };
  }

  #add(id: CheckId, subject: string, status: CheckStatus, message: string, extras: CheckExtras): void {
    this.#counts[status] += 1;
    if (this.#checks.length >= REPORT_LIMITS.checks && !this.#dropPass(status)) {
      this.#omitted += 1;
      return;
    }
    const { title, fix } = CHECK_KINDS[id];
    const evidence = this.#evidence(extras.evidence);
    this.#checks.push({
      id,
      title,
      subject: this.#line(subject, REPORT_LIMITS.subject),
      status,
      message: this.#line(message, REPORT_LIMITS.message),
      ...(evidence !== "" && { evidence }),
      ...((status === "warn" || status === "fail") && {
        fix: this.#line(extras.fix ?? fix, REPORT_LIMITS.message),
      }),
    });
  }

  /** Makes room for what matters more than a check that passed. */
  #dropPass(status: CheckStatus): boolean {
    if (status === "pass") return false;
    const at = this.#checks.findLastIndex((check) => check.status === "pass");
    if (at < 0) return false;
    this.#checks.splice(at, 1);
    this.#omitted += 1;
    return true;
  }

  #evidence(value: unknown): string {
    if (value === undefined) return "";
    return this.#line(typeof value === "string" ? value : toJson(value), REPORT_LIMITS.evidence);
  }

  #line(text: string, length: number): string {
    // Masked again once it is cleaned: what was taken out may have stood in the middle of a secret.
    return this.#mask(safeLine(this.#mask(text.slice(0, length * 8)), length));
  }
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "(no JSON)";
  }
}
