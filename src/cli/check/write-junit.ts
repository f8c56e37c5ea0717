import type { Check, CheckReport } from "./check-report.ts";

/** What XML 1.0 cannot hold, not even as a reference; the texts of a report are cleaned already, and this does not rely on it. */
const NOT_XML =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
  "\n": "&#10;",
  "\r": "&#13;",
  "\t": "&#9;",
};

/** Writes text so that XML holds it, in an attribute as well as between tags: `]]>` cannot come about either. */
export function escapeXml(text: string): string {
  return text.replace(NOT_XML, "\ufffd").replace(/[&<>"'\n\r\t]/g, (found) => ENTITIES[found] as string);
}

/** Writes reports as JUnit XML: a suite for each report, a case for each check; warnings fail with `strict`. */
export function toJunit(reports: readonly CheckReport[], options: { readonly strict: boolean }): string {
  const suites = reports.map((report) => toSuite(report, options.strict));
  const sum = (field: "tests" | "failures" | "skipped") =>
    suites.reduce((total, suite) => total + suite[field], 0);
  const head = attributes({
    name: "waybill check",
    tests: sum("tests"),
    failures: sum("failures"),
    errors: 0,
    skipped: sum("skipped"),
  });
  const body = suites.map(({ xml }) => xml).join("");
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${head}>\n${body}</testsuites>\n`;
}

interface Suite {
  readonly xml: string;
  readonly tests: number;
  readonly failures: number;
  readonly skipped: number;
}

function toSuite({ target, kind, checks }: CheckReport, strict: boolean): Suite {
  const isFailure = ({ status }: Check) => status === "fail" || (strict && status === "warn");
  const tests = checks.length;
  const failures = checks.filter(isFailure).length;
  const skipped = checks.filter(({ status }) => status === "skip").length;
  const head = attributes({ name: `${kind}: ${target}`, tests, failures, errors: 0, skipped });
  const cases = checks.map((check) => toCase(check, isFailure(check))).join("");
  return { xml: `  <testsuite ${head}>\n${cases}  </testsuite>\n`, tests, failures, skipped };
}

function toCase(check: Check, isFailure: boolean): string {
  const { id, title, subject, status, message } = check;
  const head = attributes({ classname: id, name: subject === "" ? title : `${title}: ${subject}` });
  const inner = isFailure
    ? `<failure ${attributes({ type: status, message })}>${escapeXml(bodyOf(check))}</failure>`
    : status === "skip"
      ? `<skipped ${attributes({ message })}/>`
      : status === "warn"
        ? `<system-out>${escapeXml(`warning: ${bodyOf(check)}`)}</system-out>`
        : "";
  return inner === "" ? `    <testcase ${head}/>\n` : `    <testcase ${head}>${inner}</testcase>\n`;
}

function bodyOf({ message, evidence, fix }: Check): string {
  return [message, evidence && `seen: ${evidence}`, fix && `fix: ${fix}`].filter(Boolean).join("\n");
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escapeXml(String(value))}"`)
    .join(" ");
}
